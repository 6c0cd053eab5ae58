"""Named sets of patterns: `sets` of a policy file, and `"@name"` in place of a pattern.

A set is text in another place: each use stands for the patterns of the set, and nothing else changes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ringfence.policy.errors import Where

SET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}\Z")
_USE = re.compile(r"@[A-Za-z][A-Za-z0-9_-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class SetPattern:
    """One pattern of a set, with its place there."""

    text: str
    where: Where


@dataclass(frozen=True, slots=True)
class PatternSet:
    """A set as defined at one place."""

    where: Where
    patterns: tuple[SetPattern, ...]


Sets = Mapping[str, PatternSet]


def used_set(text: str) -> str | None:
    """Return the name of the set that a pattern may stand for, or None for any other pattern."""
    return text[1:] if _USE.match(text) else None
