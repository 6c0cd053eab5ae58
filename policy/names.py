"""Finds which names of patterns fit a name of a path: by dict where it can, one by one for the rest.

What is looked up grows with the name's length, not with the number of patterns. Never backtracks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

from policy.glob import Atom, CharClass, Name, as_text

_FEW: Final = 8  # names that are as quickly tried one by one
_LONGEST: Final = 4  # characters of a text that is looked up wherever it stands

Listed = list[tuple[int, Name]]


class Names:
    """An index of names by their whole text, else by the rarer of beginning and end, else by text within."""

    def __init__(self, names: Iterable[Name]) -> None:
        self._whole: dict[str, int] = {}
        starred: Listed = []
        for index, name in enumerate(names):
            text = name.literal
            if text is None:
                starred.append((index, name))
            else:
                self._whole[text] = index
        ends = [(_end(name, 0), _end(name, -1)) for _, name in starred]
        heads = Counter(head for head, _ in ends)
        tails = Counter(tail for _, tail in ends)
        by_head: dict[str, Listed] = {}
        by_tail: dict[str, Listed] = {}
        for each, (head, tail) in zip(starred, ends, strict=True):
            by_its_head = head and (not tail or heads[head] <= tails[tail])
            listed = by_head.setdefault(head, []) if by_its_head else by_tail.setdefault(tail, [])
            listed.append(each)
        self._rest = _Few(by_tail.pop("", []))
        self._heads = {head: _Few(listed) for head, listed in by_head.items()}
        self._tails = {tail: _Few(listed) for tail, listed in by_tail.items()}
        self._head_lengths = _lengths(by_head, slice(2), slice(1))
        self._tail_lengths = _lengths(by_tail, slice(-2, None), slice(-1, None))

    def find(self, name: str) -> tuple[int, ...]:
        """Return the indexes of all that fit."""
        found: list[int] = []
        whole = self._whole.get(name)
        if whole is not None:
            found.append(whole)
        for length in self._tail_lengths.get(name[-2:]) or self._tail_lengths.get(name[-1:], ()):
            few = self._tails.get(name[-length:])
            if few is not None:
                found += few.sure
                if few.more:
                    few.find(name, found)
        for length in self._head_lengths.get(name[:2]) or self._head_lengths.get(name[:1], ()):
            few = self._heads.get(name[:length])
            if few is not None:
                found += few.sure
                if few.more:
                    few.find(name, found)
        if self._rest.more:
            self._rest.find(name, found)
        if len(found) > 1:
            found.sort()
        return tuple(found)


class _Few:
    """Names that have an end in common, or nothing: if they are many, by the rarest text in each."""

    __slots__ = ("_inside", "_lengths", "_names", "_tried", "more", "sure")

    def __init__(self, names: Listed) -> None:
        self.sure = [index for index, name in names if _only_an_end(name)]
        self.more = len(self.sure) < len(names)
        self._names = names  # until one of them is asked for: most never are
        self._tried: list[tuple[int, Matcher]] = []
        self._inside: dict[str, list[tuple[int, Matcher]]] = {}
        self._lengths: list[int] = []

    def find(self, name: str, found: list[int]) -> None:
        """Add the indexes of those that fit and are not sure to; their common end has been seen to."""
        if self._names:
            self._make_ready()
        for index, test in self._tried:
            if test.fits(name):
                found.append(index)
        for length in self._lengths:
            texts = map("".join, zip(*(name[at:] for at in range(length)), strict=False))
            for text in self._inside.keys() & texts:
                found += [index for index, test in self._inside[text] if test.fits(name)]

    def _make_ready(self) -> None:
        rest = [(index, Matcher(name), _inner(name)) for index, name in self._names if not _only_an_end(name)]
        many = len(rest) > _FEW
        counts = Counter(text for _, _, texts in rest for text in texts) if many else Counter()
        tried: list[tuple[int, Matcher]] = []
        inside: dict[str, list[tuple[int, Matcher]]] = {}
        for index, test, texts in rest:
            rarest = min(texts, key=counts.__getitem__, default="") if many else ""
            (inside.setdefault(rarest, []) if rarest else tried).append((index, test))
        # In this order: another thread may be finding.
        self._tried, self._inside, self._lengths = tried, inside, sorted({len(text) for text in inside})
        self._names = []


class Matcher:
    """Fits a name against the pieces between the stars, each found once and leftmost: linear work."""

    __slots__ = ("_after", "_head", "_least", "_middle", "_plain", "_single", "_tail", "_tail_length")

    def __init__(self, name: Name) -> None:
        pieces = name.pieces
        self._single = len(pieces) == 1
        self._head = _piece(pieces[0])
        self._after = len(pieces[0])
        self._middle = [(_piece(piece), len(piece)) for piece in pieces[1:-1]]
        self._tail = _piece(pieces[-1])
        self._tail_length = len(pieces[-1])
        self._least = sum(len(piece) for piece in pieces)
        self._plain = all(isinstance(_piece(piece), str) for piece in pieces)

    def fits(self, name: str) -> bool:
        if len(name) < self._least or (self._single and len(name) > self._least):
            return False
        at, end = self._after, len(name) - self._tail_length
        if self._plain:  # as below, without asking each piece what it is: most names are
            if not (name.startswith(self._head) and name.endswith(self._tail)):  # type: ignore[arg-type]
                return False
            for piece, size in self._middle:
                at = name.find(piece, at, end)  # type: ignore[arg-type]
                if at < 0:
                    return False
                at += size
            return at <= end or self._single
        if not (_starts(self._head, name, 0) and _starts(self._tail, name, end)):
            return False
        for piece, size in self._middle:
            at = _find(piece, name, at, end)
            if at < 0:
                return False
            at += size
        return at <= end or self._single


Piece = str | re.Pattern[str]


def _lengths(texts: Iterable[str], two: slice, one: slice) -> dict[str, tuple[int, ...]]:
    """Return what lengths to try, by the two characters at an end; by the one where no two are known."""
    found: dict[str, set[int]] = {}
    for text in texts:
        found.setdefault(text[two], set()).add(len(text))
    for end, lengths in found.items():
        lengths |= found.get(end[one], set())
    return {end: tuple(sorted(lengths)) for end, lengths in found.items()}


def _inner(name: Name) -> list[str]:
    """Return the texts by which a name can be looked up wherever they stand in it, in a fixed order."""
    found: dict[str, None] = {}
    for piece in name.pieces:
        for run in "".join(atom if isinstance(atom, str) else "\0" for atom in piece).split("\0"):
            length = min(len(run), _LONGEST)
            found.update(dict.fromkeys(run[at : at + length] for at in range(len(run) - length + 1) if run))
    return list(found)


def _end(name: Name, which: int) -> str:
    """Return the text a name begins (0) or ends (-1) with, up to its star; nothing if it has no star."""
    return (as_text(name.pieces[which]) or "") if len(name.pieces) > 1 else ""


def _only_an_end(name: Name) -> bool:
    """Whether a name is a text and a star, or a star and a text: finding the text is all."""
    return (
        len(name.pieces) == 2 and () in name.pieces and all(as_text(each) is not None for each in name.pieces)
    )


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
