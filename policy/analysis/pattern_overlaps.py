"""Pattern overlaps: which patterns may match a common path, for one pattern and all others at once.

Errs only towards more: two patterns that are not listed have no common path.
"""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.policy.analysis.bit_sets import numbers
from ringfence.policy.analysis.name_nfa import NameNfa
from ringfence.policy.analysis.shortest_witness import Budget
from ringfence.policy.patterns.syntax import CROSS, Branch, Name, Segment, as_text


class PatternOverlaps:
    """For each pattern the patterns that may share a path with it, computed on request."""

    def __init__(self, patterns: Sequence[Sequence[Branch]], rows: NameNfa, budget: Budget) -> None:
        self._patterns = patterns
        self._rows = rows
        self._walk = _Walk(rows, budget)
        self._known: dict[int, int] = {}

    def of(self, number: int) -> int:
        """Return, as bits, the numbers of the patterns that may share a path with one pattern."""
        found = self._known.get(number)
        if found is None:
            found = self._known[number] = self._find(number)
        return found

    def _find(self, number: int) -> int:
        rows, bits = self._rows, 0
        for branch in self._patterns[number]:
            places = self._walk.after(branch.segments)
            while places:  # wherever the other one stands, it can go on below
                bits |= places & rows.every
                places >>= rows.width
        return rows.patterns(bits)


class _Walk:
    """The positions of all patterns after the segments of one pattern; patterns share prefixes."""

    def __init__(self, rows: NameNfa, budget: Budget) -> None:
        self._rows = rows
        self._cost = 8 + rows.width * rows.layers // 256
        self._budget = budget
        budget.spend(len(rows.names) * 8)
        number = {name: at for at, name in enumerate(rows.names)}
        self._reads = {name: rows.waiting(meets) for name, meets in zip(number, _meets(rows), strict=True)}
        self._named = rows.waiting(range(len(rows.names)))
        self._stays = rows.cross | rows.every
        self._known: dict[tuple[Segment, ...], int] = {(): rows.begin}

    def after(self, segments: tuple[Segment, ...]) -> int:
        done = len(segments)
        while segments[:done] not in self._known:
            done -= 1
        places = self._known[segments[:done]]
        for at in range(done, len(segments)):
            self._budget.spend(self._cost)
            places = self._anything(places) if (name := segments[at]) is CROSS else self._step(places, name)
            self._known[segments[: at + 1]] = places
        return places

    def _step(self, places: int, name: Name) -> int:
        rows = self._rows
        return rows.close((places & self._reads[name]) >> rows.width | places & self._stays)

    def _anything(self, places: int) -> int:
        rows = self._rows
        while (more := rows.close(places | (places & self._named) >> rows.width)) != places:
            self._budget.spend(self._cost)
            places = more
        return places


def _meets(rows: NameNfa) -> list[list[int]]:
    """Return for each name the numbers of the names that may share a text with it."""
    listed = rows.names
    wild = [at for at, name in enumerate(listed) if name.literal is None]
    number = {at: n for n, at in enumerate(wild)}
    out: list[list[int]] = [[at] for at in range(len(listed))]
    for at, name in enumerate(listed):
        if name.literal is not None:
            out[at] = list(rows.fitting(name.literal))
            for other in out[at]:
                if other in number:
                    out[other].append(at)
    heads, tails = ([_edge(listed[at], which) for at in wild] for which in (0, -1))
    by_head, by_tail = _agreeing(heads), _agreeing(tails)
    for n, at in enumerate(wild):
        out[at] += [wild[other] for other in numbers(by_head[heads[n]] & by_tail[tails[n]]) if other != n]
    return out


def _edge(name: Name, which: int) -> str:
    """Return a name's literal prefix (0) or reversed suffix (-1); empty where it is not plain text."""
    text = as_text(name.pieces[which]) or ""
    return text[::-1] if which else text


def _agreeing(edges: Sequence[str]) -> dict[str, int]:
    """Return for each edge, as bits, the edges of which one is a prefix of the other."""
    exact: dict[str, int] = {}
    longer: dict[str, int] = {}
    for n, edge in enumerate(edges):
        exact[edge] = exact.get(edge, 0) | 1 << n
        for end in range(len(edge) + 1):
            longer[edge[:end]] = longer.get(edge[:end], 0) | 1 << n
    out = {}
    for edge in exact:
        out[edge] = longer[edge]
        for end in range(len(edge)):
            out[edge] |= exact.get(edge[:end], 0)
    return out
