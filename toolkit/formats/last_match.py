"""Lists in which the last match decides, over the positions of a machine: the decision, and what to forget.

Assumes that the languages of a later rule have higher positions.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from ringfence.policy.model import Effect
from ringfence.toolkit.formats.regular_language import Machine, numbers


@dataclass(slots=True)
class Matches:
    """The languages by which one rule matches a name of no directory, and a directory."""

    leaf: list[int]
    directory: list[int]


Listed = list[tuple[Effect, Matches]]


class LastMatch:
    """One list. A run is a sequence of neighbouring rules with the same effect; runs are numbered from 0."""

    def __init__(self, machine: Machine, rules: Listed) -> None:
        self._whole = [0, 0]
        self._decides: dict[int, tuple[Effect, int]] = {}
        run = 0
        for at, (effect, matches) in enumerate(rules):
            if at and effect is not rules[at - 1][0]:
                run += 1
            for kind, languages in enumerate((matches.leaf, matches.directory)):
                for number in languages:
                    self._whole[kind] |= machine.whole[number]
                    for place in numbers(machine.whole[number]):
                        self._decides[place + 1] = effect, run
        every = [number for _, matches in rules for number in sorted({*matches.leaf, *matches.directory})]
        if any(one >= other for one, other in pairwise(every)):
            raise AssertionError("a later rule has lower places than an earlier one")

    def any(self, bits: int, effect: Effect, directory: bool) -> bool:
        """Whether a rule with this effect matches, whatever the last match is."""
        hit = bits & self._whole[directory]
        return any(self._decides[place + 1][0] is effect for place in numbers(hit))

    def decides(self, bits: int, directory: bool) -> tuple[Effect, int] | None:
        """Return the effect of the last matching rule, and its run; None without a match."""
        hit = bits & self._whole[directory]
        return self._decides[hit.bit_length()] if hit else None


class Forgetting:
    """Removes positions that can no longer decide, whatever follows.

    Below a directory that a rule covers, all earlier rules are removed, and later neighbours with the same
    effect are merged into the last of them. `closing` lists end everything once their last match is a deny.
    """

    def __init__(self, machine: Machine, lists: Sequence[Listed], closing: Collection[int]) -> None:
        self._lists: list[tuple[int, dict[int, tuple[int, int, bool]]]] = []
        for number, rules in enumerate(lists):
            forever = [_all(machine.forever, matches) for _, matches in rules]
            if any(forever):
                becomes = _becomes(machine, rules, forever, number in closing)
                self._lists.append((reduce(int.__or__, forever), becomes))
        self._any = reduce(int.__or__, (forever for forever, _ in self._lists), 0)

    def __call__(self, bits: int) -> int:
        """Return the positions that can still decide."""
        if not bits & self._any:
            return bits
        for forever, becomes in self._lists:
            hit = bits & forever
            if hit:
                kept, last, closed = becomes[hit.bit_length()]
                if closed:
                    return last
                bits = bits & kept | last
        return bits


def _becomes(
    machine: Machine, rules: Listed, forever: list[int], closing: bool
) -> dict[int, tuple[int, int, bool]]:
    """For each position of the last covering rule: which positions stay, its own, whether that is all."""
    found: dict[int, tuple[int, int, bool]] = {}
    own = [_all(machine.own, matches) for _, matches in rules]
    upto = list(_running(own))
    end = len(rules)
    last = 0
    for at in reversed(range(len(rules))):
        effect = rules[at][0]
        if at == len(rules) - 1 or rules[at + 1][0] is not effect:
            end, last = at, 0
        last = last or forever[at]
        closed = closing and end == len(rules) - 1 and effect is Effect.DENY
        for place in numbers(forever[at]):
            found[place + 1] = ~upto[end], last & -last, closed
    return found


def _running(own: list[int]) -> list[int]:
    out: list[int] = []
    for each in own:
        out.append(each | (out[-1] if out else 0))
    return out


def _all(places: list[int], matches: Matches) -> int:
    return reduce(int.__or__, (places[number] for number in matches.directory), 0)
