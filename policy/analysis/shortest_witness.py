"""Search for the shortest path that some patterns match and others do not.

Nodes nearest to a match come first, and redundant nodes are dropped (antichains; De Wulf, Doyen, Henzinger
and Raskin 2006). Beyond its bound the search raises `Undecided`; it never guesses.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final

from ringfence.policy.analysis.bit_nfa import SLASH, BitNfa
from ringfence.policy.value_classes import dataclass

MAX_WORK: Final = 600_000_000  # spent on steps, by how many words of bits they touch; about a minute
MAX_BYTES: Final = 384 * 1024 * 1024  # of the nodes of one question
_STEP: Final = 24  # what a step costs however few patterns there are
_WORDS: Final = 256  # bits that cost as much as one unit more
_START, _NAMED = 0, 3  # at a name's start, 1 after ".", 2 after "..", 3 within a name


Expired = Callable[[], bool]


class Undecided(Exception):
    """The question is too complex for the bound; the answer is unknown, not "no"."""


@dataclass(slots=True)
class Budget:
    """The work left for a sequence of questions; `expired` says whether a deadline has passed.

    The reserved part is left for later questions, however much the first ones take.
    """

    work: int = MAX_WORK
    expired: Expired | None = None
    reserved: int = 0

    @property
    def over(self) -> bool:
        """Whether no further question can be answered."""
        return self.work < self.reserved or (self.expired is not None and self.expired())

    def share(self, parts: int) -> None:
        """Reserve all but one of `parts` equal parts of the work for later questions."""
        self.reserved = self.work - self.work // parts if self.work > 0 else 0

    def spend(self, amount: int) -> None:
        """Take an amount of work; Undecided once the budget is spent or the deadline has passed."""
        self.work -= amount
        if self.work < self.reserved:
            raise Undecided("too complex: the bound on the work was reached")
        if self.expired is not None and self.expired():
            raise Undecided("too complex: the deadline passed")


@dataclass(frozen=True, slots=True)
class Witness:
    """A path, and whether it is a directory."""

    path: str
    directory: bool

    def __str__(self) -> str:
        return f"{self.path}/" if self.directory and self.path != "." else self.path


@dataclass(frozen=True, slots=True)
class Places:
    """The goal, as bits: one position of each group, and none of `none`.

    For each item of `unless`, no position of the first part unless there is one of the second.
    """

    groups: tuple[tuple[int, ...], ...]
    none: int
    items: int
    excepts: int
    unless: tuple[tuple[int, int], ...]
    directory: bool = False


@dataclass(frozen=True, slots=True)
class _Node:
    """The positions of the wanted patterns (one each), and the sets of positions of all others."""

    places: tuple[int, ...]
    valid: int
    none: int
    items: int
    excepts: int
    length: int
    before: int
    character: str


class Search:
    """One question."""

    def __init__(self, rows: BitNfa, budget: Budget, wanted: Places, most: int) -> None:
        self._rows = rows
        self._budget = budget
        self._wanted = wanted
        self._most = most  # the length of a path that would do
        most = max(wanted.none, wanted.items, wanted.excepts).bit_length()
        self._cost = _STEP + most // _WORDS
        self._nodes: list[_Node] = []
        self._waiting: dict[int, list[int]] = {}  # nodes by how long a path through them must be
        self._visited: dict[tuple[tuple[int, ...], int], list[tuple[int, int, int, int]]] = {}
        self._bytes_used = 0

    def run(self) -> Witness | None:
        """Return the shortest path; None: no path within the limit exists."""
        wanted = self._wanted
        for places in itertools.product(*wanted.groups):
            self._budget.spend(1)
            self._add(
                tuple(sorted(set(places))), _START, wanted.none, wanted.items, wanted.excepts, 0, -1, ""
            )
        while self._waiting:
            least = min(self._waiting)
            if least > self._most:
                return None
            queue = self._waiting[least]
            for at in queue:  # grows while it is read
                node = self._nodes[at]
                if node.valid == _NAMED and node.length == least and (found := self._matched(node)):
                    return found
                self._expand(at, node)
            del self._waiting[least]
        return None

    def _matched(self, node: _Node) -> Witness | None:
        for directory in (True,) if self._wanted.directory else (False, True):
            accepts = self._rows.accepts[directory]
            if all(1 << place & accepts for place in node.places) and not node.none & accepts:
                items, excepts = node.items & accepts, node.excepts & accepts
                if all(not items & one or excepts & other for one, other in self._wanted.unless):
                    return Witness(self._path(node), directory)
        return None

    def _path(self, node: _Node) -> str:
        letters = []
        while node.before >= 0:
            letters.append(node.character)
            node = self._nodes[node.before]
        return "".join(reversed(letters))

    def _expand(self, at: int, node: _Node) -> None:
        rows = self._rows
        length = node.length + 1
        for number in self._characters(node):
            character = "/" if number == SLASH else rows.characters[number]
            afters = [rows.after(place, number) for place in node.places]
            if not all(afters):
                continue
            valid = _next_valid(node.valid, character)
            none = rows.step(node.none, number) if node.none else 0
            items = rows.step(node.items, number) if node.items else 0
            excepts = rows.step(node.excepts, number) if node.excepts else 0
            self._budget.spend(self._cost)
            for places in itertools.product(*afters):
                one = places if len(places) == 1 else tuple(sorted(set(places)))
                self._add(one, valid, none, items, excepts, length, at, character)

    def _characters(self, node: _Node) -> Iterator[int]:
        """Return the characters worth reading here, one for each set of equivalent characters."""
        if node.valid == _NAMED:
            yield SLASH
        lists = [taken for place in node.places if (taken := self._rows.takes(place)) is not None]
        if lists:
            yield from sorted(set(lists[0]).intersection(*lists[1:]))
            return
        bits = node.none | node.items | node.excepts
        plain = False
        self._budget.spend(self._cost)
        for number, special in enumerate(self._rows.special):
            if number == self._rows.dot or bits & special:
                yield number
            elif not plain:
                plain = True
                yield number

    def _add(  # noqa: PLR0913  the inner loop: an object per node would cost more than the step
        self,
        places: tuple[int, ...],
        valid: int,
        none: int,
        items: int,
        excepts: int,
        length: int,
        at: int,
        letter: str,
    ) -> None:
        least = length + max(map(self._rows.least.__getitem__, places))
        if least > self._most or none & self._rows.below:
            return  # too long, or everything below is matched by what must not match
        visited = self._visited.setdefault((places, valid), [])
        for other_none, other_items, other_excepts, other in visited:
            if (
                other <= length
                and not other_none & ~none
                and not other_items & ~items
                and not excepts & ~other_excepts
            ):
                return
        self._budget.spend(self._cost * (1 + len(visited) // 4))
        visited.append((none, items, excepts, length))
        self._waiting.setdefault(least, []).append(len(self._nodes))
        self._nodes.append(_Node(places, valid, none, items, excepts, length, at, letter))
        self._bytes_used += 400 + (none.bit_length() + items.bit_length() + excepts.bit_length()) // 8
        if self._bytes_used > MAX_BYTES:
            raise Undecided("too complex: the bound on memory was reached")


def _next_valid(valid: int, character: str) -> int:
    if character == "/":
        return _START
    return valid + 1 if character == "." and valid < 2 else _NAMED
