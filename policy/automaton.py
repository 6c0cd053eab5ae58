"""Questions about patterns by number: which path do these match and those not, does one cover another.

What has been found is remembered as an example, so that most questions need no search. Every answer is
exact; past its bound a question raises `Undecided`, it never guesses.
"""

from __future__ import annotations

import bisect
import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from policy import lengths
from policy.glob import parse
from policy.rows import Layout, Rows, single
from policy.search import Budget, Expired, Places, Search, Undecided, Witness

__all__ = ["Automaton", "Budget", "Expired", "Undecided", "Wanted", "Witness"]

_AT_ONCE: Final = 500  # questions that are put in order, so that the shortest answers come first
_EXAMPLES: Final = 6  # remembered for each pattern
_FEW: Final = 8  # alternatives of which the lengths are looked at
_NEVER: Final = sys.maxsize
_STEM: Final = "a"  # what is put before a dot


@dataclass(frozen=True, slots=True)
class Wanted:
    """Paths that one pattern of each group in `every` matches, none of `none`, and for each item of
    `unless` nothing of its first part unless something of its second. Patterns are given by number.
    `directory`: only directories."""

    every: tuple[tuple[int, ...], ...] = ()
    none: frozenset[int] = frozenset()
    unless: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()
    directory: bool = False

    def __and__(self, other: Wanted) -> Wanted:
        every = dict.fromkeys((*self.every, *other.every))
        unless = (*self.unless, *other.unless)
        return Wanted(tuple(every), self.none | other.none, unless, self.directory or other.directory)

    def impossible(self) -> bool:
        """Whether one and the same pattern is wanted and not wanted."""
        return any(self.none.issuperset(group) for group in self.every)

    def fits(self, matched: frozenset[int]) -> bool:
        """Whether a path that exactly these patterns match is one of these."""
        return (
            self.none.isdisjoint(matched)
            and all(not matched.isdisjoint(group) for group in self.every)
            and all(
                matched.isdisjoint(item) or not matched.isdisjoint(excepts) for item, excepts in self.unless
            )
        )


class Automaton:
    """Patterns by number, and questions about them. `covers`: a match covers everything below."""

    def __init__(self, patterns: Sequence[str], *, covers: bool = True, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        layout = Layout()
        begins: list[tuple[int, ...]] = []
        self._first: list[int] = []
        rooted: list[int] = []
        for number, text in enumerate(patterns):
            self._first.append(layout.size)
            branches = parse(text).branches
            begins.append(tuple(layout.add(branch, covers=covers) for branch in branches))
            if any(branch.root for branch in branches):
                rooted.append(number)
        self._everything = layout.size
        self._first.append(layout.size)
        self._texts = tuple(patterns)
        self._lengths = [max(1, min(layout.least[place] for place in places)) for places in begins]
        layout.below |= layout.bit()  # a pattern for "any path whatever"
        self._at_root = frozenset(rooted)
        self._rows = Rows(layout)
        self._begins = [self._rows.close(sum(1 << place for place in places)) for places in begins]
        self._examples: dict[int, list[tuple[Witness, frozenset[int]]]] = {}

    def find(self, wanted: Iterable[Wanted], *, first: bool = False) -> Witness | None:
        """Return the shortest path that one of these describes, or None: there is none.

        A name in it that begins with a dot gets a letter in front where that is as good an example (`a.md`).
        The root is returned only if there is no other. With `first` any path will do.
        """
        best: Witness | None = None
        sought = Wanted()
        rooted = False
        for least, each in self._in_order(wanted, 1 if first else _AT_ONCE):
            if first and (known := self._known(each)):
                return known
            rooted = rooted or each.fits(self._at_root)
            most = len(best.path) - 1 if best else sys.maxsize
            if least > most or least == _NEVER:
                continue
            found = Search(self._rows, self.budget, self._places(each), most).run()
            if found:
                self._remember(found, each)
                best, sought = found, each
            if best and (first or len(best.path) == 1):
                break
        if best is None:
            return Witness(".", True) if rooted else None
        return best if first else self._with_stems(best, sought)

    def holds(self, left: int, right: Iterable[int]) -> bool:
        """Whether everything that one pattern matches is matched by one of others."""
        return self.find([Wanted(((left,),), frozenset(right))], first=True) is None

    def meet(self, one: int, other: int) -> bool:
        """Whether some path is matched by both."""
        return self.find([Wanted(((one,), (other,)))], first=True) is not None

    def _in_order(self, wanted: Iterable[Wanted], at_once: int) -> Iterator[tuple[int, Wanted]]:
        """What can be at all with the least length it can have, the shortest first, some at a time."""
        possible = ((self._least(each), each) for each in wanted if self._possible(each))
        while some := list(itertools.islice(possible, at_once)):
            yield from sorted(some, key=_by_length)

    def _possible(self, wanted: Wanted) -> bool:
        self.budget.spend(8 + len(wanted.none) + len(wanted.every))
        return not wanted.impossible()

    def _least(self, wanted: Wanted) -> int:
        """How long a path must be at least: of one pattern of each group, and of each two of them."""
        least = 1
        groups = [group for group in wanted.every if len(group) <= _FEW]
        for at, group in enumerate(groups):
            least = max(least, min(self._lengths[number] for number in group))
            for other in groups[:at]:
                self.budget.spend(len(group) * len(other))
                found = (lengths.both(self._texts[a], self._texts[b]) for a in group for b in other)
                least = max(least, min(_NEVER if each is None else each for each in found))
        return least

    def _with_stems(self, witness: Witness, wanted: Wanted) -> Witness:
        """Put a letter before each dot that begins a name, where the path stays what is wanted."""
        names = witness.path.split("/")
        for at, name in enumerate(names):
            if name.startswith("."):
                longer = Witness("/".join([*names[:at], _STEM + name, *names[at + 1 :]]), witness.directory)
                if wanted.fits(self._matched(longer)):
                    witness, names = longer, longer.path.split("/")
        return witness

    def _matched(self, witness: Witness) -> frozenset[int]:
        """The patterns that match a path."""
        everywhere = self._begin(range(len(self._begins)))
        self.budget.spend(len(witness.path) * (8 + self._rows.size // 256))
        reached = single(self._rows.read(everywhere, witness.path, witness.directory))
        return frozenset(bisect.bisect_right(self._first, place) - 1 for place in reached)

    def _places(self, wanted: Wanted) -> Places:
        begin, own = self._begin, self._own
        return Places(
            tuple(single(begin(group)) for group in wanted.every) or ((self._everything,),),
            begin(wanted.none),
            begin(number for item, _ in wanted.unless for number in item),
            begin(number for _, some in wanted.unless for number in some),
            tuple((own(item), own(excepts)) for item, excepts in wanted.unless),
            wanted.directory,
        )

    def _begin(self, numbers: Iterable[int]) -> int:
        bits = 0
        for number in numbers:
            bits |= self._begins[number]
        return bits

    def _own(self, numbers: Iterable[int]) -> int:
        bits = 0
        for number in numbers:
            bits |= (1 << self._first[number + 1]) - (1 << self._first[number])
        return bits

    def _known(self, wanted: Wanted) -> Witness | None:
        """An example that is what is wanted."""
        numbers = wanted.every[0] if wanted.every else ()
        for number in numbers:
            if number not in self._examples:
                self._example(number)
            for witness, matched in self._examples[number]:
                if wanted.fits(matched) and (witness.directory or not wanted.directory):
                    return witness
        return None

    def _example(self, number: int) -> None:
        """Make a first example of what one pattern matches."""
        self._examples[number] = []
        alone = Wanted(((number,),))
        found = Search(self._rows, self.budget, self._places(alone), sys.maxsize).run()
        if found:
            self._remember(found, alone)

    def _remember(self, witness: Witness, wanted: Wanted) -> None:
        numbers = [number for group in wanted.every for number in group if number in self._examples]
        if not numbers:
            return
        matched = self._matched(witness)
        for number in numbers:
            if number in matched:
                self._examples[number] = [(witness, matched), *self._examples[number][: _EXAMPLES - 1]]


def _by_length(pair: tuple[int, Wanted]) -> int:
    return pair[0]
