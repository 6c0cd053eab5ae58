"""Brace expansion: a pattern's alternatives, and the errors that a pattern can have.

Each alternative stores the offsets of its characters, so that an error in it points at the source text.
"""

from __future__ import annotations

from typing import Final, NoReturn

MAX_ALTERNATIVES: Final = 256


class PatternError(ValueError):
    """An error in a pattern, and its place in the text."""

    def __init__(self, code: str, message: str, hint: str, offset: int = 0, length: int = 1) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.offset = offset
        self.length = length


def fail(  # noqa: PLR0913  the fields of a PatternError and its text
    code: str, message: str, hint: str, text: str, offset: int = 0, length: int | None = None
) -> NoReturn:
    """Raise PatternError at a place in a pattern; without a place, for the whole pattern."""
    raise PatternError(code, message, hint, offset, max(1, len(text) if length is None else length))


def expand(text: str) -> list[tuple[int, ...]]:
    """Return the alternatives of a pattern, one if it has no braces.

    PatternError for unbalanced braces, an unclosed class or too many alternatives.
    """
    if "{" not in text and "}" not in text:
        return [tuple(range(len(text)))]
    outer: list[tuple[list[tuple[int, ...]], list[tuple[int, ...]], int]] = []
    done: list[tuple[int, ...]] = []
    current: list[tuple[int, ...]] = [()]
    at = 0
    while at < len(text):
        character, end = text[at], at + 1
        if character == "{":
            outer.append((done, current, at))
            done, current = [], [()]
        elif character == "," and outer:
            done, current = done + current, [()]
        elif character == "}":
            done, current = _close(text, at, outer, done, current)
        else:
            end = class_end(text, at) if character == "[" else end
            current = [picked + tuple(range(at, end)) for picked in current]
        if len(done) + len(current) > MAX_ALTERNATIVES:
            message = f"the braces stand for more than {MAX_ALTERNATIVES} patterns"
            fail("pattern_too_many", message, "write several patterns, or use '*'", text)
        at = end
    if outer:
        hint = "close it with '}'; for the character itself write [{]"
        fail("pattern_brace", "'{' is not closed", hint, text, outer[-1][2], 1)
    return current


def _close(
    text: str,
    at: int,
    outer: list[tuple[list[tuple[int, ...]], list[tuple[int, ...]], int]],
    done: list[tuple[int, ...]],
    current: list[tuple[int, ...]],
) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    if not outer:
        fail("pattern_brace", "'}' without '{'", "for the character itself write [}]", text, at, 1)
    before, prefixes, start = outer.pop()
    if not done:
        hint = "write {a,b} for alternatives; for the character itself write [{]"
        fail("pattern_brace", "braces without a comma", hint, text, start, at + 1 - start)
    return before, [head + tail for head in prefixes for tail in done + current]


def class_end(text: str, start: int) -> int:
    """Return the offset after the `]` of the class that opens at start."""
    at = start + 1
    if text[at : at + 1] in {"!", "^"}:
        at += 1
    at = text.find("]", at + 1)
    if at < 0:
        hint = "close it with ']'; for the character itself write [[]"
        fail("pattern_class", "'[' is not closed", hint, text, start, 1)
    opened = text.find("[:", start + 1, at)
    if opened >= 0 and text[at - 1] == ":" and at - 1 > opened + 1:
        hint = "write the characters: [a-z], [0-9]"
        fail(
            "pattern_class", f"classes by name such as '{text[opened : at + 1]}' are not known", hint,
            text, opened, at + 1 - opened,
        )  # fmt: skip
    slash = text.find("/", start, at)
    if slash >= 0:
        hint = "a class stands for one character of a name"
        fail("pattern_class", "'/' in a class matches nothing", hint, text, slash, 1)
    return at + 1
