"""Representative texts: a few texts that stand for all texts which several name patterns match together.

Where a pattern (apart from doubtful ones) matches a representative text, it matches every text that it stands
for. If no representative is outside some patterns, no text is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from ringfence.policy.analysis.name_nfa import NameNfa
from ringfence.policy.patterns.name_index import NameMatcher
from ringfence.policy.patterns.syntax import ANY_NAME, Atom, CharClass, Name, as_text
from ringfence.policy.value_classes import dataclass

_MOST_FILLED: Final = 8
NO_NAMES: Final = frozenset({"", ".", ".."})


@dataclass(frozen=True, slots=True)
class Typical:
    """A text, the positions that can read it, and those that can read every text that it stands for."""

    text: str
    reads: int
    surely: int


@dataclass(frozen=True, slots=True)
class Texts:
    """Representative texts; `all` says whether they stand for every text of the names.

    `shortest` is the only text of the least length, apart from a character that may be any; None: not known.
    """

    typical: tuple[Typical, ...]
    all: bool
    shortest: str | None


NOTHING: Final = Texts((), True, None)


class NameTexts:
    """The representative texts for a few name patterns at a time."""

    def __init__(self, rows: NameNfa, characters: Sequence[str]) -> None:
        self._rows = rows
        self._any = characters[0]
        self._known: dict[frozenset[int], Texts] = {}
        self._matchers: dict[Name, NameMatcher] = {}
        # What consists of text and stars fits a typical text only if it fits all that it stands for.
        self._plain = frozenset(at for at, name in enumerate(rows.names) if _plain(name))
        letters = {atom for name in rows.names for piece in name.pieces for atom in piece}
        self.filler = next((each for each in characters if each not in letters and each != "."), "")
        # Where there is a star, more of it than any name has other characters that may be many.
        wild = (
            sum(not isinstance(atom, str) for piece in name.pieces for atom in piece) for name in rows.names
        )
        self._run = self.filler * (1 + min(max(wild, default=0), _MOST_FILLED))

    def of(self, numbers: frozenset[int]) -> Texts:
        """Return the texts that match all of these names, given by number; without names: any text."""
        found = self._known.get(numbers)
        if found is None:
            names = [self._rows.names[number] for number in sorted(numbers)]
            found = self._known[numbers] = self._make(names)
        return found

    def _make(self, names: Sequence[Name]) -> Texts:
        listed = [name for name in names if name != ANY_NAME] or [ANY_NAME]
        text = next((name.literal for name in listed if name.literal is not None), None)
        if text is not None:
            if not all(self._fits(name, text) for name in listed):
                return NOTHING
            reads = self._rows.reads(text)
            return Texts((Typical(text, reads, reads),), True, text)
        listed = self._least(listed)
        if len(listed) == 1:
            return self._one(listed[0])
        if not _agree(listed, 0) or not _agree(listed, -1):
            return NOTHING
        if len(listed) == 2 and all(_plain(name) and len(name.pieces) == 2 for name in listed):
            return self._two(listed[0], listed[1])
        return self._example(listed)

    def _least(self, names: list[Name]) -> list[Name]:
        """Leave out names that contain another of these names."""
        out = list(names)
        for name in names:
            if _plain(name) and len(out) > 1:
                others = (self._filled(other) for other in out if other != name)
                if any(text and self._fits(name, text) for text in others):
                    out.remove(name)
        return out

    def _one(self, name: Name) -> Texts:
        text = self._filled(name)
        shortest = self._short(name)
        if not text:
            return Texts(self._literal([shortest] if shortest else []), False, shortest)
        return Texts((self._typical(text, [name]),), True, shortest)

    def _two(self, one: Name, other: Name) -> Texts:
        """Return the texts of two names that each consist of a prefix, a star and a suffix."""
        (head, tail), (front, rear) = _text_pieces(one), _text_pieces(other)
        head, tail = max(head, front, key=len), max(tail, rear, key=len)
        inside = [
            head + tail[len(head) + len(tail) - length :]
            for length in range(max(len(head), len(tail), 1), len(head) + len(tail) + 1)
        ]
        fit = [text for text in inside if self._fits(one, text) and self._fits(other, text)]
        overlapping = self._literal(text for text in fit if len(text) < len(head) + len(tail))
        shortest = fit[0] if fit and fit[0] not in NO_NAMES else None
        if not self.filler:
            return Texts(overlapping, False, shortest)
        return Texts((self._typical(head + self._run + tail, [one, other]), *overlapping), True, shortest)

    def _example(self, names: list[Name]) -> Texts:
        """Return examples only, not all texts: prefix, inner texts and suffix, one name after the other."""
        head, tail = (max((_end(name, which) for name in names), key=len) for which in (0, -1))
        middle = [_as_example(piece, self._any) for name in names for piece in name.pieces[1:-1]]
        text = (self._run or self._any).join([head, *middle, tail])
        # What is the only shortest text of one name is that of all, if they have it in common.
        shorts = (self._short(name) for name in names)
        short = next(
            (each for each in shorts if each and all(self._fits(name, each) for name in names)), None
        )
        texts = dict.fromkeys([text, *([short] if short else [])])
        return Texts(self._literal(each for each in texts if self._fit(names, each)), False, short)

    def _filled(self, name: Name) -> str:
        """Return a text of a name, with the filler for every wildcard; empty if there is none."""
        filler = self.filler
        if not filler or any(
            isinstance(atom, CharClass) and filler not in atom for piece in name.pieces for atom in piece
        ):
            return ""
        return self._run.join(_as_example(piece, filler) for piece in name.pieces)

    def _short(self, name: Name) -> str | None:
        """Return the shortest text of a name, with the first of all characters for each wildcard."""
        if any(
            isinstance(atom, CharClass) and self._any not in atom for piece in name.pieces for atom in piece
        ):
            return None
        text = "".join(_as_example(piece, self._any) for piece in name.pieces)
        return self._any if name == ANY_NAME else None if text in NO_NAMES else text

    def _typical(self, text: str, names: Iterable[Name]) -> Typical:
        fitting = self._rows.fitting(text)
        reads = self._rows.reads(text)
        if self._plain.issuperset(fitting):
            return Typical(text, reads, reads)
        numbers = self._rows.numbers
        surely = [at for at in fitting if at in self._plain or self._rows.names[at] in names]
        surely += [numbers[ANY_NAME]] if ANY_NAME in numbers else []
        return Typical(text, reads, self._rows.waiting(surely))

    def _literal(self, texts: Iterable[str]) -> tuple[Typical, ...]:
        """Return texts that stand only for themselves."""
        listed = [text for text in texts if text not in NO_NAMES]
        return tuple(Typical(text, reads, reads) for text in listed for reads in [self._rows.reads(text)])

    def _fit(self, names: Iterable[Name], text: str) -> bool:
        return all(self._fits(name, text) for name in names)

    def _fits(self, name: Name, text: str) -> bool:
        matcher = self._matchers.get(name)
        if matcher is None:
            matcher = self._matchers[name] = NameMatcher(name)
        return matcher.fits(text)


def _plain(name: Name) -> bool:
    """Whether a name consists of text and stars alone."""
    return all(as_text(piece) is not None for piece in name.pieces)


def _text_pieces(name: Name) -> tuple[str, str]:
    head, tail = (as_text(piece) for piece in name.pieces)
    assert head is not None and tail is not None
    return head, tail


def _end(name: Name, which: int) -> str:
    """Return the literal prefix (0) or suffix (-1) of a name."""
    return as_text(name.pieces[which]) or ""


def _agree(names: Sequence[Name], which: int) -> bool:
    """Whether the names can have a common prefix (0) or suffix (-1)."""
    ends = sorted((_end(name, which) for name in names), key=len)
    begins: Callable[[str, str], bool] = str.endswith if which else str.startswith
    return all(begins(ends[-1], end) for end in ends)


def _as_example(piece: tuple[Atom, ...], character: str) -> str:
    return "".join(atom if isinstance(atom, str) else character for atom in piece)
