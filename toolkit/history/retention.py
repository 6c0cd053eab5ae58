"""Retention rule: which calls' contents the history may prune, by age, by number and by size.

Pure. The newest calls, open ones and those with a pending request are spared, whatever their age and size. A
call that was undone is spared as long as the call that undid it.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

CHANGES = 20_000  # this many of the newest changes stay, however small `max_bytes` is
_EACH = 4_096  # bytes of contents for which one change stays; its record takes about 500


@dataclass(frozen=True, slots=True)
class Rule:
    """Prunes calls begun before the time `before`, and the oldest beyond `max_bytes`; None: no bound.

    Neither prunes the `keep` newest calls. With both None, all other calls are pruned.
    """

    before: float | None = None
    max_bytes: int | None = None
    keep: int = 0

    @property
    def changes(self) -> int | None:
        """How many changes stay; the oldest beyond that lose their contents, and are then removed."""
        return None if self.max_bytes is None else max(CHANGES, self.max_bytes // _EACH)


@dataclass(frozen=True, slots=True)
class CallContents:
    """A call with its stored contents, by name; `spared`: none of them may be pruned.

    `undoes` names the calls that it undid; `changes` is the number of its changes.
    """

    call: str
    started: float
    contents: frozenset[str] = frozenset()
    undoes: frozenset[str] = frozenset()
    spared: bool = False
    changes: int = 0


def forgettable(calls: Sequence[CallContents], sizes: Mapping[str, int], rule: Rule) -> set[str]:
    """Return the calls whose contents are pruned; `calls` are given oldest first, `sizes` in bytes by
    content.

    A content stays as long as one of its calls stays, and counts once.
    """
    undone = _undone(calls)
    spared, started = _needed(calls, undone, len(calls) - rule.keep)
    everything = rule.before is None and rule.max_bytes is None
    gone = {
        n
        for n in range(len(calls))
        if not spared[n] and (everything or (rule.before is not None and started[n] < rule.before))
    }
    if rule.max_bytes is not None:
        free = [n for n in range(len(calls)) if not spared[n] and n not in gone]
        needed = set[str]().union(*(calls[n].contents for n in range(len(calls)) if spared[n]))
        gone |= _beyond(calls, list(_first_to_go(free, undone)), needed, sizes, rule.max_bytes)
    if rule.changes is not None:
        free = [n for n in range(len(calls)) if not spared[n] and n not in gone]
        too_many = sum(calls[n].changes for n in range(len(calls)) if n not in gone) - rule.changes
        for n in _first_to_go(free, undone):
            if too_many <= 0:
                break
            gone.add(n)
            too_many -= calls[n].changes
    return {calls[n].call for n in gone}


def _undone(calls: Sequence[CallContents]) -> list[list[int]]:
    """Return for each call the indexes of the earlier calls that it undid."""
    places = {one.call: n for n, one in enumerate(calls)}
    found = ([places.get(name, n) for name in one.undoes] for n, one in enumerate(calls))
    return [[m for m in undone if m < n] for n, undone in enumerate(found)]


def _needed(
    calls: Sequence[CallContents], undone: list[list[int]], newest: int
) -> tuple[list[bool], list[float]]:
    """Return for each call whether it is spared, and its latest start: its own, or that of the call that
    undid it.
    """
    spared = [one.spared or n >= newest for n, one in enumerate(calls)]
    started = [one.started for one in calls]
    for n in reversed(range(len(calls))):
        for m in undone[n]:
            spared[m], started[m] = spared[m] or spared[n], max(started[m], started[n])
    return spared, started


def _first_to_go(free: list[int], undone: list[list[int]]) -> Iterator[int]:
    """Yield the calls in the order of pruning: oldest first, and none before the call that undid it."""
    among = set(free)
    needed = Counter(m for n in free for m in among.intersection(undone[n]))
    ready = [n for n in free if not needed[n]]  # in order, so a heap already
    while ready:
        n = heapq.heappop(ready)
        yield n
        for m in among.intersection(undone[n]):
            needed[m] -= 1
            if not needed[m]:
                heapq.heappush(ready, m)


def _beyond(
    calls: Sequence[CallContents], free: list[int], needed: set[str], sizes: Mapping[str, int], most: int
) -> set[int]:
    """Return the first ones of `free` to prune so that all other contents, with `needed`, fit into `most`
    bytes.
    """
    total = sum(sizes[name] for name in needed)
    for place in reversed(range(len(free))):
        new = calls[free[place]].contents - needed
        total += sum(sizes[name] for name in new)
        needed |= new
        if total > most:
            return set(free[: place + 1])
    return set()


TURN = "retention"  # in the table `meta`: "owner|time|operation" of the present or last turn
