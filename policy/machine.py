"""All patterns of a policy as one machine that reads a path name by name.

Every pattern is a run of bits, one a name; reading a name is a few operations on big integers, whatever
the number of patterns. States are remembered, within a bound, and can be forgotten at any time.
Never backtracks and never sees a file: a path is only its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from policy.glob import ANY_NAME, CROSS, Atom, CharClass, Name, as_text, folded, parse

ROOT: Final = "."
_MAX_BYTES: Final = 16 * 1024 * 1024  # of remembered states; then all are forgotten
_MAX_NAMES: Final = 16_384
_MAX_DIRECTORIES: Final = 8_192
_NOT_NAMES: Final = frozenset({"", ".", ".."})


class State:
    """Where all patterns stand after some names; `memo` is the caller's, for what it concluded here."""

    __slots__ = ("bits", "memo", "next")

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.next: dict[Kind, State] = {}
        self.memo: dict[int, object] = {}


class Kind:
    """All names that no pattern tells apart; the bits are the places that such a name fits."""

    __slots__ = ("bits",)

    def __init__(self, bits: int) -> None:
        self.bits = bits


class Machine:
    """Reads paths against patterns. Bit order follows the order of the patterns given."""

    def __init__(self, patterns: Sequence[str], fold: bool = False) -> None:
        self.fold = fold
        self.owner: dict[int, int] = {}  # accepting bit -> index of its pattern
        self.steps = 0  # steps really worked out, for tests and benchmarks
        places: dict[Name, list[int]] = {}
        starts: list[int] = []
        cross: list[int] = []
        final: list[int] = []
        at_root: list[int] = []
        self._only: list[tuple[list[int], list[int]]] = []
        at = 0
        for index, text in enumerate(patterns):
            whole: list[int] = []
            fresh: list[int] = []
            for branch in parse(text, fold).branches:
                starts.append(at)
                for segment in branch.segments:
                    if segment is CROSS:
                        cross.append(at)
                    else:
                        places.setdefault(segment, []).append(at)
                    at += 1
                if branch.directory:  # one more bit: reached here, not yet below it
                    fresh.append(at)
                    places.setdefault(ANY_NAME, []).append(at)
                    at += 1
                whole.append(at)
                if branch.root:
                    at_root.append(at)
                at += 1
            final += whole
            self._only.append((whole, fresh))
            self.owner.update(dict.fromkeys(whole + fresh, index))
        self.size = at
        self._cross = to_bits(cross)
        self._stay = self._cross | to_bits(final)
        self._any = to_bits(places.pop(ANY_NAME, []))
        self._names = Names(places)
        begin = to_bits(starts)
        self._begin = begin | (begin & self._cross) << 1
        self._at_root = to_bits(at_root)
        self._forget()

    def mask(self, indexes: Iterable[int]) -> tuple[int, int]:
        """Return the accepting bits of some patterns: for what is no directory, and for a directory."""
        whole: list[int] = []
        fresh: list[int] = []
        for index in indexes:
            whole += self._only[index][0]
            fresh += self._only[index][1]
        bits = to_bits(whole)
        return bits, bits | to_bits(fresh)

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
        bits = state.bits
        bits = (bits & kind.bits) << 1 | bits & self._stay
        bits |= (bits & self._cross) << 1
        if self._spent > _MAX_BYTES:
            self._forget()
        after = self._states.get(bits)
        if after is None:
            after = self._states[bits] = State(bits)
            self._spent += 400 + self.size // 7
        state.next[kind] = after
        self._spent += 100
        return after

    def _kind(self, name: str) -> Kind:
        if name in _NOT_NAMES or "/" in name:
            raise ValueError(f"not a name in a canonical path: {name!r}")
        found = self._names.find(folded(name) if self.fold else name)
        kind = self._kinds.get(found)
        if kind is None:
            kind = self._kinds[found] = Kind(self._any | self._names.bits(found))
            self._spent += 400 + self.size // 7
        if len(self._kinds_of) >= _MAX_NAMES:
            self._kinds_of.clear()
        if len(name) < 256:
            self._kinds_of[name] = kind
        return kind

    def _forget(self) -> None:
        self.root = State(self._begin)
        self.top = State(self._at_root)
        self._states: dict[int, State] = {self._begin: self.root}
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
        for index, name in enumerate(places):
            literal = name.literal
            if literal is not None:
                self._whole[literal] = index
                continue
            head, tail = as_text(name.pieces[0]), as_text(name.pieces[-1])
            starred = len(name.pieces) == 2
            if tail and len(name.pieces) > 1:
                test = None if starred and not name.pieces[0] else Matcher(name)
                self._tails.setdefault(tail, []).append((index, test))
            elif head and len(name.pieces) > 1:
                test = None if starred and not name.pieces[1] else Matcher(name)
                self._heads.setdefault(head, []).append((index, test))
            else:
                self._rest.append((index, Matcher(name)))
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

    def bits(self, found: tuple[int, ...]) -> int:
        """Return the places of these."""
        return to_bits(place for index in found for place in self._places[index])


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


def to_bits(places: Iterable[int]) -> int:
    """Return the integer with these bits set, in time of its length and not of its square."""
    listed = places if isinstance(places, list) else list(places)
    if len(listed) < 4:
        bits = 0
        for place in listed:
            bits |= 1 << place
        return bits
    data = bytearray(max(listed) // 8 + 1)
    for place in listed:
        data[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(data, "little")


def matches(pattern: str, path: str, directory: bool = False, *, fold: bool = False) -> bool:
    """Whether one pattern matches a path, or a directory above it. Text that is no path is not matched."""
    machine = Machine([pattern], fold)
    try:
        state = machine.at(path)
    except ValueError:
        return False
    return bool(state.bits & machine.mask([0])[directory or path == ROOT])
