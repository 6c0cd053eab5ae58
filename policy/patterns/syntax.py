"""Pattern syntax: .gitignore patterns on workspace-relative paths, parsed into names, stars and classes.

Only parses text and reports errors precisely; `matcher` matches. Ambiguous text is an error with a hint,
never guessed. Source: gitignore(5), with the differences in docs/reference.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from enum import IntEnum
from typing import Final

from ringfence.policy.invisible_characters import is_invisible
from ringfence.policy.patterns.braces import PatternError as PatternError  # what `parse` raises
from ringfence.policy.patterns.braces import class_end, expand, fail
from ringfence.policy.value_classes import dataclass

MAX_LENGTH: Final = 1024


@dataclass(frozen=True, slots=True)
class CharClass:
    """One character in some ranges, or (negated) outside of them. `?` is the negation of no range."""

    negated: bool
    ranges: tuple[tuple[str, str], ...]

    def __contains__(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) != self.negated


ANY_CHARACTER: Final = CharClass(True, ())
Atom = str | CharClass


@dataclass(frozen=True, slots=True)
class Name:
    """One name of a pattern: runs of atoms of fixed length, with a star between each two runs."""

    pieces: tuple[tuple[Atom, ...], ...]

    @property
    def literal(self) -> str | None:
        """The text of a name without wildcards, else None."""
        return as_text(self.pieces[0]) if len(self.pieces) == 1 else None


ANY_NAME: Final = Name(((), ()))
_BAD_NAMES: Final = frozenset({"", ".", ".."})
CROSS: Final = None  # a segment `**`: any number of names, none included
Segment = Name | None


@dataclass(frozen=True, slots=True)
class Branch:
    """One alternative of a pattern, complete from the root: it matches a path name by name."""

    segments: tuple[Segment, ...]
    directory: bool  # matches directories only
    root: bool  # exactly `*`, which stands for the root itself too


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern as written, and its alternatives after brace expansion."""

    text: str
    branches: tuple[Branch, ...]


def as_text(piece: tuple[Atom, ...]) -> str | None:
    """Return a run of atoms as text, or None if it has a `?` or a class."""
    try:
        return "".join(piece)  # type: ignore[arg-type]  # what is no text fails at once
    except TypeError:
        return None


class Folding(IntEnum):
    """The differences between two names that a workspace's file system ignores."""

    NONE = 0
    CASE = 1  # letter case and Unicode normal form
    FORM = 2  # normal form alone: `é` may be one character or two


Fold = bool | Folding  # a bool says whether case makes no difference
FoldText = Callable[[str, Fold], str]


def folded(text: str, fold: Fold = Folding.CASE) -> str:
    """Return text as the file system compares it; two equivalent names have the same folded text."""
    if text.isascii():
        return text.lower() if fold == Folding.CASE else text
    import unicodedata  # with its large table, and most names need none of it

    if fold != Folding.CASE:
        return unicodedata.normalize("NFC", text) if fold else text
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def by_letter(text: str, fold: Fold = Folding.CASE) -> str:
    """Return text with only those letters folded that stay one letter: `?` and classes match one letter.

    `ß` folds to two letters and stays as written, so that `?` matches it.
    """
    if fold != Folding.CASE or text.isascii():
        return text.lower() if fold == Folding.CASE else text
    return "".join(map(_one_letter, text))


@functools.lru_cache(maxsize=4_096)
def _one_letter(letter: str) -> str:
    small = folded(letter)
    return small if len(small) == 1 else letter


def check(text: str) -> int:
    """Return the number of alternatives of a pattern; PatternError for an invalid pattern."""
    return 1 if plain_names(text) else len(parse(text).branches)


# Nearly all patterns are names and stars in ASCII. They are read without a look at each character; what has
# anything else in it, or could have anything wrong with it, is read below, where an error can be shown.
_PLAIN: Final = re.compile(rf'[ "->@-Z^-z|~]{{1,{MAX_LENGTH}}}')


def plain_names(text: str) -> list[str]:
    """Return the names of a pattern of plain names and stars; empty if it is not one, or invalid."""
    if not _PLAIN.fullmatch(text):
        return []
    names = text.split("/")
    if names[0] in {"", "."}:
        del names[0]
    if names and not names[-1]:
        names.pop()
    return names if _BAD_NAMES.isdisjoint(names) else []


@functools.lru_cache(maxsize=20_000)
def parse(text: str, fold: Fold = Folding.NONE, letters: bool = False) -> Pattern:
    """Parse a pattern, folded as a whole or letter by letter; PatternError for an invalid pattern."""
    names = plain_names(text)
    if names:
        segments = [_plain_segment(name, fold) for name in names]
        floats = text[0] != "/" and text[:2] != "./"
        return Pattern(text, (_placed(segments, floats, text[-1] == "/", text),))
    _check_text(text)
    known: dict[tuple[int, ...], Segment] = {}  # alternatives have most of their names in common
    # Alternatives that are the same stay: a folded pattern must have as many as the plain one.
    fold_text = by_letter if letters else folded
    return Pattern(text, tuple(_branch(text, picked, fold, fold_text, known) for picked in expand(text)))


@functools.lru_cache(maxsize=4_096)
def _plain_segment(name: str, fold: Fold) -> Segment:
    if "*" in name and not name.strip("*"):
        return ANY_NAME if name == "*" else CROSS
    first, *others = folded(name, fold).split("*")
    pieces = [first, *filter(None, others[:-1]), *others[-1:]]
    return Name(tuple(map(tuple, pieces)))


@functools.lru_cache(maxsize=2_000)
def parse_agent(text: str) -> tuple[Name, ...]:
    """Parse an agent's key: names with `*`, `?` and classes, separated by slashes; else PatternError."""
    _check_text(text)
    if "{" in text or "}" in text:
        fail("agent_name", "braces are not used in agents' names", "write one key for each agent", text)
    names: list[Name] = []
    for start, end in _split(text, tuple(range(len(text)))):
        segment = text[start:end]
        if not segment or segment in {".", ".."}:
            message = "an agent's name is names with single slashes between them"
            fail("agent_name", message, 'a sub-agent is written "parent/child"', text, start)
        if len(segment) > 1 and not segment.strip("*"):
            fail("agent_name", "'**' is not used in agents' names", "write '*'", text, start, len(segment))
        names.append(_name(text, tuple(range(start, end)), False, folded))
    return tuple(names)


def _check_text(text: str) -> None:
    if not text:
        fail("pattern_empty", "the pattern is empty", "'*' is everything", text)
    if len(text) > MAX_LENGTH:
        message = f"the pattern has {len(text)} characters; {MAX_LENGTH} are allowed"
        fail("pattern_too_long", message, "write several shorter patterns", text)
    for offset, character in enumerate(text):
        if is_invisible(character):
            message = f"character U+{ord(character):04X} cannot be seen"
            fail("pattern_character", message, "'?' matches any one character", text, offset, 1)
        if character == "\\":
            hint = "names are separated by '/'; for a special character itself write it in brackets: [*]"
            fail("pattern_backslash", "'\\' is not used in patterns", hint, text, offset, 1)


def _split(text: str, picked: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the spans of the names between slashes, as indexes into picked."""
    spans, start = [], 0
    for index, offset in enumerate(picked):
        if text[offset] == "/":
            spans.append((start, index))
            start = index + 1
    return [*spans, (start, len(picked))]


def _branch(
    text: str,
    picked: tuple[int, ...],
    fold: Fold,
    fold_text: FoldText,
    known: dict[tuple[int, ...], Segment],
) -> Branch:
    whole = "".join(text[offset] for offset in picked)
    if not whole:
        fail("pattern_empty", "one of the alternatives is empty", "leave it out, or write '*'", text)
    if whole.startswith("!"):
        hint = "write the exception as a later rule, or under 'except'; for a name like that write **/!name"
        fail("pattern_negated", "'!' at the start is not used here", hint, text, picked[0], 1)
    directory = whole.endswith("/")
    start = 2 if whole.startswith("./") else 1 if whole.startswith("/") else 0
    inner = picked[start : len(picked) - directory] if start < len(picked) else ()
    if not inner:
        fail("pattern_empty", "the pattern names only the root", "'*' is everything, the root included", text)
    spans = _split(text, inner)
    segments: list[Segment] = []
    for low, high in spans:
        name = inner[low:high]
        if name not in known:
            known[name] = _segment(text, name, inner, low, fold, fold_text)
        segments.append(known[name])
    return _placed(segments, start == 0, directory, whole)


def _placed(segments: list[Segment], floats: bool, directory: bool, whole: str) -> Branch:
    """Return the names as a branch from the root; a single name without a slash matches at any depth."""
    if floats and len(segments) == 1:
        # Without a slash `**` is one name at any depth.
        segments = [CROSS, ANY_NAME if segments[0] is CROSS else segments[0]]
    return Branch(_normal(segments), directory, whole == "*")


def _normal(segments: list[Segment]) -> tuple[Segment, ...]:
    """Return the segments without adjacent `**`, and with at least one name after the last `**`."""
    if all(segment is not CROSS for segment in segments):
        return tuple(segments)
    out: list[Segment] = []
    for segment in segments:
        if segment is not CROSS or not out or out[-1] is not CROSS:
            out.append(segment)
    if out[-1] is CROSS:
        out.append(ANY_NAME)
    return tuple(out)


def _segment(  # noqa: PLR0913  a span of a pattern and how to fold it
    text: str, picked: tuple[int, ...], inner: tuple[int, ...], low: int, fold: Fold, fold_text: FoldText
) -> Segment:
    name = "".join(text[offset] for offset in picked)
    if not name:
        offset = inner[min(low, len(inner) - 1)]
        fail("pattern_name", "two slashes with no name between them", "leave one out", text, offset, 1)
    if name in {".", ".."}:
        hint = "patterns start from the workspace's root and only go down"
        if name == ".":
            hint = "leave it out; the root itself is matched by '*'"
        fail("pattern_parent", f"'{name}' is not a name", hint, text, picked[0], len(name))
    if len(name) > 1 and not name.strip("*"):
        return CROSS
    return _name(text, picked, fold, fold_text)


def _name(text: str, picked: tuple[int, ...], fold: Fold, fold_text: FoldText) -> Name:
    pieces: list[tuple[Atom, ...]] = []
    atoms: list[Atom] = []
    letters: list[str] = []

    def settle() -> None:
        run = "".join(letters)
        atoms.extend(fold_text(run, fold))
        letters.clear()

    at = 0
    while at < len(picked):
        character = text[picked[at]]
        at += 1
        if character == "*":
            settle()
            if atoms or not pieces:  # otherwise the star before this one is enough
                pieces.append(tuple(atoms))
                atoms = []
        elif character == "?":
            settle()
            atoms.append(ANY_CHARACTER)
        elif character == "[":
            settle()
            end = class_end(text, picked[at - 1])
            atoms.append(_class(text, picked[at - 1], end, fold))
            at += end - picked[at - 1] - 1
        else:
            letters.append(character)
    settle()
    pieces.append(tuple(atoms))
    return Name(tuple(pieces))


def _class(text: str, start: int, end: int, fold: Fold) -> Atom:
    """Parse the class between the brackets text[start] and text[end - 1]."""
    at = start + 1
    negated = text[at] in "!^"
    at += negated
    ranges: list[tuple[str, str]] = []
    while at < end - 1:
        low = high = text[at]
        if text[at + 1] == "-" and at + 2 < end - 1:
            high = text[at + 2]
            if high < low:
                hint = f"write [{high}-{low}]"
                fail("pattern_range", f"the range '{low}-{high}' runs backwards", hint, text, at, 3)
            at += 2
        at += 1
        ranges.append((low, high))
    if fold == Folding.CASE:
        ranges += _folded_ranges(ranges)
    if not negated and len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return ranges[0][0]  # `[*]` is the usual way to write a special character
    return CharClass(negated, tuple(sorted(set(ranges))))


def _folded_ranges(ranges: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [
        (small, small)
        for character, small in _case_pairs()
        if any(low <= character <= high for low, high in ranges)
    ]


@functools.cache
def _case_pairs() -> tuple[tuple[str, str], ...]:
    """Return every character that folds to one other character; paths are folded before they are matched."""
    pairs = ((chr(number), folded(chr(number))) for number in range(0x20000))
    return tuple((character, small) for character, small in pairs if small != character and len(small) == 1)
