"""The rule of retention: of which calls the history may forget the contents, by age, by number and by size.

Pure. The newest calls, open ones and those that somebody waits for are spared, whatever their age and size;
what a call undid is spared as long as that call is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """What goes: calls begun before the time `before`, and the oldest beyond `max_bytes`; None: no bound.

    Neither takes one of the `keep` newest calls. With both None, all but those go.
    """

    before: float | None = None
    max_bytes: int | None = None
    keep: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """A call with the contents that the history keeps for it, by name; `spared` if none of them may go.

    `undoes` names the calls that it took back.
    """

    call: str
    started: float
    contents: frozenset[str] = frozenset()
    undoes: frozenset[str] = frozenset()
    spared: bool = False


def forgettable(calls: Sequence[Kept], sizes: Mapping[str, int], rule: Rule) -> set[str]:
    """The calls, given oldest first, of which the contents go; `sizes` are those of the contents in bytes.

    A content stays as long as one call that has it stays, and counts once.
    """
    needed = _needed(calls, len(calls) - rule.keep)
    everything = rule.before is None and rule.max_bytes is None
    gone: set[str] = set()
    left: list[int] = []
    for n in _first_to_go(needed):
        _, started, spared = needed[n]
        if not spared and (everything or (rule.before is not None and started < rule.before)):
            gone.add(calls[n].call)
        else:
            left.append(n)
    if rule.max_bytes is not None:
        free = [n for n in left if not needed[n][2]]
        held = set[str]().union(*(calls[n].contents for n in left if needed[n][2]))
        gone |= {calls[n].call for n in _beyond(calls, free, held, sizes, rule.max_bytes)}
    return gone


# Over a call and all that undid it: the newest's place, the latest start, whether one of them is spared.
_Needed = list[tuple[int, float, bool]]


def _needed(calls: Sequence[Kept], newest: int) -> _Needed:
    places = {one.call: n for n, one in enumerate(calls)}
    found = [(n, one.started, one.spared or n >= newest) for n, one in enumerate(calls)]
    for n in reversed(range(len(calls))):
        last, started, spared = found[n]
        for undone in calls[n].undoes:
            m = places.get(undone, n)
            if m < n:
                found[m] = max(found[m][0], last), max(found[m][1], started), found[m][2] or spared
    return found


def _first_to_go(needed: _Needed) -> list[int]:
    """The calls in the order in which they may go: none before what needs it."""
    return sorted(range(len(needed)), key=lambda n: (needed[n][0], -n))


def _beyond(
    calls: Sequence[Kept], free: list[int], held: set[str], sizes: Mapping[str, int], most: int
) -> Iterable[int]:
    """The first of `free` that have to go for the contents of the rest, with `held`, to be `most` bytes."""
    total = sum(sizes[name] for name in held)
    for place in reversed(range(len(free))):
        new = calls[free[place]].contents - held
        total += sum(sizes[name] for name in new)
        held |= new
        if total > most:
            return free[: place + 1]
    return ()
