"""Filter of entries by the policy's pattern language, relative to a directory.

Pure: compares names only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ringfence.policy.byte_names import as_matched
from ringfence.policy.patterns.matcher import Matcher
from ringfence.policy.patterns.name_index import NameMatcher
from ringfence.policy.patterns.syntax import CROSS, Branch, PatternError, parse
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.paths import ROOT
from ringfence.toolkit.plan.changes import DIRECTORY, Entry

# None is `**`.
_Segment = NameMatcher | None


class Names:
    """Matches entries that a pattern itself names; unlike in a rule, entries below a match do not match."""

    def __init__(self, pattern: str, base: str, parameter: str) -> None:
        self._base = base
        self._branches = [(branch.directory, _segments(branch)) for branch in _parsed(pattern, parameter)]

    def match(self, entry: Entry) -> bool:
        parts = below(entry.path, self._base).split("/")
        is_directory = entry.stat.kind == DIRECTORY
        return any(_fits(segments, parts) for only, segments in self._branches if is_directory or not only)


def _parsed(pattern: str, parameter: str) -> tuple[Branch, ...]:
    try:
        return parse(pattern).branches
    except PatternError as error:
        message = f"The {parameter} is not a pattern: {error.message}"
        raise CallError("invalid_arguments", message, where=parameter, hint=error.hint) from None


def _segments(branch: Branch) -> list[_Segment]:
    return [None if segment is CROSS else NameMatcher(segment) for segment in branch.segments]


def _fits(segments: list[_Segment], parts: list[str]) -> bool:
    """Whether the segments match all of these names; all possibilities are followed at once."""
    places = _open(segments, {0})
    for part in parts:
        after = set()
        for place in places - {len(segments)}:
            segment = segments[place]
            if segment is None:
                after.add(place)
            elif segment.fits(as_matched(part)):
                after.add(place + 1)
        places = _open(segments, after)
    return len(segments) in places


def _open(segments: list[_Segment], places: set[int]) -> set[int]:
    # A `**` may match no name at all; two in a row do not occur.
    crossed = {place + 1 for place in places if place < len(segments) and segments[place] is None}
    return places | crossed


def below(path: str, base: str) -> str:
    """Return the path relative to a directory above it."""
    return path if base == ROOT else path[len(base) + 1 :]


def excluding(entries: Iterable[Entry], base: str, patterns: list[str]) -> Iterator[Entry]:
    """Return an iterator over entries that no pattern matches or covers. Raises CallError for a bad pattern
    at once.
    """
    for pattern in patterns:
        _parsed(pattern, "exclude_patterns")
    return _kept(entries, base, patterns) if patterns else iter(entries)


def _kept(entries: Iterable[Entry], base: str, patterns: list[str]) -> Iterator[Entry]:
    machine = Matcher(patterns)
    for entry in entries:
        if not machine.matches(below(entry.path, base), entry.stat.kind == DIRECTORY):
            yield entry
