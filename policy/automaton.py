"""Searches all paths at once: is there one that some patterns match and others do not, and which is shortest?

Patterns become rows of bits read character by character. The search is breadth-first and keeps only what
no other node makes superfluous (antichains). Past its bound it raises `Undecided`; it never guesses.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from policy.errors import hidden
from policy.glob import ANY_CHARACTER, CROSS, Branch, CharClass, Name, parse

MAX_WORK: Final = 600_000_000  # about the words of bits touched; half a minute
MAX_BYTES: Final = 384 * 1024 * 1024  # of nodes held by one question
_NICE: Final = "xabcdefghijklmnopqrstuvwyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-+=@ "
_DOT: Final = "."


class Undecided(Exception):
    """The question is too complex for the bound; there is no answer, not a "no"."""


@dataclass(slots=True)
class Budget:
    """The work that is left for a row of questions."""

    work: int = MAX_WORK

    def spend(self, amount: int) -> None:
        self.work -= amount
        if self.work < 0:
            raise Undecided("too complex: the bound on the work was reached")


@dataclass(frozen=True, slots=True)
class Witness:
    """A path, and whether it is a directory."""

    path: str
    directory: bool

    def __str__(self) -> str:
        return f"{self.path}/" if self.directory and self.path != "." else self.path


@dataclass(frozen=True, slots=True)
class Wanted:
    """Paths that one pattern of each group in `every` matches, none of `none`, and for each item of
    `unless` nothing of its first part unless something of its second. Patterns are given by number."""

    every: tuple[tuple[int, ...], ...] = ()
    none: frozenset[int] = frozenset()
    unless: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = ()

    def __and__(self, other: Wanted) -> Wanted:
        every = dict.fromkeys((*self.every, *other.every))
        return Wanted(tuple(every), self.none | other.none, (*self.unless, *other.unless))

    def impossible(self) -> bool:
        """Whether one and the same pattern is wanted and not wanted."""
        return any(self.none.issuperset(group) for group in self.every)


@dataclass(slots=True)
class _Rows:
    """The bits of all patterns, by what each of them waits for."""

    letters: dict[str, int] = field(default_factory=dict)
    classes: dict[CharClass, int] = field(default_factory=dict)
    anyone: int = 0  # a `?`
    star: int = 0
    cross: int = 0  # at the start of a name that `**` may skip
    inside: int = 0  # within a name that `**` skips
    whole: int = 0  # a whole name has matched
    directory: int = 0  # the same, for directories only
    below: int = 0  # below something that has matched
    size: int = 0

    def bit(self) -> int:
        self.size += 1
        return 1 << (self.size - 1)

    def letter(self, character: str) -> None:
        self.letters[character] = self.letters.get(character, 0) | self.bit()

    def add(self, branch: Branch, *, covers: bool) -> int:
        """Lay out one alternative; returns its first bit."""
        first = 1 << self.size
        last = len(branch.segments) - 1
        for at, segment in enumerate(branch.segments):
            if segment is CROSS:
                self.cross |= self.bit()
                self.inside |= self.bit()
                continue
            self._name(segment)
            if at < last:
                self.letter("/")
        if branch.directory:
            self.directory |= self.bit()
        else:
            self.whole |= self.bit()
        if covers:
            self.below |= self.bit()
        else:
            self.bit()
        return first

    def _name(self, name: Name) -> None:
        for number, piece in enumerate(name.pieces):
            if number:
                self.star |= self.bit()
            for atom in piece:
                if isinstance(atom, str):
                    for character in atom:
                        self.letter(character)
                elif atom == ANY_CHARACTER:
                    self.anyone |= self.bit()
                else:
                    self.classes[atom] = self.classes.get(atom, 0) | self.bit()


class Automaton:
    """Patterns by number, and questions about them. `covers`: a match covers everything below."""

    def __init__(self, patterns: Sequence[str], *, covers: bool = True, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        rows = _Rows()
        self._starts: list[tuple[int, ...]] = []
        self._own: list[int] = []
        self._root: list[bool] = []
        for text in patterns:
            start = rows.size
            branches = parse(text).branches
            self._starts.append(tuple(rows.add(branch, covers=covers) for branch in branches))
            self._own.append((1 << rows.size) - (1 << start))
            self._root.append(any(branch.root for branch in branches))
        everything = rows.size
        rows.below |= rows.bit()  # a pattern for "any path whatever"
        self._everything = everything
        self._words = 8 + rows.size // 64
        self._rows = rows
        self._alphabet(rows)
        self._after: dict[tuple[int, int], tuple[int, ...]] = {}
        self._takes: dict[int, tuple[int, ...] | None] = {}
        self._begins = [self._close(sum(starts)) for starts in self._starts]

    def _alphabet(self, rows: _Rows) -> None:
        """Choose one character for all that no pattern tells apart; the first classes make nicer paths."""
        chosen: dict[tuple[object, ...], str] = {}
        for character in _candidates(rows):
            kinds = tuple(kind for kind in rows.classes if character in kind)
            literal = character if character in rows.letters or character == _DOT else None
            chosen.setdefault((literal, kinds), character)
        order = {character: number for number, character in enumerate(_NICE)}
        self._characters = sorted(chosen.values(), key=lambda each: (order.get(each, len(order)), each))
        self._special = [
            rows.letters.get(each, 0) | sum(bits for kind, bits in rows.classes.items() if each in kind)
            for each in self._characters
        ]
        self._moves = [special | rows.cross | rows.anyone for special in self._special]
        self._stays = rows.star | rows.inside | rows.below
        self._slash = rows.letters.get("/", 0) | rows.whole | rows.directory
        self._accepts = (rows.whole | rows.below, rows.whole | rows.below | rows.directory)
        self._dot = self._characters.index(_DOT)

    def _close(self, bits: int) -> int:
        bits |= (bits & self._rows.cross) << 2
        return bits | (bits & self._rows.star) << 1

    def _step(self, bits: int, number: int) -> int:
        """Read a character; -1 is a slash."""
        if number < 0:
            moved = (bits & self._slash) << 1 | (bits & self._rows.inside) >> 1 | bits & self._rows.below
        else:
            moved = (bits & self._moves[number]) << 1 | bits & self._stays
        return self._close(moved)

    def find(self, wanted: Iterable[Wanted], *, first: bool = False) -> Witness | None:
        """Return the shortest path that one of these describes, or None: there is none.

        With `first` the first one found will do.
        """
        best: Witness | None = None
        rooted = None
        for each in wanted:
            if each.impossible():
                continue
            found = self._search(each, len(best.path) - 1 if best else sys.maxsize)
            best = found or best
            if rooted is None and best is None and self._fits_root(each):
                rooted = Witness(".", True)
            if best and (first or len(best.path) == 1):
                break
        return best or rooted

    def holds(self, left: int, right: Iterable[int]) -> bool:
        """Whether everything that one pattern matches is matched by one of others."""
        return self.find([Wanted(((left,),), frozenset(right))]) is None

    def meet(self, one: int, other: int) -> bool:
        """Whether some path is matched by both."""
        return self.find([Wanted(((one,), (other,)))]) is not None

    def _fits_root(self, wanted: Wanted) -> bool:
        def any_of(numbers: Iterable[int]) -> bool:
            return any(self._root[number] for number in numbers)

        return (
            all(any_of(group) for group in wanted.every)
            and not any_of(wanted.none)
            and all(not any_of(item) or any_of(excepts) for item, excepts in wanted.unless)
        )

    def _search(self, wanted: Wanted, most: int) -> Witness | None:
        return _Search(self, wanted, most).run()

    # For `_Search`, which works on the bits.

    def places(self, group: Iterable[int]) -> tuple[int, ...]:
        """The single places where the patterns of a group begin."""
        return _single(self.begin(group))

    def begin(self, numbers: Iterable[int]) -> int:
        bits = 0
        for number in numbers:
            bits |= self._begins[number]
        return bits

    def own(self, numbers: Iterable[int]) -> int:
        bits = 0
        for number in numbers:
            bits |= self._own[number]
        return bits

    def after(self, place: int, number: int) -> tuple[int, ...]:
        """Where one place leads by a character."""
        key = (place, number)
        found = self._after.get(key)
        if found is None:
            found = self._after[key] = _single(self._step(1 << place, number))
        return found

    def takes(self, place: int) -> tuple[int, ...] | None:
        """Which characters a place can read; None: every one in the same way."""
        if place not in self._takes:
            bit = 1 << place
            alike = bit & (self._stays | self._rows.cross | self._rows.anyone)
            self._takes[place] = (
                None if alike else tuple(n for n, moves in enumerate(self._moves) if moves & bit)
            )
        return self._takes[place]


@dataclass(frozen=True, slots=True)
class _Node:
    """Where the wanted patterns stand (one place each), and the sets of places of all others."""

    places: tuple[int, ...]
    valid: int  # 0 at a name's start, 1 after ".", 2 after "..", 3 within a name
    none: int
    items: int
    excepts: int
    before: int
    character: str


class _Search:
    """One question."""

    def __init__(self, automaton: Automaton, wanted: Wanted, most: int) -> None:
        self.a = automaton
        self.wanted = wanted
        self.most = most
        self.nodes: list[_Node] = []
        self.kept: dict[tuple[tuple[int, ...], int], list[tuple[int, int, int]]] = {}
        self.held = 0
        self.unless = [(automaton.own(item), automaton.own(excepts)) for item, excepts in wanted.unless]

    def run(self) -> Witness | None:
        groups = [self.a.places(group) for group in self.wanted.every] or [(self.a._everything,)]
        none = self.a.begin(self.wanted.none)
        items = self.a.begin(number for item, _ in self.wanted.unless for number in item)
        excepts = self.a.begin(number for _, some in self.wanted.unless for number in some)
        for places in itertools.product(*groups):
            self._add(tuple(sorted(set(places))), 0, none, items, excepts, -1, "")
        at, depth, end = 0, 0, len(self.nodes)
        while at < len(self.nodes):
            if at == end:
                depth, end = depth + 1, len(self.nodes)
            if depth > self.most:
                return None
            node = self.nodes[at]
            if node.valid == 3:
                for directory in (False, True):
                    if self._accepted(node, self.a._accepts[directory]):
                        return Witness(self._path(node), directory)
            self._expand(at, node)
            at += 1
        return None

    def _accepted(self, node: _Node, accepts: int) -> bool:
        if any(not 1 << place & accepts for place in node.places) or node.none & accepts:
            return False
        return all(
            not node.items & accepts & item or node.excepts & accepts & some for item, some in self.unless
        )

    def _path(self, node: _Node) -> str:
        letters = []
        while node.before >= 0:
            letters.append(node.character)
            node = self.nodes[node.before]
        return "".join(reversed(letters))

    def _expand(self, at: int, node: _Node) -> None:
        step = self.a._step
        for number in self._characters(node):
            character = "/" if number < 0 else self.a._characters[number]
            valid = _next_valid(node.valid, character)
            afters = [self.a.after(place, number) for place in node.places]
            if not all(afters):
                continue
            none, items, excepts = (
                step(bits, number) if bits else 0 for bits in (node.none, node.items, node.excepts)
            )
            self.a.budget.spend(self.a._words * 3)
            for places in itertools.product(*afters):
                self._add(tuple(sorted(set(places))), valid, none, items, excepts, at, character)

    def _characters(self, node: _Node) -> Iterable[int]:
        """The characters worth reading here: one stands for all that lead to the same."""
        if node.valid == 3:
            yield -1
        lists = [taken for place in node.places if (taken := self.a.takes(place)) is not None]
        if lists:
            chosen = set(lists[0]).intersection(*lists[1:])
            yield from sorted(chosen)
            return
        bits = node.none | node.items | node.excepts
        plain = False
        self.a.budget.spend(self.a._words)
        for number, special in enumerate(self.a._special):
            if number == self.a._dot or bits & special:
                yield number
            elif not plain:
                plain = True
                yield number

    def _add(
        self, places: tuple[int, ...], valid: int, none: int, items: int, excepts: int, at: int, letter: str
    ) -> None:
        if none & self.a._rows.below:
            return  # everything below is matched by what must not match
        kept = self.kept.setdefault((places, valid), [])
        for other_none, other_items, other_excepts in kept:
            if not (other_none & ~none or other_items & ~items or excepts & ~other_excepts):
                return
        self.a.budget.spend(self.a._words * (1 + len(kept)))
        kept.append((none, items, excepts))
        self.nodes.append(_Node(places, valid, none, items, excepts, at, letter))
        self.held += 300 + (none.bit_length() + items.bit_length() + excepts.bit_length()) // 8
        if self.held > MAX_BYTES:
            raise Undecided("too complex: the bound on memory was reached")


def _next_valid(valid: int, character: str) -> int:
    if character == "/":
        return 0
    return valid + 1 if character == _DOT and valid < 2 else 3


def _single(bits: int) -> tuple[int, ...]:
    """The numbers of the bits that are set."""
    out = []
    while bits:
        low = bits & -bits
        out.append(low.bit_length() - 1)
        bits ^= low
    return tuple(out)


def _candidates(rows: _Rows) -> Iterable[str]:
    """Characters among which each class of characters that can be told apart has one."""
    yield from _NICE
    yield _DOT
    edges = {ord(each) + step for each in rows.letters for step in (0, 1)}
    for kind in rows.classes:
        for low, high in kind.ranges:
            edges.update((ord(low), ord(low) + 1, ord(high), ord(high) + 1))
    edges.update((0x21, 0x7F, 0xA1, 0x100, 0x400, 0x3042, 0x4E00, 0x1F600))
    for start, end in itertools.pairwise(sorted(edges | {0x110000})):
        found = next((chr(n) for n in range(start, min(end, start + 512)) if _in_paths(chr(n))), None)
        if found:
            yield found


def _in_paths(character: str) -> bool:
    return character not in "/\\" and not hidden(character)
