"""Result of loading: the content of a policy and its sources."""

from __future__ import annotations

from ringfence.policy.model import Content
from ringfence.policy.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Loaded:
    """The content of a policy, its revision (SHA-256 in hex) and the absolute paths of the author's files."""

    content: Content
    revision: str
    files: tuple[str, ...]
    sources: tuple[str, ...]  # all files that the revision was made from, in their order
