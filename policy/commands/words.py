"""Command lines: the simple commands in a line of shell, as words, without running or expanding anything.

A hint for rules, never a fence: what a command does is judged by its effects. Whatever the parser does not
understand makes a line not `whole`, so that only a rule for every command can allow it.
"""

from __future__ import annotations

import re
from typing import Final

from ringfence.policy.value_classes import dataclass, field

MAX_LENGTH: Final = 1 << 17  # characters of a line that are read
_MAX_DEPTH: Final = 40  # command substitutions and subshells within each other
_ENDS = frozenset(" \t\n;&|()<>")
_SEPARATORS = frozenset(";&|\n")
_RESERVED = frozenset(
    {
        "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
        "if", "in", "select", "then", "time", "until", "while", "{", "}",
    }
)  # fmt: skip
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=")
_REDIRECTION = re.compile(r"<<<|<<-|<<|<>|<&|<|>>|>\||>&|>")
_DESCRIPTOR = re.compile(r"[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}")
_PLAIN = re.compile(r"[\w@%+=:,./-]+", re.ASCII)
_EXPANDS = re.compile(r"[A-Za-z0-9_({@*#?$!'\"-]")


class UnknownWord(str):
    """A word whose text is known only to the shell that runs the line; as text, what is written there.

    It equals no word whose text is known.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownWord) and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((UnknownWord, str(self)))


Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The simple commands recognised in a line, in order, each as its words; never an empty one.

    `whole`: the line is nothing but these commands, with their redirections, joined by `;`, `&&`, `||`, `|`,
    `&` and newlines.
    """

    commands: tuple[Words, ...]
    whole: bool


@dataclass(slots=True)
class Scan:
    """What one pass over a text found; `extra` names what stood beside the words of the commands."""

    commands: list[Words] = field(default_factory=list)
    whole: bool = True
    extra: set[str] = field(default_factory=set)


def parse(line: str) -> CommandLine:
    """Return the simple commands in a line.

    Every text has an answer; a text longer than the bound is not whole.
    """
    found = scan(line[:MAX_LENGTH])
    whole = found.whole and bool(found.commands) and len(line) <= MAX_LENGTH
    return CommandLine(tuple(found.commands), whole)


def scan(text: str) -> Scan:
    """Return what one pass over a text finds."""
    found = Scan()
    _Scanner(text, found, 0).run("")
    return found


def written(words: Words) -> str:
    """Return a simple command as text: the parser finds the same words in it."""
    return " ".join(_quoted(word, first=not at) for at, word in enumerate(words))


def _quoted(word: str, *, first: bool) -> str:
    if isinstance(word, UnknownWord):
        return str(word)
    if _PLAIN.fullmatch(word) and not (first and (word in _RESERVED or _ASSIGNMENT.match(word))):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


@dataclass(slots=True)
class _Word:
    text: str
    raw: str
    unknown: bool

    @property
    def value(self) -> str:
        return UnknownWord(self.raw) if self.unknown else self.text


class _Scanner:
    """A position in a text; commands are added to what was found in the text around it."""

    def __init__(self, text: str, found: Scan, depth: int) -> None:
        self.text = text
        self.found = found
        self.depth = depth
        self.at = 0
        self.here: list[tuple[str, bool]] = []  # here-documents that begin after this line: their last lines

    def run(self, end: str) -> None:
        """Read commands up to the end character, which is consumed, or to the end of the text."""
        words: list[_Word] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == end:
                self.at += 1
                break
            if character in " \t" or self.text.startswith("\\\n", self.at):
                self.at += 1 if character != "\\" else 2
            elif character == "#":
                self.found.extra.add("comment")
                stop = self.text.find("\n", self.at)
                self.at = len(self.text) if stop < 0 else stop
            elif character in _SEPARATORS:
                self._separate(words)
            elif character in "()":
                self._parenthesis(words, character)
            elif character in "<>":
                self._redirect(end)
            else:
                self._take(words, end)
        self._close(words)

    def _separate(self, words: list[_Word]) -> None:
        """End a command. `&>` redirects in one shell, and ends the command in another."""
        self.found.extra.add("separator")
        self._close(words)
        if self.text.startswith("&>", self.at):
            self.found.whole = False
        character = self.text[self.at]
        self.at += 1
        if character == "\n" and self.here:
            self._skip_documents()

    def _parenthesis(self, words: list[_Word], character: str) -> None:
        self.found.whole = False
        self._close(words)
        self.at += 1
        if character == "(" and self.depth < _MAX_DEPTH:
            self._nested(")")

    def _nested(self, end: str) -> None:
        self.depth += 1
        self.run(end)
        self.depth -= 1

    def _take(self, words: list[_Word], end: str) -> None:
        """Read one word; a number or a name in braces just before a redirection belongs to that."""
        word = self._word(end)
        if self.text[self.at : self.at + 1] in ("<", ">") and _DESCRIPTOR.fullmatch(word.raw):
            self.found.whole &= not word.raw.startswith("{")
            return
        words.append(word)

    def _close(self, words: list[_Word]) -> None:
        """End a command: what the shell reads itself before its words is left out."""
        start = 0
        while start < len(words) and (words[start].raw in _RESERVED or _ASSIGNMENT.match(words[start].raw)):
            start += 1
            self.found.whole = False
        if start < len(words):
            self.found.commands.append(tuple(word.value for word in words[start:]))
        words.clear()

    def _redirect(self, end: str) -> None:
        self.found.extra.add("redirection")
        match = _REDIRECTION.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        if match[0].startswith("<<"):
            self.found.whole = False
        if self.at >= len(self.text) or self.text[self.at] in _ENDS or self.text[self.at] == end:
            self.found.whole = False  # process substitution, or no target
            return
        target = self._word(end)
        if match[0] in ("<<", "<<-"):
            self.here.append((target.text, match[0] == "<<-"))

    def _skip_documents(self) -> None:
        """Skip here-documents; the commands substituted in them are found."""
        for last, tabs in self.here:
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at = stop + 1
                if (line.lstrip("\t") if tabs else line) == last:
                    break
                inner = _Scanner(line.replace('"', '\\"'), self.found, self.depth)
                inner.quoted([])
        self.here.clear()

    # Words

    def _word(self, end: str) -> _Word:
        """Read one word, which has a character at least."""
        start, pieces = self.at, list[str]()
        unknown = False
        while self.at < len(self.text):
            character = self.text[self.at]
            if character in _ENDS or character == end:
                break
            if character == "\\":
                pieces.append(self.text[self.at + 1 : self.at + 2].replace("\n", "") or "")
                self.at += 2
            elif character == "'":
                pieces.append(self._single())
            elif character == '"':
                self.at += 1
                unknown |= self.quoted(pieces)
            elif character == "`" or (character == "$" and self._expands()):
                unknown = True
                self._expand()
            else:
                unknown |= self._is_wild(start, character)
                pieces.append(character)
                self.at += 1
        self.at = min(self.at, len(self.text))
        return _Word("".join(pieces), self.text[start : self.at], unknown)

    def _is_wild(self, start: int, character: str) -> bool:
        """Whether a character that is not quoted makes the shell replace the word, or may make it."""
        before = self.text[start : self.at]
        if character in "*?":
            return True
        if character == "~":
            return before == "" or before[-1] in "=:"
        if character == "]":
            return "[" in before
        return character == "}" and "{" in before and before[-1] != "{"

    def _single(self) -> str:
        stop = self.text.find("'", self.at + 1)
        if stop < 0:
            self.found.whole = False
            stop = len(self.text)
        piece = self.text[self.at + 1 : stop]
        self.at = stop + 1
        return piece

    def quoted(self, pieces: list[str]) -> bool:
        """Read to the closing double quote, which is consumed; whether something in it is expanded."""
        unknown = False
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == '"':
                self.at += 1
                return unknown
            if character == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                pieces.append(self.text[self.at + 1].replace("\n", ""))
                self.at += 2
            elif character == "`" or (character == "$" and self._expands(quoted=True)):
                unknown = True
                self._expand(quoted=True)
            else:
                pieces.append(character)
                self.at += 1
        self.found.whole = False
        return unknown

    def _expands(self, *, quoted: bool = False) -> bool:
        after = self.text[self.at + 1 : self.at + 2]
        return bool(_EXPANDS.match(after)) and not (quoted and after in "'\"")

    def _expand(self, *, quoted: bool = False) -> None:
        """Skip what the shell replaces; the commands in it are found."""
        self.found.whole = False
        if self.text[self.at] == "`":
            self._backquoted()
            return
        after = self.text[self.at + 1]
        self.at += 1
        if after == "(" and self.depth < _MAX_DEPTH:
            self.at += 1
            self._nested(")")
        elif after == "{":
            self.at += 1
            self._parameter()
        elif after == "'" and not quoted:
            match = re.compile(r"'(?:[^'\\]|\\.)*'?", re.DOTALL).match(self.text, self.at)
            self.at = match.end() if match else len(self.text)

    def _parameter(self) -> None:
        while self.at < len(self.text):
            character = self.text[self.at]
            if character == "}":
                self.at += 1
                return
            if character == "\\":
                self.at += 2
            elif character == "`" or (character == "$" and self._expands()):
                if self.depth >= _MAX_DEPTH:
                    self.at += 1
                    continue
                self.depth += 1
                self._expand(quoted=True)
                self.depth -= 1
            elif character == '"':
                self.at += 1
                self.quoted([])
            else:
                self.at += 1

    def _backquoted(self) -> None:
        match = re.compile(r"`((?:[^`\\]|\\.)*)(?:`|\Z)", re.DOTALL).match(self.text, self.at)
        self.at = match.end() if match else len(self.text)
        if match and self.depth < _MAX_DEPTH:
            inner = re.sub(r"\\([`\\$])", r"\1", match[1])
            _Scanner(inner, self.found, self.depth + 1).run("")
