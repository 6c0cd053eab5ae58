"""Filter of entries by the policy's pattern language, relative to a directory.

Pure: compares names only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ringfence.policy.byte_names import as_matched
from ringfence.policy.patterns.matcher import Matcher
from ringfence.policy.patterns.name_index import NameMatcher
from ringfence.policy.patterns.syntax import CROSS, Branch, PatternError, parse
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.paths import ROOT
from ringfence.toolkit.plan.changes import DIRECTORY, Entry, FileNames

_KNOWN = 256  # directories in which is remembered what a name has to match

# None is `**`.
_Segment = NameMatcher | None


class Names:
    """Matches entries that a pattern itself names; unlike in a rule, entries below a match do not match."""

    def __init__(self, pattern: str, base: str, parameter: str) -> None:
        self._base = base
        self._branches = [(branch.directory, _segments(branch)) for branch in _parsed(pattern, parameter)]
        self._known: dict[tuple[str, bool], list[_Segment]] = {}

    def match(self, entry: Entry) -> bool:
        """Whether the pattern names the entry."""
        above, _, name = entry.path.rpartition("/")
        return any(_is(last, name) for last in self._lasts(above or ROOT, entry.stat.kind == DIRECTORY))

    def among(self, path: str, files: FileNames) -> Collection[str]:
        """Return those of the files in the directory at `path` that the pattern names."""
        lasts, names = self._lasts(path, False), files.names
        if None in lasts:
            return names
        if "\\" in files.text:
            return {name for name in names if any(_is(last, name) for last in lasts)}
        return {
            name
            for last in lasts
            if last is not None and last.may_fit(files.text)
            for name in last.among(names)
        }

    def _lasts(self, path: str, directory: bool) -> list[_Segment]:
        """Return what a name in the directory at `path` has to match: one of these segments."""
        known = self._known.get((path, directory))
        if known is not None:
            return known
        parts = [] if path == self._base else below(path, self._base).split("/")
        lasts = [
            segment
            for only, segments in self._branches
            if directory or not only
            for segment in _next(segments, parts)
        ]
        if len(self._known) >= _KNOWN:
            self._known.clear()
        self._known[path, directory] = lasts
        return lasts


def _parsed(pattern: str, parameter: str) -> tuple[Branch, ...]:
    try:
        return parse(pattern).branches
    except PatternError as error:
        message = f"The {parameter} is not a pattern: {error.message}"
        raise CallError("invalid_arguments", message, where=parameter, hint=error.hint) from None


def _segments(branch: Branch) -> list[_Segment]:
    return [None if segment is CROSS else NameMatcher(segment) for segment in branch.segments]


def _is(segment: _Segment, name: str) -> bool:
    return segment is None or segment.fits(as_matched(name))


def _next(segments: list[_Segment], parts: list[str]) -> list[_Segment]:
    """Return the segments of which one has to match the name after these, and with that all of them have
    matched; all possibilities are followed at once.
    """
    if len(segments) == 2 and segments[0] is None:
        return segments[1:]  # a name anywhere, as most patterns are
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
    end = len(segments)
    return [
        segments[place]
        for place in sorted(places - {end})
        if end in _open(segments, {place if segments[place] is None else place + 1})
    ]


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
