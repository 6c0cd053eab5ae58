"""Word patterns: what rules for `run` and mandatory `commands` are written in.

The words of a pattern are written as in a shell. A `*` by itself is any one word, and at the end any number
of further words, also none. Anything else that a shell would replace or read itself is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Final

from ringfence.policy.commands.words import Scan, UnknownWord, Words, scan, written
from ringfence.policy.invisible_characters import is_invisible
from ringfence.policy.patterns.syntax import PatternError
from ringfence.policy.value_classes import dataclass

MAX_LENGTH: Final = 1024
MAX_WORDS: Final = 64
ANY: Final = None  # a word of a pattern that stands for any one word
EVERYTHING: Final = "*"  # the pattern of every line, also of one that is not whole


@dataclass(frozen=True, slots=True)
class WordPattern:
    """A pattern: its words (None is any one word), and whether any number of words may follow."""

    words: tuple[str | None, ...]
    rest: bool

    @property
    def everything(self) -> bool:
        """Whether it matches every line, also one that is not whole."""
        return self.rest and not self.words

    def fits(self, words: Words | None) -> bool:
        """Return whether it matches a simple command; None is a line that is not whole."""
        if words is None:
            return self.everything
        if len(words) < len(self.words) or (len(words) > len(self.words) and not self.rest):
            return False
        return all(one is None or one == other for one, other in zip(self.words, words, strict=False))


@functools.lru_cache(maxsize=20_000)
def parse(text: str) -> WordPattern:
    """Return the pattern that a text stands for; PatternError names what a pattern cannot contain."""
    _check_text(text)
    found = scan(text)
    problem = next(_shell_syntax(found), None)
    if problem:
        what, hint = problem
        raise PatternError("command_pattern_shell", f"a pattern of words has {what}", hint, 0, len(text))
    words: list[str | None] = list(found.commands[0])
    if len(words) > MAX_WORDS:
        hint = "end it with '*' after the words that matter"
        raise PatternError(
            "command_pattern_long", f"a pattern has more than {MAX_WORDS} words", hint, 0, len(text)
        )
    for at, word in enumerate(words):
        if isinstance(word, UnknownWord):
            if word != UnknownWord("*"):
                raise _wildcard(text, word)
            words[at] = ANY
    rest = words[-1] is ANY
    return WordPattern(tuple(words[:-1] if rest else words), rest)


def matches(pattern: str, words: Words | None) -> bool:
    """Return whether a pattern matches a simple command, or (None) a line that is not whole."""
    return parse(pattern).fits(words)


def text_of(pattern: WordPattern) -> str:
    """Return a pattern as text, which parses to the same pattern."""
    words = tuple(UnknownWord("*") if word is None else word for word in pattern.words)
    return written((*words, UnknownWord("*")) if pattern.rest else words)


def _check_text(text: str) -> None:
    if not text.strip():
        raise PatternError(
            "command_pattern_empty", "a pattern of words is empty", "'*' is every command", 0, 1
        )
    if len(text) > MAX_LENGTH:
        hint = "end it with '*' after the words that matter"
        raise PatternError(
            "command_pattern_long", f"a pattern has more than {MAX_LENGTH:,} characters", hint, 0, len(text)
        )
    for at, character in enumerate(text):
        if is_invisible(character):
            message = f"character U+{ord(character):04X} cannot be seen"
            raise PatternError("pattern_character", message, "'*' is any one word", at, 1)


def _shell_syntax(found: Scan) -> Iterator[tuple[str, str]]:
    """Yield what a pattern has beside the words of one simple command, with a hint."""
    if len(found.commands) > 1 or "separator" in found.extra:
        yield (
            "more than one command",
            "each simple command of a line is judged by itself: write a pattern for one command",
        )
    if "redirection" in found.extra:
        yield "a redirection", "redirections are no words: leave it out, or put quotes around it"
    if "comment" in found.extra:
        yield "a comment", "put quotes around a word that begins with '#'"
    if not found.whole:
        hint = (
            "write the words of one simple command; put single quotes around what a shell would read itself"
        )
        yield "something that a shell reads itself", hint
    if not found.commands:
        yield "no words", "'*' is every command"


def _wildcard(text: str, word: str) -> PatternError:
    if not set(word) & set("*?["):
        hint = (
            f"for this very text write '{word}' in quotes; a pattern for several texts has '*' in its place"
        )
        message = f'a shell replaces "{str(word)[:60]}"'
        return PatternError(
            "command_pattern_wildcard", message, hint, max(0, text.find(str(word))), len(word)
        )
    if "/" in word:
        hint = "paths go below read, write, delete or run_command; quoted, the word is matched as it stands"
    else:
        hint = f"'*' stands for a whole word, as in: git push *; for this very text write '{word}' in quotes"
    message = f'"{str(word)[:60]}" has a wildcard inside a word'
    return PatternError("command_pattern_wildcard", message, hint, max(0, text.find(str(word))), len(word))
