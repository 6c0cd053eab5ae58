"""NFA over characters: each bit of an integer is a position in a pattern.

Only builds and steps the NFA; `shortest_witness` decides what to search for and when to stop.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final

from ringfence.policy.analysis.bit_sets import numbers
from ringfence.policy.invisible_characters import is_invisible
from ringfence.policy.patterns.syntax import ANY_CHARACTER, CROSS, Branch, CharClass, Fold, Name, folded
from ringfence.policy.value_classes import dataclass, field

SLASH: Final = -1  # the number of the slash; other characters are numbered from 0
NICE: Final = "xabcdefghijklmnopqrstuvwyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_-+=@ "
_DOT: Final = "."


@dataclass(slots=True)
class Layout:
    """The bits of all patterns, grouped by the character that each position waits for."""

    letters: dict[str, int] = field(default_factory=dict)
    classes: dict[CharClass, int] = field(default_factory=dict)
    anyone: int = 0  # a `?`
    star: int = 0
    cross: int = 0  # at the start of a name that `**` may skip
    inside: int = 0  # within a name that `**` skips
    whole: int = 0  # a whole name has matched
    directory: int = 0  # the same, for directories only
    below: int = 0  # below something that has matched
    least: list[int] = field(default_factory=list)  # characters from each place to a match, at least

    @property
    def size(self) -> int:
        """The number of bits in use."""
        return len(self.least)

    def bit(self) -> int:
        """Add a position and return its bit."""
        self.least.append(0)
        return 1 << (self.size - 1)

    def letter(self, character: str) -> None:
        """Add a position that waits for this character."""
        self.letters[character] = self.letters.get(character, 0) | self.bit()

    def add(self, branch: Branch, *, covers: bool) -> int:
        """Add one alternative of a pattern; returns the number of its first position."""
        first = self.size
        last = len(branch.segments) - 1
        for at, segment in enumerate(branch.segments):
            if segment is CROSS:
                self.cross |= self.bit()
                self.inside |= self.bit()
                continue
            self._name(segment)
            if at < last:
                self.letter("/")
        end = self.size
        if branch.directory:
            self.directory |= self.bit()
        else:
            self.whole |= self.bit()
        if covers:
            self.below |= self.bit()
        else:
            self.bit()
        self._measure(first, end)
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

    def _measure(self, first: int, end: int) -> None:
        """Compute the least distance to a match for each position of an alternative, from its end."""
        for place in range(end - 1, first - 1, -1):
            bit = 1 << place
            if self.cross & bit:  # the place after it is inside the name that is skipped
                self.least[place] = self.least[place + 2]
                self.least[place + 1] = self.least[place] + 1
            elif not self.inside & bit:
                self.least[place] = self.least[place + 1] + (0 if self.star & bit else 1)


class BitNfa:
    """Steps over a finished layout, and the classes of characters that its patterns distinguish."""

    def __init__(self, layout: Layout, fold: Fold = False) -> None:
        self.least = layout.least
        self.size = layout.size
        self.below = layout.below
        self._cross = layout.cross
        self._star = layout.star
        self._inside = layout.inside
        self._alphabet(layout, fold)
        self._stays = layout.star | layout.inside | layout.below
        self._alike = self._stays | layout.cross | layout.anyone
        self._slash = layout.letters.get("/", 0) | layout.whole | layout.directory
        self.accepts = (layout.whole | layout.below, layout.whole | layout.below | layout.directory)
        self._after: dict[tuple[int, int], tuple[int, ...]] = {}
        self._takes: dict[int, tuple[int, ...] | None] = {}

    def _alphabet(self, layout: Layout, fold: Fold) -> None:
        """Choose one character for each distinguished class; the first classes make nicer paths.

        Where names are folded, only characters that fold to themselves, and the letters of the patterns.
        """
        chosen: dict[tuple[object, ...], str] = {}
        alike: dict[str, str] = {}
        for character in _candidates(layout):
            if fold and character not in layout.letters and folded(character, fold) != character:
                continue
            kinds = tuple(kind for kind in layout.classes if character in kind)
            literal = character if character in layout.letters or character == _DOT else None
            alike[character] = chosen.setdefault((literal, kinds), character)
        order = {character: number for number, character in enumerate(NICE)}
        self.characters = sorted(chosen.values(), key=lambda each: (order.get(each, len(order)), each))
        self.special = [
            layout.letters.get(each, 0) | sum(bits for kind, bits in layout.classes.items() if each in kind)
            for each in self.characters
        ]
        self._moves = [special | layout.cross | layout.anyone for special in self.special]
        self.dot = self.characters.index(_DOT)
        number = {character: n for n, character in enumerate(self.characters)}
        self._number = {character: number[one] for character, one in alike.items()}

    def close(self, bits: int) -> int:
        """Add the positions that are reachable without reading a character."""
        bits |= (bits & self._cross) << 2
        return bits | (bits & self._star) << 1

    def step(self, bits: int, number: int) -> int:
        """Return the positions after reading a character, given by its number."""
        if number == SLASH:
            moved = (bits & self._slash) << 1 | (bits & self._inside) >> 1 | bits & self.below
        else:
            moved = (bits & self._moves[number]) << 1 | bits & self._stays
        return self.close(moved)

    def after(self, place: int, number: int) -> tuple[int, ...]:
        """Return the positions after one position reads a character."""
        key = (place, number)
        found = self._after.get(key)
        if found is None:
            found = self._after[key] = numbers(self.step(1 << place, number))
        return found

    def takes(self, place: int) -> tuple[int, ...] | None:
        """Return the characters that a position can read; None: all, with the same result."""
        if place not in self._takes:
            bit = 1 << place
            self._takes[place] = (
                None
                if bit & self._alike
                else tuple(number for number, moves in enumerate(self._moves) if moves & bit)
            )
        return self._takes[place]

    def read(self, bits: int, path: str, directory: bool) -> int:
        """Return the positions after reading a path, if all its characters can occur in a witness."""
        for character in path:
            bits = self.step(bits, self._number.get(character, SLASH))
        return bits & self.accepts[directory]


def _candidates(layout: Layout) -> Iterable[str]:
    """Return characters of which at least one is in each class that the patterns distinguish."""
    yield from NICE
    yield _DOT
    edges = {ord(each) + step for each in layout.letters for step in (0, 1)}
    for kind in layout.classes:
        for low, high in kind.ranges:
            edges.update((ord(low), ord(low) + 1, ord(high), ord(high) + 1))
    edges.update((0x21, 0x7F, 0xA1, 0x100, 0x400, 0x3042, 0x4E00, 0x1F600))
    for start, end in itertools.pairwise(sorted(edges | {0x110000})):
        found = next((chr(n) for n in range(start, min(end, start + 512)) if _in_paths(chr(n))), None)
        if found:
            yield found


def _in_paths(character: str) -> bool:
    return character not in "/\\" and not is_invisible(character)
