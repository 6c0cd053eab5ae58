"""Lower bounds for the length of a path that two patterns both match; None: there is no such path.

Works name by name and errs only towards shorter: a bound saves searches, and is never an answer.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

from ringfence.policy.patterns.name_index import NameMatcher
from ringfence.policy.patterns.syntax import CROSS, Branch, Fold, Folding, Name, Segment, as_text, parse

_MOST_PAIRS: Final = 64  # alternatives of one with alternatives of the other
_MOST_CELLS: Final = 400  # names of one with names of the other
_NEVER: Final = 1 << 30


@functools.lru_cache(maxsize=200_000)
def both(one: str, other: str, fold: Fold = Folding.NONE) -> int | None:
    """Return the bound for two patterns as in a policy, where a match covers everything below it."""
    left, right = _measured(one, fold), _measured(other, fold)
    if len(left) * len(right) > _MOST_PAIRS:
        return 1
    least = min(_branches(*a, *b) for a in left for b in right)
    return None if least >= _NEVER else max(least, 1)


@functools.lru_cache(maxsize=20_000)
def _measured(text: str, fold: Fold) -> list[tuple[Sequence[Segment], Sequence[int], Sequence[int]]]:
    """Return the segments of each alternative with their own lengths and those of all segments after them."""
    return [
        (
            branch.segments,
            [0 if each is CROSS else 1 + _length(each) for each in branch.segments],
            _rests(branch),
        )
        for branch in parse(text, fold).branches
    ]


def _branches(  # noqa: PLR0913  three parallel lists for each of two patterns
    a: Sequence[Segment], own_a: Sequence[int], rest_a: Sequence[int],
    b: Sequence[Segment], own_b: Sequence[int], rest_b: Sequence[int],
) -> int:  # fmt: skip
    if len(a) * len(b) > _MOST_CELLS:
        return 1
    # least[i][j]: what follows when i names of one and j names of the other have been matched
    below = [rest_b[j] for j in range(len(b) + 1)]
    for i in range(len(a) - 1, -1, -1):
        row = [rest_a[i]] * (len(b) + 1)
        for j in range(len(b) - 1, -1, -1):
            here, there = a[i], b[j]
            if here is CROSS:
                row[j] = min(below[j], row[j + 1] + own_b[j])
            elif there is CROSS:
                row[j] = min(row[j + 1], below[j] + own_a[i])
            else:
                row[j] = below[j + 1] + 1 + _meet(here, there)
        below = row
    return below[0] - 1  # the last name has no slash after it


def _rests(branch: Branch) -> list[int]:
    """Return for each name the least length of it and all names after it, each with its slash."""
    rests = [0]
    for segment in reversed(branch.segments):
        rests.append(rests[-1] + (0 if segment is CROSS else 1 + _length(segment)))
    return rests[::-1]


def _length(name: Name) -> int:
    return max(1, sum(map(len, name.pieces)))


@functools.lru_cache(maxsize=50_000)
def _meet(one: Name, other: Name) -> int:
    """Return a lower bound for the length of a name that both match; None if there is no such name."""
    least = max(_length(one), _length(other))
    if one.literal is not None or other.literal is not None:
        text, name = (one.literal, other) if one.literal is not None else (other.literal, one)
        assert text is not None
        return least if _matcher(name).fits(text) else _NEVER
    heads = as_text(one.pieces[0]), as_text(other.pieces[0])
    tails = as_text(one.pieces[-1]), as_text(other.pieces[-1])
    if None not in heads and not _agree(heads[0] or "", heads[1] or ""):
        return _NEVER
    if None not in tails and not _agree((tails[0] or "")[::-1], (tails[1] or "")[::-1]):
        return _NEVER
    return least


@functools.lru_cache(maxsize=10_000)
def _matcher(name: Name) -> NameMatcher:
    return NameMatcher(name)


def _agree(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)
