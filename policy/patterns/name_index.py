"""Index of name patterns: finds the patterns that match a name, by dict lookup where possible.

The number of lookups grows with the length of the name, not with the number of patterns. Never backtracks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from sys import intern
from typing import Final

from ringfence.policy.patterns.syntax import Atom, CharClass, Name, as_text

_FEW: Final = 8  # names that are as quickly tried one by one
_EDGE: Final = 3  # outermost characters that are looked up
_LONGEST: Final = 4  # characters of a text that is looked up wherever it stands
_FIRST: Final = slice(_EDGE)
_LAST: Final = slice(-_EDGE, None)

ANY: Final = "*"
# A name of nothing but text and stars is known by its text, with no two stars in a row; any other as itself.
Key = str | Name
Listed = list[tuple[int, Key]]
# One name to be tried: what it begins and ends with, its least length, what else is in it, and its index.
Row = tuple[str, str, int, "str | NameMatcher", int]
# One to be tried of those that share an edge, what rules it out at least cost first: the edge of its other
# end, the text at this one and the text within (each empty where there is nothing to ask), the row if that is
# not all, its index, and the next one.
Near = tuple[str, str, str, Row | None, int, "Near | None"]
# By their outermost characters, names that were never met yet, a few to be tried, or many.
Edges = dict[str, "Listed | Near | _Many"]


def key(name: Name) -> Key:
    """Return the key of a name pattern: its text if it is text and stars, else the pattern itself."""
    texts = [as_text(piece) for piece in name.pieces]
    return name if any(text is None or ANY in text for text in texts) else ANY.join(texts)  # type: ignore[arg-type]


class NameIndex:
    """Name patterns indexed by whole text, else by the rarer of prefix and suffix, else by inner text."""

    def __init__(self, names: Iterable[Key]) -> None:
        self._whole: dict[str, int] = {}
        starred: list[tuple[int, Key, str, str]] = []
        for index, name in enumerate(names):
            if isinstance(name, str):
                head, star, more = name.partition(ANY)
                tail = more.rpartition(ANY)[2]
            else:
                literal = name.literal
                star, head = (ANY, _end(name, 0)) if literal is None else ("", literal)
                tail = _end(name, -1)
            if star:
                starred.append((index, name, head, tail))
            else:
                self._whole[head] = index
        heads = Counter([head for _, _, head, _ in starred])
        tails = Counter([tail for _, _, _, tail in starred])
        self._heads: Edges = {}
        self._tails: Edges = {}
        rest: Listed = []
        for index, name, head, tail in starred:
            if head and (not tail or heads[head] <= tails[tail]):
                self._heads.setdefault(head[:_EDGE], []).append((index, name))  # type: ignore[union-attr]
            elif tail:
                self._tails.setdefault(tail[-_EDGE:], []).append((index, name))  # type: ignore[union-attr]
            else:
                rest.append((index, name))
        self._short = [
            (edges, which, size)
            for edges, which in ((self._heads, 0), (self._tails, -1))
            for size in sorted({len(edge) for edge in edges} - {_EDGE})
        ]
        self._rest = _Within(rest, slice(None)) if rest else None
        self._seldom = bool(self._short or rest)

    def find(self, name: str) -> tuple[int, ...]:  # noqa: C901  the two ends are written out for speed, as the comment says
        """Return the indexes of all matching patterns, ascending."""
        whole = self._whole.get(name)
        found: tuple[int, ...] = () if whole is None else (whole,)
        first, last = name[_FIRST], name[_LAST]
        # Written out for each end: one loop for both takes a fifth longer (benchmarks/unrolled.py).
        near = self._heads.get(first)
        if near is not None:
            if type(near) is tuple:
                while near is not None:
                    far, text, inside, row, index, near = near
                    if (
                        (not far or far == last)
                        and (not text or name.startswith(text))
                        and (not inside or inside in name)
                        and (row is None or _fits(row, name))
                    ):
                        found += (index,)
            else:
                found += _meet(self._heads, first, 0, name)
        near = self._tails.get(last)
        if near is not None:
            if type(near) is tuple:
                while near is not None:
                    far, text, inside, row, index, near = near
                    if (
                        (not far or far == first)
                        and (not text or name.endswith(text))
                        and (not inside or inside in name)
                        and (row is None or _fits(row, name))
                    ):
                        found += (index,)
            else:
                found += _meet(self._tails, last, -1, name)
        if self._seldom:
            found += self._others(name)
        if len(found) > 1:
            return tuple(sorted({*found}))  # what is shorter than an edge is met both as one and as less
        return found

    def _others(self, name: str) -> tuple[int, ...]:
        """Return the indexes of matching patterns with a prefix or suffix too short for an edge, or none."""
        found: tuple[int, ...] = ()
        for edges, which, size in self._short:
            found += _meet(edges, name[-size:] if which else name[:size], which, name)
        return found if self._rest is None else found + self._rest.find(name)


def _meet(edges: Edges, edge: str, which: int, name: str) -> tuple[int, ...]:
    """Return the matching patterns with this edge; the list for an edge is prepared on first use."""
    those = edges.get(edge)
    if isinstance(those, list):
        those = edges[edge] = _Many(those, which) if len(those) > _FEW else _chain(those, which)
    if isinstance(those, _Many):
        return those.find(name)
    found: tuple[int, ...] = ()
    while those is not None:
        _, text, _, row, index, those = those
        if (name.endswith(text) if which else name.startswith(text)) and (row is None or _fits(row, name)):
            found += (index,)
    return found


def _chain(names: Listed, which: int) -> Near:
    made: Near | None = None
    for index, name in reversed(names):
        row = _row(index, name)
        head, tail, _, inside, _ = row
        far, text = (head[_FIRST], tail) if which else (tail[_LAST], head)
        made = (
            intern(far) if len(far) == _EDGE else "",
            text if len(text) > _EDGE else "",  # else it is the edge
            inside if isinstance(inside, str) else "",
            row if inside or (head and tail) else None,
            index,
            made,
        )
    assert made is not None
    return made


def _row(index: int, name: Key) -> Row:
    if not isinstance(name, str):
        return _end(name, 0), _end(name, -1), 0, NameMatcher(name), index
    head, *middle, tail = name.split(ANY)
    inside = NameMatcher(name) if len(middle) > 1 else "".join(middle)
    return head, tail, len(name) - len(middle) - 1, inside, index


class _Many:
    """Patterns with the same outermost characters, indexed by the whole text at that end."""

    def __init__(self, names: Listed, which: int) -> None:
        listed: dict[str, Listed] = {}
        for index, name in names:
            listed.setdefault(_end(name, which), []).append((index, name))
        sizes = sorted({len(text) for text in listed})
        # For each length where such a text is in a name, and where the rest of it is.
        cuts = {n: (slice(n), slice(n, None)) if which == 0 else (slice(-n, None), slice(-n)) for n in sizes}
        self._cuts = [cut for cut, _ in cuts.values()]
        self._known = {text: _Within(each, cuts[len(text)][1]) for text, each in listed.items()}

    def find(self, name: str) -> tuple[int, ...]:
        """Return the indexes of the matching patterns."""
        found: tuple[int, ...] = ()
        for cut in self._cuts:
            known = self._known.get(name[cut])
            if known is not None:
                found += known.find(name)
        return found


class _Within:
    """Patterns that no edge distinguishes; if there are many, indexed by the rarest inner text of each.

    The inner text is compared only in the part of the patterns that differs.
    """

    def __init__(self, names: Listed, part: slice) -> None:
        texts = {index: _inner(name, part) for index, name in names} if len(names) > _FEW else {}
        counts = Counter(text for each in texts.values() for text in each)
        self._tried: list[Row] = []
        self._inside: dict[str, list[Row]] = {}
        for index, name in names:
            rarest = min(texts[index], key=counts.__getitem__, default="") if texts else ""
            (self._inside.setdefault(rarest, []) if rarest else self._tried).append(_row(index, name))
        self._lengths = sorted({len(text) for text in self._inside})

    def find(self, name: str) -> tuple[int, ...]:
        """Return the indexes of the matching patterns."""
        found = [row[4] for row in self._tried if _fits(row, name)]
        for length in self._lengths:
            texts = map("".join, zip(*(name[at:] for at in range(length)), strict=False))
            for text in self._inside.keys() & texts:
                found += [row[4] for row in self._inside[text] if _fits(row, name)]
        return tuple(found)


def _fits(row: Row, name: str) -> bool:
    head, tail, least, inside, _ = row
    if (head and not name.startswith(head)) or (tail and not name.endswith(tail)) or len(name) < least:
        return False
    if not inside:
        return True
    if isinstance(inside, str):
        return name.find(inside, len(head), len(name) - len(tail)) >= 0
    return inside.fits(name)


class NameMatcher:
    """Matches a name against the pieces between stars, each at its leftmost place: linear work."""

    __slots__ = ("_after", "_head", "_least", "_middle", "_plain", "_single", "_tail", "_tail_length")

    def __init__(self, name: Key) -> None:
        runs = name.split(ANY) if isinstance(name, str) else name.pieces
        pieces = [run if isinstance(run, str) else _piece(run) for run in runs]
        self._single = len(pieces) == 1
        self._head = pieces[0]
        self._after = len(runs[0])
        self._middle = [(piece, len(run)) for piece, run in zip(pieces[1:-1], runs[1:-1], strict=True)]
        self._tail = pieces[-1]
        self._tail_length = len(runs[-1])
        self._least = sum(map(len, runs))
        self._plain = all(isinstance(piece, str) for piece in pieces)

    def fits(self, name: str) -> bool:
        """Whether the whole name matches."""
        if len(name) < self._least or (self._single and len(name) > self._least):
            return False
        at, end = self._after, len(name) - self._tail_length
        if self._plain:  # as below, without the type check of each piece: most names are
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

    def may_fit(self, text: str) -> bool:
        """Whether one of many names may match, all between slashes in a text; False is certain."""
        return not self._plain or (f"/{self._head}" in text and f"{self._tail}/" in text)

    def among(self, names: Iterable[str]) -> list[str]:
        """Return the names that match."""
        if self._middle or self._single or not self._plain:
            return list(filter(self.fits, names))
        head, tail, least = self._head, self._tail, self._least
        return [
            name
            for name in names
            if name.startswith(head) and name.endswith(tail) and len(name) >= least  # type: ignore[arg-type]
        ]


Piece = str | re.Pattern[str]


def _inner(name: Key, part: slice) -> list[str]:
    """Return the texts that a name can be indexed by wherever they occur in it, in a fixed order."""
    found: dict[str, None] = {}
    for run in name[part].split(ANY) if isinstance(name, str) else _runs(name):
        for at in range(max(1, len(run) - _LONGEST + 1)):
            found[run[at : at + _LONGEST]] = None
    found.pop("", None)
    return list(found)


def _runs(name: Name) -> Iterable[str]:
    for piece in name.pieces:
        yield from "".join(atom if isinstance(atom, str) else "\0" for atom in piece).split("\0")


def _end(name: Key, which: int) -> str:
    """Return the literal prefix (0) or suffix (-1) of a pattern, up to its star; empty if it has no star."""
    if isinstance(name, str):
        return name.split(ANY)[which]
    return (as_text(name.pieces[which]) or "") if len(name.pieces) > 1 else ""


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
