"""Subset of regular expressions that people use for paths in Gemini CLI rules.

Literals, escapes, classes, `.`, groups, alternatives, `?`, `*` and `+` on one character. All else is
rejected.
"""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.policy.patterns.syntax import CharClass
from ringfence.toolkit.formats.wildcard import Any1, Kind, Star, Token, Tokens

MAX_VARIANTS = 256
_CLASSES = {"d": (("0", "9"),), "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))}


class RegexError(ValueError):
    """A part of a regular expression outside the subset."""


def variants(expression: str) -> list[Tokens]:
    """Return all alternatives of an expression, each as a flat row of tokens. RegexError."""
    found, at = _either(expression, 0)
    if at < len(expression):
        raise RegexError("a ')' too many")
    return found


def _either(text: str, at: int) -> tuple[list[Tokens], int]:
    out: list[Tokens] = []
    while True:
        row, at = _row(text, at)
        out += row
        if at < len(text) and text[at] == "|":
            at += 1
            continue
        return _bounded(out), at


def _row(text: str, at: int) -> tuple[list[Tokens], int]:
    out: list[Tokens] = [()]
    while at < len(text) and text[at] not in "|)":
        options, at = _item(text, at)
        out = _bounded([(*head, *tail) for head in out for tail in options])
    return out, at


def _bounded(found: list[Tokens]) -> list[Tokens]:
    found = list(dict.fromkeys(found))
    if len(found) > MAX_VARIANTS:
        raise RegexError("too many alternatives")
    return found


def _item(text: str, at: int) -> tuple[list[Tokens], int]:
    """Return one item and its repetition."""
    if text[at] == "(":
        start = at + 3 if text.startswith("(?:", at) else at + 1
        if text.startswith("(?", at) and start != at + 3:
            raise RegexError("a group that looks around")
        inner, at = _either(text, start)
        if at >= len(text):
            raise RegexError("a group that is not closed")
        at += 1
        if text[at : at + 1] == "?":
            return [*inner, ()], at + 1
        if text[at : at + 1] in ("*", "+", "{"):
            raise RegexError("a repeated group")
        return inner, at
    token, at = _one(text, at)
    often = text[at : at + 1]
    if often == "{":
        raise RegexError("a counted repetition")
    if often == "?":
        return [(token,), ()], at + 1
    if often in ("*", "+"):
        star = _star(token)
        lazy = text[at + 1 : at + 2] == "?"
        return [(star,) if often == "*" else (token, star)], at + 1 + lazy
    return [(token,)], at


def _star(token: Token) -> Star:
    if isinstance(token, Any1):
        return Star(token.name)
    raise RegexError("a repetition of anything but '.', [^/] or [^\"]")


def _one(text: str, at: int) -> tuple[Token, int]:
    character = text[at]
    if character == ".":
        return Any1(quote=True), at + 1
    if character == "[":
        return _class(text, at + 1)
    if character in "^$*+?{":
        raise RegexError(f"{character!r} here")
    if character != "\\":
        return character, at + 1
    after = text[at + 1 : at + 2]
    if after in _CLASSES:
        return Kind(CharClass(False, _CLASSES[after])), at + 2
    if not after or after.isalnum():
        raise RegexError(f"the escape \\{after}")
    return after, at + 2


def _class(text: str, at: int) -> tuple[Token, int]:
    negated = text.startswith("^", at)
    at += negated
    members = list(_members(text, at))
    at = members[-1][1] if members else at
    if text[at : at + 1] != "]":
        raise RegexError("a class that is not closed")
    ranges = tuple(sorted(pair for (pair, _) in members))
    listed = {low for low, high in ranges if low == high}
    if negated:
        if len(listed) == len(ranges) and listed in ({"/"}, {"/", '"'}):
            return Any1(name=True, quote='"' not in listed), at + 1
        if len(listed) == len(ranges) and listed == {'"'}:
            return Any1(), at + 1
        if "/" not in listed:
            raise RegexError("a class that may be a slash")
        ranges = tuple(pair for pair in ranges if pair not in (("/", "/"), ('"', '"')))
    if any(set(pair) & set("]!^-/\\") for pair in ranges) or (not negated and _spans_slash(ranges)):
        raise RegexError("a class with a character that a pattern cannot have there")
    kept = (*ranges, ("/", "/")) if negated else ranges
    return Kind(CharClass(negated, kept), quote=negated and '"' not in listed), at + 1


def _spans_slash(ranges: tuple[tuple[str, str], ...]) -> bool:
    return any(low <= "/" <= high for low, high in ranges)


def _members(text: str, at: int) -> Iterator[tuple[tuple[str, str], int]]:
    while at < len(text) and text[at] != "]":
        low, at = _member(text, at)
        high = low
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("]", ""):
            high, at = _member(text, at + 1)
        if high < low:
            raise RegexError("a range that runs backwards")
        yield (low, high), at


def _member(text: str, at: int) -> tuple[str, int]:
    if text[at] != "\\":
        return text[at], at + 1
    after = text[at + 1 : at + 2]
    if not after or after.isalnum():
        raise RegexError(f"the escape \\{after} in a class")
    return after, at + 2
