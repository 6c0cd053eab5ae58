"""What loading gives: the content of a policy, and what it was made from."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.policy.model import Content


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of a policy, with its revision (SHA-256 in hex) and the files of its author (absolute)."""

    content: Content
    revision: str
    files: tuple[str, ...]
    sources: tuple[str, ...]  # all files that the revision was made from, in their order
