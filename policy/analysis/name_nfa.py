"""NFA over names: each bit is a position in an alternative of a pattern, and one step reads one name.

A layer of bits has one bit per alternative; its number is the count of segments still to come, so a step is a
shift and layer 0 is a match. Only for patterns whose match covers everything below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ringfence.policy.analysis.bit_sets import mask, numbers
from ringfence.policy.patterns.name_index import NameIndex, key
from ringfence.policy.patterns.syntax import CROSS, Branch, Name

_MOST_BITS: Final = 1_000_000  # a step reads them all
_MOST_TEXTS: Final = 50_000  # remembered


class NameNfa:
    """The layers of bits, and the steps that a path's names make."""

    def __init__(self, patterns: Sequence[Sequence[Branch]]) -> None:
        self.own = _own_bits(patterns)
        branches = [branch for some in patterns for branch in some[:1]]
        branches += [branch for some in patterns for branch in some[1:]]
        self.width = len(branches)
        self._patterns = (1 << len(patterns)) - 1
        self._several = [number for number, some in enumerate(patterns) if len(some) > 1]
        self._many = mask(self._several)
        self.every = (1 << self.width) - 1
        self.layers = 1 + max((len(branch.segments) for branch in branches), default=0)
        self.too_large = self.width * self.layers > _MOST_BITS
        if not self.too_large:
            self._lay_out(branches)

    def _lay_out(self, branches: Sequence[Branch]) -> None:
        waits: dict[Name, list[int]] = {}
        cross: list[int] = []
        begins: list[int] = []
        for at, branch in enumerate(branches):
            place = len(branch.segments) * self.width + at
            begins.append(place)
            for segment in branch.segments:
                (cross if segment is CROSS else waits.setdefault(segment, [])).append(place)
                place -= self.width
        self.files = mask(at for at, branch in enumerate(branches) if not branch.directory)
        self.names = list(waits)
        self.numbers = {name: number for number, name in enumerate(self.names)}
        self.waits = [_wide(places) for places in waits.values()]
        self.cross = _wide(cross)
        self.begin = self.close(_wide(begins))
        self._index = NameIndex(key(name) for name in self.names)
        self._reads: dict[str, int] = {}
        self._matched: dict[tuple[str, bool], int] = {}

    def close(self, places: int) -> int:
        """Add the positions behind each `**` that may match no name."""
        return places | (places & self.cross) >> self.width

    def step(self, places: int, reads: int) -> int:
        """Read a name at the positions that can read it; layer 0 of the result holds the matches."""
        return self.close((places & reads) >> self.width | places & self.cross)

    def ended(self, places: int, directory: bool) -> int:
        """Return the alternatives that match a path whose last name led to these positions."""
        return places & (self.every if directory else self.files)

    def reads(self, text: str) -> int:
        """Return the positions at which a name can be read."""
        found = self._reads.get(text)
        if found is None:
            if len(self._reads) > _MOST_TEXTS:
                self._reads.clear()
            found = self._reads[text] = self.waiting(self._index.find(text))
        return found

    def fitting(self, text: str) -> tuple[int, ...]:
        """Return the numbers of the name patterns that match a text."""
        return self._index.find(text)

    def waiting(self, names: Iterable[int]) -> int:
        """Return the positions that wait for one of these names."""
        places = 0
        for number in names:
            places |= self.waits[number]
        return places

    def starts(self, patterns: int) -> int:
        """Return the positions where these patterns start."""
        return self.begin & self.spread(patterns)

    def spread(self, patterns: int) -> int:
        """Return every position of these patterns."""
        bits = patterns
        for number in numbers(patterns & self._many):
            bits |= self.own[number]
        out = bits
        for _ in range(self.layers - 1):
            out = out << self.width | bits
        return out

    def matched(self, path: str, directory: bool) -> int:
        """Return the patterns that match a path."""
        found = self._matched.get((path, directory))
        if found is None:
            if len(self._matched) > _MOST_TEXTS:
                self._matched.clear()
            found = self._matched[path, directory] = self._match(path, directory)
        return found

    def _match(self, path: str, directory: bool) -> int:
        places, below = self.begin, 0
        for name in path.split("/"):
            below |= places & self.every
            places = self.step(places, self.reads(name))
        return self.patterns(below | self.ended(places, directory))

    def patterns(self, branches: int) -> int:
        """Return the patterns of some alternatives."""
        out = branches & self._patterns
        for number in self._several:
            if branches & self.own[number]:
                out |= 1 << number
        return out


def _own_bits(patterns: Sequence[Sequence[Branch]]) -> list[int]:
    """Return the alternatives of each pattern: the first has the pattern's number, all others come after."""
    own, after = [], len(patterns)
    for number, some in enumerate(patterns):
        more = len(some) - 1
        own.append(1 << number | ((1 << more) - 1) << after)
        after += more
    return own


def _wide(places: Sequence[int]) -> int:
    """Return the same as `mask`, for thousands of distant bits, without one integer for each."""
    row = bytearray(max(places, default=0) // 8 + 1)
    for place in places:
        row[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(row, "little")
