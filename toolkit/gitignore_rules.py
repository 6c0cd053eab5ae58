"""Rules of a `.gitignore` file: says of a name below the file's directory whether Git ignores it.

Reads no file. Matches characters, where Git matches bytes. Source: gitignore(5) and Git's wildmatch.c.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ringfence.policy.byte_names import as_matched
from ringfence.policy.patterns.name_index import Key, NameIndex, NameMatcher, key
from ringfence.policy.patterns.syntax import (
    ANY_CHARACTER,
    ANY_NAME,
    CROSS,
    Atom,
    CharClass,
    Fold,
    Name,
    Segment,
    folded,
)

GIT: Final = ".git"
GITIGNORE: Final = ".gitignore"
_ROOT: Final = "."
_MAX_LINES: Final = 2_000
_MAX_NAMES: Final = 10_000  # whose lines are remembered

# Ranges of POSIX character classes in ASCII, which is what Git knows of them.
_CLASSES: Final = {
    "alnum": "09AZaz",
    "alpha": "AZaz",
    "blank": "\t\t  ",
    "cntrl": "\x00\x1f\x7f\x7f",
    "digit": "09",
    "graph": "!~",
    "lower": "az",
    "print": " ~",
    "punct": "!/:@[`{~",
    "space": "\t\r  ",
    "upper": "AZ",
    "xdigit": "09AFaf",
}


class _MatchesNothingError(ValueError):
    """A line that matches no path, for instance one with a class that is not closed."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A line: whether it includes again, whether only directories match, and the names down to a match."""

    negated: bool
    directory: bool
    segments: tuple[Segment, ...]
    matchers: tuple[NameMatcher | None, ...]

    def matches(self, parts: Sequence[str]) -> bool:
        """Whether the line matches a path itself; all possibilities for `**` are followed at once."""
        if len(self.segments) == 2 and self.segments[0] is CROSS:
            return True  # the index has compared the last name, and the rest may be any
        places = self._across({0})
        for part in parts:
            after: set[int] = set()
            for place in places - {len(self.matchers)}:
                matcher = self.matchers[place]
                if matcher is None:
                    after.add(place)
                elif matcher.fits(part):
                    after.add(place + 1)
            places = self._across(after)
        return len(self.matchers) in places

    def _across(self, places: set[int]) -> set[int]:
        # A `**` may match no name at all; two in a row do not occur.
        count = len(self.matchers)
        return places | {place + 1 for place in places if place < count and self.matchers[place] is None}


class GitignoreRules:
    """The rules of one file, at most 2,000; the last that matches decides. `whole`: there are no more."""

    def __init__(self, text: str, fold: Fold = False) -> None:
        self.whole = True
        self._fold = fold
        self._rules: list[_Rule] = []
        last_names: dict[Key, list[int]] = {}
        for number, line in enumerate(_lines(text)):
            if number >= _MAX_LINES:
                self.whole = False
                break
            try:
                rule = _rule(folded(as_matched(line), fold))
            except _MatchesNothingError:
                continue
            last = rule.segments[-1]
            assert last is not CROSS, "a name follows each `**`"
            last_names.setdefault(key(last), []).append(len(self._rules))
            self._rules.append(rule)
        self._by_last_name = list(last_names.values())
        self._index = NameIndex(last_names)
        self._known: dict[str, tuple[int, ...]] = {}
        self._unmentioned: set[str] = set()  # names that were looked up, and that no line ends with

    def ignores(self, path: str, directory: bool) -> bool | None:
        """Whether a path, relative to the file's directory, is ignored; None if no line matches it.

        The directories above the path are not considered: what is in an ignored directory is ignored.
        """
        found = self._ending_with(path.rpartition("/")[2])
        if not found:
            return None
        parts = [self._compared(part) for part in path.split("/")]
        for number in found:
            rule = self._rules[number]
            if (directory or not rule.directory) and rule.matches(parts):
                return not rule.negated
        return None

    def mentions(self, names: Collection[str]) -> bool:
        """Whether a line may match a path that ends with one of these names."""
        return not self._unmentioned.issuperset(names) and any(map(self._ending_with, names))

    def _ending_with(self, name: str) -> tuple[int, ...]:
        """Return the lines whose last name matches, the last one first."""
        found = () if name in self._unmentioned else self._known.get(name)
        if found is None:
            fits = self._index.find(self._compared(name))
            lines = [line for index in fits for line in self._by_last_name[index]]
            found = tuple(sorted(lines, reverse=True))
            if len(self._known) + len(self._unmentioned) >= _MAX_NAMES:
                self._known.clear()
                self._unmentioned.clear()
            if found:
                self._known[name] = found
            else:
                self._unmentioned.add(name)
        return found

    def _compared(self, name: str) -> str:
        return folded(as_matched(name), self._fold)


# The rules that apply in a directory with the directories of their files, those that decide first in front.
Applied = list[tuple[str, GitignoreRules]]


def is_ignored(rules: Applied, path: str, directory: bool) -> bool:
    """Whether a name is Git's own or ignored by the rules that apply in its directory."""
    if path.rpartition("/")[2] == GIT:
        return True
    for folder, own in rules:
        found = own.ignores(path if folder == _ROOT else path[len(folder) + 1 :], directory)
        if found is not None:
            return found
    return False


def _lines(text: str) -> Iterator[str]:
    """Return the lines that are neither blank nor comments, without the spaces at their end."""
    for line in text.removeprefix("\ufeff").split("\n"):
        bare = line.removesuffix("\r").rstrip(" ")
        escaped = (len(bare) - len(bare.rstrip("\\"))) % 2
        if escaped and line.startswith(bare + " "):
            bare += " "
        if bare and not bare.startswith("#"):
            yield bare


def _rule(line: str) -> _Rule:
    negated = line.startswith("!")
    body = line[1:] if negated else line
    directory = body.endswith("/")
    body = body.removesuffix("/")
    anchored = "/" in body
    names = body.removeprefix("/").split("/")
    segments: list[Segment] = [] if anchored else [CROSS]
    for at, name in enumerate(names):
        if not name:
            raise _MatchesNothingError
        if len(name) > 1 and not name.strip("*"):
            segment: Segment = CROSS if anchored else ANY_NAME
        else:
            segment = _name(name if at == len(names) - 1 else _without_escaped_slash(name))
        if segment is not CROSS or not segments or segments[-1] is not CROSS:
            segments.append(segment)
    if segments[-1] is CROSS:
        segments.append(ANY_NAME)
    matchers = tuple(None if segment is CROSS else NameMatcher(key(segment)) for segment in segments)
    return _Rule(negated, directory, tuple(segments), matchers)


def _without_escaped_slash(name: str) -> str:
    return name[:-1] if (len(name) - len(name.rstrip("\\"))) % 2 else name


def _name(text: str) -> Name:
    pieces: list[tuple[Atom, ...]] = []
    atoms: list[Atom] = []
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character == "*":
            if atoms or not pieces:  # otherwise the star before this one is enough
                pieces.append(tuple(atoms))
                atoms = []
        elif character == "?":
            atoms.append(ANY_CHARACTER)
        elif character == "[":
            kind, at = _class(text, at)
            atoms.append(kind)
        elif character == "\\":
            atoms.append(_at(text, at))
            at += 1
        else:
            atoms.append(character)
    return Name((*pieces, tuple(atoms)))


def _at(text: str, at: int) -> str:
    if at >= len(text):
        raise _MatchesNothingError
    return text[at]


def _class(text: str, at: int) -> tuple[CharClass, int]:
    """Return the class whose first character is at `at`, and where the text after it begins."""
    negated = text[at : at + 1] in {"!", "^"}
    at += negated
    ranges: list[tuple[str, str]] = []
    start, low = at, ""  # `low` is what a range may begin with
    while at == start or _at(text, at) != "]":
        character = _at(text, at)
        named = text.find("]", at + 2) if text.startswith("[:", at) else -1
        if named > at + 2 and text[named - 1] == ":":
            bounds = _CLASSES.get(text[at + 2 : named - 1])
            if bounds is None:
                raise _MatchesNothingError
            ranges += zip(bounds[::2], bounds[1::2], strict=True)
            at, low = named, ""
        elif character == "-" and low and _at(text, at + 1) != "]":
            at += 1 + (text[at + 1] == "\\")
            if low <= _at(text, at):
                ranges.append((low, text[at]))
            low = ""
        else:
            at += character == "\\"
            low = _at(text, at)
            ranges.append((low, low))
        at += 1
    return CharClass(negated, tuple(ranges)), at + 1
