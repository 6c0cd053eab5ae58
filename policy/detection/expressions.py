"""Expressions of policies (`match`): compiled once, and looked for in each line of a text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ringfence.policy.detection.linear_regex import Budget, Matcher, PatternError

_NOT_EMPTY = "add what each find contains: for a* write a+"
MAX_VISITS = 20_000_000  # the work for one content: some seconds


@lru_cache(maxsize=64)
def compiled(expression: str) -> Matcher:
    """Return the matcher of an expression; raises PatternError, whose text says why it cannot be used."""
    matcher = Matcher(expression)
    if matcher.matches_empty:
        raise PatternError("it matches an empty text, which is in every content", _NOT_EMPTY)
    return matcher


def spans(text: str, expression: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of what matches, in characters; `^` and `$` are the ends of a line.

    Raises PatternError, or WorkExceeded for a text that takes more than MAX_VISITS.
    """
    matcher, budget = compiled(expression), Budget(MAX_VISITS)
    for start, line in _lines(text, matcher.literal):
        if matcher.found_in(line, budget):
            for first, last in matcher.spans(line, budget):
                yield start + first, start + last


def _lines(text: str, literal: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that contain `literal`, each with its start, without what ends them."""
    at = 0
    while at < len(text):
        found = text.find(literal, at)
        if found < 0:
            return
        start = text.rfind("\n", at, found) + 1 or at
        end = text.find("\n", max(start, found))
        end = len(text) if end < 0 else end
        yield start, text[start:end].removesuffix("\r")
        at = end + 1
