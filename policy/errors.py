"""Problems with a policy, as values: place, message, source line and hint.

Text is made here only to display a problem. Nothing here reads files or decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ringfence.policy.invisible_characters import INVISIBLE, is_invisible, written_out
from ringfence.policy.value_classes import dataclass

_WIDTH = 160


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a policy file; line and column count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem with a policy."""

    code: str
    message: str
    where: Where | None = None
    text: str = ""
    hint: str = ""
    length: int = 1

    def format(self) -> str:
        """Return the message, the source line with a caret under the place, and the hint."""
        lines = [f"{self.where}: {visible(self.message)}" if self.where else visible(self.message)]
        if self.where and self.text:
            lines += _underlined(self.text, self.where.column, self.length)
        if self.hint:
            lines.append(f"  hint: {visible(self.hint)}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.format()


class PolicyError(Exception):
    """A policy that does not load; `problems` holds every problem found.

    `files` are the files that were looked for, whether they exist or not.
    """

    code = "policy_invalid"

    def __init__(self, problems: Iterable[Problem], files: Iterable[str] = ()) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        self.files: tuple[str, ...] = tuple(files)
        super().__init__("\n".join(problem.format() for problem in self.problems))


def visible(text: str) -> str:
    """Return the text with every invisible character written as its number, and each tab as a blank."""
    if text.isprintable() and (text.isascii() or not re.search(INVISIBLE, text)):
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character == "\t":
        return " "
    return character if character.isprintable() and not is_invisible(character) else written_out(character)


def _underlined(text: str, column: int, length: int) -> list[str]:
    start = min(column - 1, len(text))
    cut = max(0, start - _WIDTH // 2) if len(text) > _WIDTH else 0
    shown = ("..." if cut else "") + visible(text[cut : cut + _WIDTH])
    if len(text) > cut + _WIDTH:
        shown += "..."
    before = len(visible(text[cut:start])) + (3 if cut else 0)
    under = len(visible(text[start : min(start + length, cut + _WIDTH)]))
    return [f"    {shown}", f"    {' ' * before}{'^' * max(1, under)}"]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that is most like this one, or None when no word is close."""
    import difflib  # only a policy with a mistake in it needs this

    close: Sequence[str] = difflib.get_close_matches(word[:64], list(known), n=1, cutoff=0.6)
    return close[0] if close else None
