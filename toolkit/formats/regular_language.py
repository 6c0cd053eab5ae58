"""Regular languages as small expressions, and a machine that follows many of them character by character.

Independent of `policy.analysis` and `policy.patterns.matcher`, so that it can check them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from ringfence.policy.invisible_characters import is_invisible
from ringfence.policy.patterns.syntax import CROSS, Branch, CharClass, Name

SLASH = CharClass(False, (("/", "/"),))
ANY = CharClass(True, ())
IN_NAME = CharClass(True, (("/", "/"),))


@dataclass(frozen=True, slots=True)
class One:
    """A text of one character."""

    kind: CharClass


@dataclass(frozen=True, slots=True)
class Row:
    """Texts in sequence; an empty row is the empty text."""

    parts: tuple[Language, ...] = ()


@dataclass(frozen=True, slots=True)
class Either:
    """Texts of any of these languages; without languages: no text at all."""

    parts: tuple[Language, ...]


@dataclass(frozen=True, slots=True)
class Many:
    """Any number of texts in sequence, including none."""

    part: Language


Language = One | Row | Either | Many
NOTHING = Row()
ANYTHING = Many(One(ANY))
NAME = Row((One(IN_NAME), Many(One(IN_NAME))))
NAMES_ABOVE = Many(Row((NAME, One(SLASH))))
BELOW = Row((One(SLASH), ANYTHING))


def text(letters: str, *, fold: bool = False) -> Language:
    """Return the language of exactly this text, or with `fold` in any letter case."""
    return Row(tuple(One(letter(each, fold=fold)) for each in letters))


def letter(character: str, *, fold: bool = False) -> CharClass:
    """Return the class of this character, with `fold` in both cases."""
    both = either_case(character) if fold else [character]
    return CharClass(False, tuple((each, each) for each in both))


def either_case(character: str) -> list[str]:
    """Return a character in both cases, where the other case is a single character."""
    return sorted(each for each in {character, character.lower(), character.upper()} if len(each) == 1)


def optional(part: Language) -> Language:
    """Return a language with the empty text added."""
    return Either((NOTHING, part))


def covering(part: Language) -> Language:
    """Return a language with everything below its paths added."""
    return Row((part, optional(BELOW)))


def of_name(name: Name) -> Language:
    """Return the language of one name of a pattern."""
    out: list[Language] = []
    for number, piece in enumerate(name.pieces):
        if number:
            out.append(Many(One(IN_NAME)))
        for atom in piece:
            out += [text(atom)] if isinstance(atom, str) else [One(_inside(atom))]
    return Row(tuple(out))


def _inside(kind: CharClass) -> CharClass:
    """Return a class of a pattern without the slash."""
    return CharClass(True, (*kind.ranges, ("/", "/"))) if kind.negated else kind


def of_branch(branch: Branch) -> Language:
    """Return the paths that one alternative of a pattern matches itself, without what is below them."""
    out: list[Language] = []
    for at, segment in enumerate(branch.segments):
        if segment is CROSS:
            out.append(NAMES_ABOVE)
            continue
        out.append(of_name(segment))
        if at < len(branch.segments) - 1:
            out.append(One(SLASH))
    return Row(tuple(out))


class Machine:
    """Follows several languages at once.

    Each has a range of positions, and a set of positions is an integer's bits.
    """

    def __init__(self, languages: Sequence[Language]) -> None:
        self.kinds: list[CharClass] = []
        self._after: list[int] = []
        self.begin = 0
        self.whole: list[int] = []  # for each language the positions where one of its texts can end
        self.own: list[int] = []
        self.forever: list[int] = []  # positions that stay an end whatever follows
        for language in languages:
            self._add(language)
        # Most positions lead to the next one, to themselves, or to both: one shift handles all of these.
        self._shift = self._loop = self._odd = 0
        for place, after in enumerate(self._after):
            bit = 1 << place
            if after & ~(bit | bit << 1):
                self._odd |= bit
                continue
            self._shift |= bit if after & bit << 1 else 0
            self._loop |= after & bit
        self._fits: list[int] = []

    def _add(self, language: Language) -> None:
        start = len(self.kinds)
        self._place(CharClass(False, ()))  # before the first character
        first, last, empty = self._lay(language)
        self._after[start] = first
        begin = 1 << start
        self.begin |= begin
        whole = last | (begin if empty else 0)
        self.whole.append(whole)
        self.own.append((1 << len(self.kinds)) - begin)
        self.forever.append(
            sum(
                1 << at
                for at in range(start, len(self.kinds))
                if self.kinds[at] == ANY and whole >> at & 1 and self._after[at] >> at & 1
            )
        )

    def _place(self, kind: CharClass) -> int:
        self.kinds.append(kind)
        self._after.append(0)
        return 1 << (len(self.kinds) - 1)

    def _lay(self, language: Language) -> tuple[int, int, bool]:
        """Add a language; returns the first and last positions of its texts, and if one text is empty."""
        if isinstance(language, One):
            place = self._place(language.kind)
            return place, place, False
        if isinstance(language, Many):
            first, last, _ = self._lay(language.part)
            self._join(last, first)
            return first, last, True
        placed = [self._lay(part) for part in language.parts]
        if isinstance(language, Either):
            first = reduce(int.__or__, (each[0] for each in placed), 0)
            last = reduce(int.__or__, (each[1] for each in placed), 0)
            return first, last, any(each[2] for each in placed)
        first, last, empty = 0, 0, True
        for head, tail, none in placed:
            self._join(last, head)
            first |= head if empty else 0
            last = tail | (last if none else 0)
            empty = empty and none
        return first, last, empty

    def _join(self, places: int, after: int) -> None:
        for place in numbers(places):
            self._after[place] |= after

    def read(self, alphabet: Sequence[str]) -> None:
        """Set the characters that are read, by number."""
        places: dict[CharClass, int] = {}
        for place, kind in enumerate(self.kinds):
            places[kind] = places.get(kind, 0) | 1 << place
        self._fits = [
            reduce(int.__or__, (bits for kind, bits in places.items() if character in kind), 0)
            for character in alphabet
        ]

    def following(self, bits: int) -> int:
        """Return all positions that may be reached by one character."""
        found = (bits & self._shift) << 1 | bits & self._loop
        for place in numbers(bits & self._odd):
            found |= self._after[place]
        return found

    def steps(self, bits: int) -> list[int]:
        """Return the positions after one more character, for each character."""
        found = self.following(bits)
        return [found & fits for fits in self._fits]

    def step(self, bits: int, number: int) -> int:
        """Return the positions after one more character, given by its number."""
        return self.following(bits) & self._fits[number]


def numbers(bits: int) -> Iterator[int]:
    """Return the numbers of the bits that are set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def alphabet(kinds: Iterable[CharClass]) -> list[str]:
    """Return one character for each class that is not distinguished.

    `/`, `.` and a plain one are always included.
    """
    listed = list(dict.fromkeys(kinds))
    edges = {ord(edge) for kind in listed for pair in kind.ranges for edge in pair}
    edges |= {edge + 1 for edge in edges} | {0x21, 0x7F, 0xA1, 0x100, 0x400, 0x4E00}
    nice = "xabcdefghijklmnopqrstuvwyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-"
    chosen: dict[tuple[object, ...], str] = {}
    for character in (*"/.", *nice, *(chr(edge) for edge in sorted(edges) if edge < 0x110000)):
        if character == "\\" or is_invisible(character):
            continue
        own = character if character in "/." else None
        chosen.setdefault((own, *(character in kind for kind in listed)), character)
    return list(chosen.values())
