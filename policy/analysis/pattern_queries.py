"""Pattern queries: the shortest path that some patterns match and others do not; whether one covers another.

Most questions are answered by a known example, most others by a search name by name, the rest by a search
character by character. Every answer is exact; beyond its bound a question raises `Undecided`.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from ringfence.policy.analysis import length_bounds
from ringfence.policy.analysis.bit_nfa import BitNfa, Layout
from ringfence.policy.analysis.bit_sets import mask, numbers
from ringfence.policy.analysis.common_names import NO_NAMES, NameTexts
from ringfence.policy.analysis.name_nfa import NameNfa
from ringfence.policy.analysis.name_search import NameSearch
from ringfence.policy.analysis.pattern_overlaps import PatternOverlaps
from ringfence.policy.analysis.shortest_witness import Budget, Expired, Places, Search, Undecided, Witness
from ringfence.policy.analysis.wanted_paths import Wanted
from ringfence.policy.patterns.syntax import CROSS, Branch, Fold, Folding, Pattern, folded, parse
from ringfence.policy.value_classes import dataclass

__all__ = ["Budget", "Expired", "PatternQueries", "Undecided", "Wanted", "Witness"]

_AT_ONCE: Final = 500  # questions that are put in order, so that the shortest answers come first
_EXAMPLES: Final = 6  # remembered for each pattern
_FEW: Final = 8  # alternatives whose lengths are compared
_MOST_COMBINED: Final = 32  # alternatives of one group with those of the others, name by name
_NEVER: Final = sys.maxsize
_STEM: Final = "a"  # what is put before a dot

Unless = Callable[[Wanted], bool]


@dataclass(frozen=True, slots=True)
class Nearest:
    """The shortest path, and how long it is without the letters that were put before dots."""

    witness: Witness
    least: int


class PatternQueries:
    """Patterns by number, and questions about them. `covers`: a match covers everything below.

    `fold`: differences between names that the file system ignores. Answers are then about names that fold
    letter by letter, not about names with a letter that folds to several, or in another Unicode form than
    NFC. Methods raise Undecided beyond the budget.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        covers: bool = True,
        budget: Budget | None = None,
        fold: Fold = Folding.NONE,
    ) -> None:
        self.budget = budget or Budget()
        self.fold = fold
        parsed = [parse(text, fold) for text in patterns]
        layout = Layout()
        begins: list[tuple[int, ...]] = []
        self._first: list[int] = []
        for each in parsed:
            self._first.append(layout.size)
            begins.append(tuple(layout.add(branch, covers=covers) for branch in each.branches))
        self._everything = layout.size
        self._first.append(layout.size)
        self._texts = tuple(patterns)
        self._lengths = [max(1, min(layout.least[place] for place in places)) for places in begins]
        layout.below |= layout.bit()  # a pattern for "any path whatever"
        self._at_root = mask(
            number for number, each in enumerate(parsed) if any(branch.root for branch in each.branches)
        )
        self._rows = BitNfa(layout, fold)
        self._begins = [self._rows.close(sum(1 << place for place in places)) for places in begins]
        self._examples: dict[int, list[tuple[Witness, int]]] = {}
        self._by_name(parsed, covers=covers)

    def _by_name(self, parsed: Sequence[Pattern], *, covers: bool) -> None:
        """Build the NFA over names too, unless patterns are too large or match no more than their text."""
        self._parsed = parsed
        self._names: NameSearch | None = None
        self._overlaps: PatternOverlaps | None = None
        some = [each.branches for each in parsed]
        self._name_rows = rows = NameNfa(some)
        if not covers or rows.too_large:
            return
        texts = NameTexts(rows, self._rows.characters)
        self._filler = texts.filler or self._rows.characters[0]
        branches = [branch for each in parsed for branch in each.branches[:1]]
        branches += [branch for each in parsed for branch in each.branches[1:]]
        self._names = NameSearch(rows, texts, branches, self.budget)
        self._overlaps = PatternOverlaps(some, rows, self.budget)

    def near(self, number: int) -> int:
        """Return, as bits, the patterns that may share a path with one pattern."""
        return self._overlaps.of(number) if self._overlaps else (1 << len(self._parsed)) - 1

    def find(
        self,
        wanted: Iterable[Wanted],
        *,
        first: bool = False,
        unless: Unless = lambda _: False,
    ) -> Witness | None:
        """Return the shortest path that one of these describes; None: no such path exists.

        A name that begins with a dot gets a letter in front where that is as good an example (`a.md`). The
        root is returned only if there is no other path. With `first` any path will do. Paths for which
        `unless` is true do not count; it is called late, and rarely.
        """
        if not first:
            nearest = self.nearest(wanted, unless=unless)
            return nearest.witness if nearest else None
        rooted = False
        for each in self._asked(wanted):
            rooted = rooted or (each.fits(self._at_root) and not unless(each))
            if found := self._any(each, unless):
                return self._sure(found)
        return Witness(".", True) if rooted else None

    def nearest(
        self, wanted: Iterable[Wanted], *, unless: Unless = lambda _: False, below: int = _NEVER
    ) -> Nearest | None:
        """Return the path that `find` returns, with its least length; None: none of a length below exists.

        The root is shorter than no other path.
        """
        best: tuple[Witness, Wanted] | None = None
        rooted = False
        possible = self._asked(wanted)
        while some := list(itertools.islice(possible, _AT_ONCE)):
            rooted = rooted or any(each.fits(self._at_root) and not unless(each) for each in some)
            best = self._nearest(some, unless, best, below)
            if best and len(best[0].path) == 1:
                break
        if best is not None:
            return Nearest(self._with_stems(self._sure(best[0]), best[1]), len(best[0].path))
        return Nearest(Witness(".", True), _NEVER) if rooted and below == _NEVER else None

    def _asked(self, wanted: Iterable[Wanted]) -> Iterator[Wanted]:
        return (each for each in map(Wanted.settled, wanted) if self._possible(each))

    def share(self, one: int, other: int, below: int) -> bool:
        """Whether two patterns may both match a path of a length below this; errs only towards yes."""
        if not self.near(one) >> other & 1:
            return False
        least = length_bounds.both(self._texts[one], self._texts[other], self.fold)
        return least is not None and least < below

    def _sure(self, witness: Witness) -> Witness:
        """Return the witness; Undecided if it is not a folded name, because it may match something else."""
        if not self._is_folded(witness):
            raise Undecided("too complex: the only example is another name once it is folded")
        return witness

    def _is_folded(self, witness: Witness) -> bool:
        return not self.fold or folded(witness.path, self.fold) == witness.path

    def holds(self, left: int, right: Iterable[int]) -> bool:
        """Whether every path that one pattern matches is matched by one of the others."""
        return self.find([Wanted(((left,),), mask(right))], first=True) is None

    def meet(self, one: int, other: int) -> bool:
        """Whether some path is matched by both patterns."""
        return self.find([Wanted(((one,), (other,)))], first=True) is not None

    def _any(self, wanted: Wanted, unless: Unless) -> Witness | None:
        """Return any wanted path, a known one if possible; None if there is none."""
        known = self._known(wanted)
        if known or unless(wanted):
            return known
        return self._remember(self._some(wanted), wanted)

    def _nearest(
        self, some: Sequence[Wanted], unless: Unless, best: tuple[Witness, Wanted] | None, below: int
    ) -> tuple[Witness, Wanted] | None:
        """Return the shortest path of some descriptions, and its description; else the best so far.

        Descriptions are tried in the order of their least possible length. A cheap bound comes first; the
        better bound is computed only for the next description.
        """
        heap = [(self._at_least(each), at, False) for at, each in enumerate(some)]
        heapq.heapify(heap)
        while heap:
            least, at, exact = heap[0]
            most = (len(best[0].path) if best else below) - 1
            if least > most:
                break
            if not exact:
                heapq.heapreplace(heap, (self._least(some[at]), at, True))
                continue
            heapq.heappop(heap)
            if not unless(some[at]) and (found := self._shortest(some[at], most)):
                self._remember(found, some[at])
                best = found, some[at]
        return best

    def _possible(self, wanted: Wanted) -> bool:
        every = wanted.every
        self.budget.spend(8 + len(every))
        for at in range(1, len(every)):
            near = self.near(every[at][0])
            if len(every[at]) == 1 and any(len(o) == 1 and not near >> o[0] & 1 for o in every[:at]):
                return False
        return not wanted.impossible()

    def _at_least(self, wanted: Wanted) -> int:
        return max((self._lengths[group[0]] for group in wanted.every if len(group) == 1), default=1)

    def _least(self, wanted: Wanted) -> int:
        """Return a lower bound for a path's length, by single patterns of each group and by pairs."""
        least = 1
        groups = [group for group in wanted.every if len(group) <= _FEW]
        for at, group in enumerate(groups):
            least = max(least, min(self._lengths[number] for number in group))
            for other in groups[:at]:
                self.budget.spend(len(group) * len(other))
                found = (
                    length_bounds.both(self._texts[a], self._texts[b], self.fold)
                    for a in group
                    for b in other
                )
                least = max(least, min(_NEVER if each is None else each for each in found))
        return least

    def _with_stems(self, witness: Witness, wanted: Wanted) -> Witness:
        """Put a letter before each dot that begins a name, where the path is still wanted."""
        names = witness.path.split("/")
        for at, name in enumerate(names):
            if name.startswith("."):
                longer = Witness("/".join([*names[:at], _STEM + name, *names[at + 1 :]]), witness.directory)
                if wanted.fits(self._matched(longer)):
                    witness, names = longer, longer.path.split("/")
        return witness

    def _some(self, wanted: Wanted) -> Witness | None:
        """Return any wanted path; None: no such path exists."""
        if self._names is None or (combined := self._combined(wanted)) is None:
            return self._search(wanted, sys.maxsize)
        none = self._relevant(wanted)
        open_ = False
        for branches in combined:
            answer = self._names.some(branches, none)
            found = answer.witness
            if found and _suits(found, wanted) and (not wanted.unless or wanted.fits(self._matched(found))):
                return found
            open_ = open_ or found is not None or not answer.sure
        return self._search(wanted, sys.maxsize) if open_ else None

    def _shortest(self, wanted: Wanted, most: int) -> Witness | None:
        """Return the shortest wanted path, unless it is longer than the limit."""
        if self._names is None or (combined := self._combined(wanted)) is None:
            return self._search(wanted, most)
        each = [self._names.shortest(branches) for branches in combined]
        known = dict.fromkeys(path for paths in each if paths for path in paths)
        if None not in each:
            least = min((len(path.path) for path in known), default=_NEVER)
            if least > most:
                return None
            # These are files where they can be, so they do not say which directory is the shortest.
            least_ones = [path for path in known if len(path.path) == least and not wanted.directory]
            fit = [path for path in least_ones if wanted.fits(self._matched(path))]
            if fit == least_ones and len(fit) == 1 and not wanted.unless:
                return fit[0]
            if fit:
                # Which of them is for the search to say, so that it is always the same one.
                return self._search(wanted, least)
        none = self._relevant(wanted)
        answers = (self._names.some(branches, none) for branches in combined)
        if all(answer.witness is None and answer.sure for answer in answers):
            return None
        return self._search(wanted, most)

    def _combined(self, wanted: Wanted) -> list[tuple[int, ...]] | None:
        """Return every combination of one alternative per group; None if there are too many, or no group."""
        own = self._name_rows.own
        groups = [[b for number in group for b in numbers(own[number])] for group in wanted.every]
        count = 1
        for group in groups:
            count *= len(group)
        if not groups or count > _MOST_COMBINED:
            return None
        return [tuple(dict.fromkeys(each)) for each in itertools.product(*groups)]

    def _relevant(self, wanted: Wanted) -> int:
        """Return the patterns in `none` that can match a path which is otherwise wanted."""
        none = wanted.none
        for group in wanted.every:
            if len(group) == 1:
                none &= self.near(group[0])
        return none

    def _search(self, wanted: Wanted, most: int) -> Witness | None:
        return Search(self._rows, self.budget, self._places(wanted), most).run()

    def _places(self, wanted: Wanted) -> Places:
        begin, own = self._begin, self._own
        return Places(
            tuple(numbers(begin(group)) for group in wanted.every) or ((self._everything,),),
            begin(numbers(self._relevant(wanted))),
            begin(number for item, _ in wanted.unless for number in item),
            begin(number for _, some in wanted.unless for number in some),
            tuple((own(item), own(excepts)) for item, excepts in wanted.unless),
            wanted.directory,
        )

    def _begin(self, some: Iterable[int]) -> int:
        bits = 0
        for number in some:
            bits |= self._begins[number]
        return bits

    def _own(self, some: Iterable[int]) -> int:
        bits = 0
        for number in some:
            bits |= (1 << self._first[number + 1]) - (1 << self._first[number])
        return bits

    def _known(self, wanted: Wanted) -> Witness | None:
        """Return a known example that is wanted, or None."""
        if self._names is not None:
            for number in wanted.every[0] if wanted.every else ():
                for witness, matched in self.examples(number):
                    if wanted.fits(matched) and _suits(witness, wanted):
                        return witness
        return None

    def examples(self, number: int) -> list[tuple[Witness, int]]:
        """Return some paths that a pattern matches, each with all patterns that match it, as bits."""
        found = self._examples.get(number)
        if found is None and self._names is not None:
            found = self._examples[number] = []
            filler = self._filler
            for branch in self._parsed[number].branches[:4]:
                for witness in _written(branch, filler):
                    matched = self._matched(witness)
                    if matched >> number & 1 and self._is_folded(witness):
                        found.append((witness, matched))
        return found or []

    def _matched(self, witness: Witness) -> int:
        """Return the patterns that match a path, as bits."""
        if self._names is None:
            return self._matched_by_character(witness)
        self.budget.spend(8 + len(witness.path) * (1 + self._name_rows.width // 256))
        return self._name_rows.matched(witness.path, witness.directory)

    def _matched_by_character(self, witness: Witness) -> int:
        everywhere = self._begin(range(len(self._begins)))
        self.budget.spend(len(witness.path) * (8 + self._rows.size // 256))
        reached = numbers(self._rows.read(everywhere, witness.path, witness.directory))
        return mask(bisect.bisect_right(self._first, place) - 1 for place in reached)

    def _remember(self, witness: Witness | None, wanted: Wanted) -> Witness | None:
        """Store a path as an example, and return it."""
        some = [number for group in wanted.every for number in group if number in self._examples]
        if not some or witness is None or not self._is_folded(witness):
            return witness
        matched = self._matched(witness)
        for number in some:
            if matched >> number & 1 and (witness, matched) not in self._examples[number]:
                self._examples[number] = [(witness, matched), *self._examples[number][: _EXAMPLES - 1]]
        return witness


def _suits(witness: Witness, wanted: Wanted) -> bool:
    """Whether a path is a directory, if only directories are wanted."""
    return witness.directory or not wanted.directory


def _written(branch: Branch, filler: str) -> Iterator[Witness]:
    """Yield a few paths that an alternative should match: stars as nothing and as text, and deeper paths."""
    for star, cross in (("", ""), (filler, ""), (filler, f"{filler}/")):
        path = ""
        for segment in branch.segments:
            if segment is CROSS:
                path += cross
                continue
            pieces = ("".join(a if isinstance(a, str) else filler for a in p) for p in segment.pieces)
            path += (star.join(pieces) or filler) + "/"
        if NO_NAMES.isdisjoint(path[:-1].split("/")):
            yield Witness(path[:-1], branch.directory)
            yield Witness(f"{path}{filler}", False)
