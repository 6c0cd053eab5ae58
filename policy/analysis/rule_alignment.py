"""Rule alignment: which rules of two lists are the same, in the same order; the others have changed."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ringfence.policy.model import Effect, Rule


def common(one: Sequence[Rule], other: Sequence[Rule]) -> list[tuple[int, int]]:
    """Return the indexes, in both lists, of the longest run of rules in the same order.

    Only rules that occur once in each list count. A longest increasing subsequence takes n log n steps, a
    diff can take n * n.
    """
    first, second = _once(one), _once(other)
    pairs = [(n, second[what]) for what, n in first.items() if what in second]
    ends: list[int] = []  # for each length the least end, in the second list, of a run that long
    rows: list[tuple[int, int, Any]] = []
    for n, m in pairs:
        at = bisect.bisect_left(ends, m)
        row = (n, m, rows[at - 1] if at else None)
        ends[at : at + 1], rows[at : at + 1] = [m], [row]
    found: list[tuple[int, int]] = []
    last = rows[-1] if rows else None
    while last is not None:
        found.append((last[0], last[1]))
        last = last[2]
    return found[::-1]


def aligned(one: Sequence[Rule], other: Sequence[Rule]) -> Iterator[tuple[int, int]]:
    """Yield the indexes, in both lists, of rules that an edit left as they were, in order.

    Unlike `common` it takes what both lists begin and end with rule by rule, whether or not it occurs twice.
    """
    most = min(len(one), len(other))
    start = 0
    while start < most and _text(one[start]) == _text(other[start]):
        start += 1
    end = 0
    while end < most - start and _text(one[-1 - end]) == _text(other[-1 - end]):
        end += 1
    yield from ((n, n) for n in range(start))
    middle = common(one[start : len(one) - end], other[start : len(other) - end])
    yield from ((start + n, start + m) for n, m in middle)
    yield from ((len(one) - n, len(other) - n) for n in range(end, 0, -1))


def _once(rules: Sequence[Rule]) -> dict[tuple[str, Effect], int]:
    """Return the index of each pattern and effect that occurs once, in order."""
    texts = [_text(rule) for rule in rules]
    often = Counter(texts)
    return {text: n for n, text in enumerate(texts) if often[text] == 1}


def _text(rule: Rule) -> tuple[str, Effect]:
    return rule.pattern, rule.effect
