"""All patterns of a policy as one machine that reads a path name by name.

A place is a name of a pattern that is waited for; a state is the set of places reached. What every state has
(patterns at any depth wait everywhere) is kept apart, so a step costs what is special to the path, not the
number of patterns. States are remembered, within a bound, and can be forgotten at any time. Never backtracks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from policy.glob import ANY_NAME, CROSS, Atom, Branch, CharClass, Name, as_text, folded, parse

ROOT: Final = "."
_MAX_BYTES: Final = 32 * 1024 * 1024  # of remembered states, about; then all are forgotten
_MAX_NAMES: Final = 16_384
_MAX_DIRECTORIES: Final = 8_192
_NOT_NAMES: Final = frozenset({"", ".", ".."})

Places = frozenset[int]
Span = tuple[int, int]


class State:
    """The places reached by some names; `memo` is the caller's, for what it concluded here."""

    __slots__ = ("carried", "memo", "next", "places")

    def __init__(self, places: Places) -> None:
        self.places = places
        self.carried: Places | None = None  # what any name whatever leads to
        self.next: dict[Kind, State] = {}
        self.memo: dict[int, object] = {}

    @property
    def bits(self) -> Places:
        """The places, to be met with a `Machine.mask`."""
        return self.places


class Kind:
    """All names that no pattern tells apart: the places they fit, and where they lead from anywhere."""

    __slots__ = ("anywhere", "fits")

    def __init__(self, fits: Places, anywhere: Places) -> None:
        self.fits = fits
        self.anywhere = anywhere


@dataclass(slots=True)
class _Layout:
    """The places of all patterns in a row: each branch one place a name, then one where it has matched."""

    names: dict[Name, list[int]] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    everywhere: list[int] = field(default_factory=list)  # waited for in every state
    cross: list[int] = field(default_factory=list)
    final: list[int] = field(default_factory=list)
    fresh: list[int] = field(default_factory=list)  # matched if it is a directory; below it, final
    at_root: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    size: int = 0

    def add(self, branches: Iterable[Branch]) -> None:
        start = self.size
        for branch in branches:
            self._add(branch)
        self.spans.append((start, self.size))

    def _add(self, branch: Branch) -> None:
        at = self.size
        if branch.segments[0] is CROSS:
            self.everywhere += [at, at + 1]
        else:
            self.starts.append(at)
        for segment in branch.segments:
            if segment is CROSS:
                self.cross.append(at)
            else:
                self.names.setdefault(segment, []).append(at)
            at += 1
        if branch.directory:
            self.fresh.append(at)
            self.names.setdefault(ANY_NAME, []).append(at)
            at += 1
        if branch.root:
            self.at_root.append(at)
        self.final.append(at)
        self.size = at + 1


class Machine:
    """Reads paths against patterns. The order of places follows the order of the patterns given."""

    def __init__(self, patterns: Sequence[str], fold: bool = False) -> None:
        self.fold = fold
        self.steps = 0  # steps really worked out, for tests and benchmarks
        layout = _Layout()
        for text in patterns:
            layout.add(parse(text, fold).branches)
        self.spans = layout.spans
        self._final = frozenset(layout.final)
        self._final_or_fresh = self._final | frozenset(layout.fresh)
        self._everywhere = frozenset(layout.everywhere)
        self._cross = frozenset(layout.cross)
        self._stay = self._cross | self._final
        self._any = frozenset(layout.names.pop(ANY_NAME, ()))
        self._any_everywhere = self._any & self._everywhere
        self._names = Names(layout.names)
        self._begin = frozenset(layout.starts)
        self._at_root = frozenset(layout.at_root)
        self._forget()

    def span(self, indexes: range) -> Span:
        """Return the places of patterns that stand in a row."""
        return self.spans[indexes[0]][0], self.spans[indexes[-1]][1]

    def mask(self, indexes: Iterable[int]) -> tuple[Places, Places]:
        """Return where some patterns have matched: for what is no directory, and for a directory."""
        own = {place for index in indexes for place in range(*self.spans[index])}
        return self._final & own, self._final_or_fresh & own

    def matched(self, state: State, directory: bool) -> list[int]:
        """Return the places where patterns have matched, the last pattern first."""
        return sorted(state.places & (self._final_or_fresh if directory else self._final), reverse=True)

    def at(self, path: str) -> State:
        """Return the state for a canonical path; ValueError for text that is none."""
        if path == ROOT:
            return self.top
        head, slash, name = path.rpartition("/")
        if not slash:
            return self.step(self.root, name)
        state = self._directories.get(head)
        if state is None:
            state = self.root
            for part in head.split("/"):
                state = self.step(state, part)
            if len(self._directories) >= _MAX_DIRECTORIES:
                self._directories.clear()
            self._directories[head] = state
        return self.step(state, name)

    def step(self, state: State, name: str) -> State:
        """Return the state one name further down."""
        kind = self._kinds_of.get(name)
        if kind is None:
            kind = self._kind(name)
        after = state.next.get(kind)
        return after if after is not None else self._step(state, kind)

    def note(self, state: State, key: int, value: object) -> None:
        """Remember a conclusion with a state."""
        state.memo[key] = value
        self._spent += 100

    def _step(self, state: State, kind: Kind) -> State:
        self.steps += 1
        if state.carried is None:
            state.carried = self._carried(state.places)
        moved = {place + 1 for place in state.places & kind.fits}
        moved.update([place + 1 for place in moved & self._cross])
        places = kind.anywhere.union(state.carried, moved)
        if self._spent > _MAX_BYTES:
            self._forget()
        after = self._states.get(places)
        if after is None:
            after = self._states[places] = State(places)
            self._spent += 500 + 100 * len(places)
        state.next[kind] = after
        self._spent += 100
        return after

    def _carried(self, here: Places) -> Places:
        moved = {place + 1 for place in here & self._any}
        moved |= here & self._stay
        moved.update([place + 1 for place in moved & self._cross])
        self._spent += 100 * len(moved)
        return frozenset(moved)

    def _kind(self, name: str) -> Kind:
        if name in _NOT_NAMES or "/" in name:
            raise ValueError(f"not a name in a canonical path: {name!r}")
        found = self._names.find(folded(name) if self.fold else name)
        kind = self._kinds.get(found)
        if kind is None:
            kind = self._kinds[found] = self._new_kind(self._names.places(found))
        if len(self._kinds_of) >= _MAX_NAMES:
            self._kinds_of.clear()
        if len(name) < 256:
            self._kinds_of[name] = kind
        return kind

    def _new_kind(self, fits: Places) -> Kind:
        anywhere = {place + 1 for place in fits & self._everywhere}
        anywhere.update(place + 1 for place in self._any_everywhere)
        anywhere.update([place + 1 for place in anywhere & self._cross])
        self._spent += 500 + 100 * (len(fits) + len(anywhere))
        return Kind(fits, frozenset(anywhere))

    def _forget(self) -> None:
        self.root = State(self._begin)
        self.top = State(self._at_root)
        self._states: dict[Places, State] = {self._begin: self.root}
        self._kinds: dict[tuple[int, ...], Kind] = {}
        self._kinds_of: dict[str, Kind] = {}
        self._directories: dict[str, State] = {}
        self._spent = 0


class Names:
    """Finds which of some names of patterns fit a name: by dict where it can, one by one for the rest."""

    def __init__(self, places: dict[Name, list[int]]) -> None:
        self._places = list(places.values())
        self._whole: dict[str, int] = {}
        self._tails: dict[str, list[tuple[int, Matcher | None]]] = {}
        self._heads: dict[str, list[tuple[int, Matcher | None]]] = {}
        self._rest: list[tuple[int, Matcher]] = []
        heads = Counter(as_text(name.pieces[0]) for name in places)
        tails = Counter(as_text(name.pieces[-1]) for name in places)
        for index, name in enumerate(places):
            if name.literal is not None:
                self._whole[name.literal] = index
                continue
            head, tail = as_text(name.pieces[0]), as_text(name.pieces[-1])
            test = None if _only_an_end(name) else Matcher(name)
            if len(name.pieces) == 1 or not (head or tail):
                self._rest.append((index, Matcher(name)))
            elif head and (not tail or heads[head] <= tails[tail]):  # by the rarer of the two
                self._heads.setdefault(head, []).append((index, test))
            elif tail:
                self._tails.setdefault(tail, []).append((index, test))
        self._tail_lengths = sorted({len(tail) for tail in self._tails})
        self._head_lengths = sorted({len(head) for head in self._heads})

    def find(self, name: str) -> tuple[int, ...]:
        """Return the indexes of all that fit."""
        found: list[int] = []
        whole = self._whole.get(name)
        if whole is not None:
            found.append(whole)
        for length in self._tail_lengths:
            for index, test in self._tails.get(name[-length:], ()):
                if test is None or test.fits(name):
                    found.append(index)
        for length in self._head_lengths:
            for index, test in self._heads.get(name[:length], ()):
                if test is None or test.fits(name):
                    found.append(index)
        found += [index for index, test in self._rest if test.fits(name)]
        return tuple(found)

    def places(self, found: tuple[int, ...]) -> Places:
        """Return the places of these."""
        return frozenset(place for index in found for place in self._places[index])


class Matcher:
    """Fits a name against the pieces between the stars, each found once and leftmost: linear work."""

    __slots__ = ("_after", "_head", "_least", "_middle", "_single", "_tail")

    def __init__(self, name: Name) -> None:
        pieces = name.pieces
        self._single = len(pieces) == 1
        self._head = _piece(pieces[0])
        self._after = len(pieces[0])
        self._middle = [(_piece(piece), len(piece)) for piece in pieces[1:-1]]
        self._tail = (_piece(pieces[-1]), len(pieces[-1]))
        self._least = sum(len(piece) for piece in pieces)

    def fits(self, name: str) -> bool:
        if len(name) < self._least or not _starts(self._head, name, 0):
            return False
        if self._single:
            return len(name) == self._least
        tail, length = self._tail
        end = len(name) - length
        if not _starts(tail, name, end):
            return False
        at = self._after
        for piece, size in self._middle:
            at = _find(piece, name, at, end)
            if at < 0:
                return False
            at += size
        return at <= end


Piece = str | re.Pattern[str]


def _only_an_end(name: Name) -> bool:
    """Whether a name is a text and a star, or a star and a text: finding the text is all."""
    return len(name.pieces) == 2 and () in name.pieces


def _piece(atoms: tuple[Atom, ...]) -> Piece:
    text = as_text(atoms)
    if text is not None:
        return text
    return re.compile("".join(_expression(atom) for atom in atoms), re.DOTALL)


def _expression(atom: Atom) -> str:
    if isinstance(atom, CharClass):
        if not atom.ranges:
            return "." if atom.negated else "(?!)"
        inner = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in atom.ranges)
        return f"[{'^' if atom.negated else ''}{inner}]"
    return re.escape(atom)


def _starts(piece: Piece, name: str, at: int) -> bool:
    if isinstance(piece, str):
        return name.startswith(piece, at)
    return piece.match(name, at) is not None


def _find(piece: Piece, name: str, at: int, end: int) -> int:
    if isinstance(piece, str):
        return name.find(piece, at, end)
    found = piece.search(name, at, end)
    return found.start() if found else -1


def matches(pattern: str, path: str, directory: bool = False, *, fold: bool = False) -> bool:
    """Whether one pattern matches a path, or a directory above it. Text that is no path is not matched."""
    machine = Machine([pattern], fold)
    try:
        state = machine.at(path)
    except ValueError:
        return False
    return bool(machine.matched(state, directory or path == ROOT))
