"""Regular expressions for paths in Gemini CLI rules: patterns are written as them, and a subset is read.

The subset: literals, escapes, classes, `.`, groups, alternatives, `?`, `*` and `+` on one character. A path
stands in JSON there, so a quotation mark in it is written with a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ringfence.policy.patterns.syntax import CROSS, CharClass, Name, parse
from ringfence.toolkit.formats.wildcard import Any1, Kind, Star, Token, Tokens

MAX_VARIANTS = 256
END = "\n"  # the quotation mark after a path, as a token; in a path it has a backslash before it
# Any text, and any within a name. Without `(?:` and without a quantifier in a group that is repeated: both
# together are rejected there as unsafe, and the rule is ignored.
_ANY_TEXT, _ANY_IN_NAME = r'([^"\\]|\\.)*', r'([^"\\/]|\\.)*'
_ESCAPED_QUOTE, _ESCAPED_OTHER = r'\\"', r'\\[^u"]|\\u....'  # one character, written with a backslash
_ESCAPED = f"{_ESCAPED_QUOTE}|{_ESCAPED_OTHER}"
_QUOTE = '"'
# How a class begins and ends as `of_pattern` writes it.
_CLASSES_WRITTEN = (
    (r'([^"\\/', f"]|{_ESCAPED})"),
    (r'([^"\\/', f"]|{_ESCAPED_OTHER})"),
    ("([", f"]|{_ESCAPED_QUOTE})"),
)
# As numbers what is a group or a quantifier: the check for unsafe expressions does not see the backslash.
_GROUPS = {c: f"\\x{ord(c):02x}" for c in "()*+?{}"}
_LITERALS = {_QUOTE: _ESCAPED_QUOTE, **_GROUPS, **{c: f"\\{c}" for c in "^$.[]|/"}}
_CLASS_LITERALS = {**_GROUPS, **{c: f"\\{c}" for c in "\\]^-["}}
_NUMBERED = re.compile(r"\\x([0-9A-Fa-f]{2})")
_CLASSES = {"d": (("0", "9"),), "w": (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))}


class RegexError(ValueError):
    """A part of a regular expression outside the subset."""


def of_pattern(pattern: str) -> list[str]:
    """Return expressions for the paths that a pattern matches, and all below, in JSON after the opening
    quotation mark. They match up to the closing one.
    """
    if pattern == "*":
        return [f'{_ANY_TEXT}"']
    out = []
    for branch in parse(pattern).branches:
        parts = []
        for at, segment in enumerate(branch.segments):
            if segment is CROSS:
                parts.append(f"(|{_ANY_TEXT}/)")
                continue
            parts.append(_of_name(segment))
            if at < len(branch.segments) - 1:
                parts.append("/")
        parts.append(f"/{_ANY_TEXT}" if branch.directory else f"(|/{_ANY_TEXT})")
        out.append("".join(parts) + '"')
    return out


def _of_name(name: Name) -> str:
    return _ANY_IN_NAME.join(
        "".join(_of_text(atom) if isinstance(atom, str) else _of_class(atom) for atom in piece)
        for piece in name.pieces
    )


def _of_text(text: str) -> str:
    return "".join(_LITERALS.get(character, character) for character in text)


def _of_class(one: CharClass) -> str:
    """Return an expression for one character of a class, which is never a slash."""
    if one.negated:
        inside = "".join(map(_of_range, one.ranges))
        return f'([^"\\\\/{inside}]|{_ESCAPED if _QUOTE in one else _ESCAPED_OTHER})'
    pieces = [piece for low, high in one.ranges for piece in _without(low, high, '"/\\')]
    plain = f"[{''.join(map(_of_range, pieces))}]" if pieces else ""
    if _QUOTE not in one:
        return plain
    return f"({plain}|{_ESCAPED_QUOTE})" if plain else _ESCAPED_QUOTE


def _without(low: str, high: str, characters: str) -> Iterator[tuple[str, str]]:
    """Yield a range in pieces without some characters, which are given in order."""
    for character in characters:
        if low <= character <= high:
            if low < character:
                yield low, chr(ord(character) - 1)
            low = chr(ord(character) + 1)
    if low <= high:
        yield low, high


def _of_range(pair: tuple[str, str]) -> str:
    low, high = (_CLASS_LITERALS.get(edge, edge) for edge in pair)
    return low if low == high else f"{low}-{high}"


def passes_the_end(expression: str) -> bool:
    """Whether a `.` or a negated class of an expression may match the quotation mark after the path."""
    for written in (_ANY_TEXT, _ANY_IN_NAME, _ESCAPED_OTHER, r"\."):
        expression = expression.replace(written, "")
    return "." in expression or re.search(r'\[\^[^"\]]*\]', expression) is not None


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
    if (known := _written(text, at)) is not None:
        token, at = known
        return [(token,)], at
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


def _written(text: str, at: int) -> tuple[Token, int] | None:
    """Return what `of_pattern` writes as a group, as one token; None for any other text."""
    for written, star in ((_ANY_TEXT, Star()), (_ANY_IN_NAME, Star(name=True))):
        if text.startswith(written, at):
            return star, at + len(written)
    for start, rest in _CLASSES_WRITTEN:
        if not text.startswith(start, at):
            continue
        members = list(_members(text, at + len(start)))
        end = members[-1][1] if members else at + len(start)
        if not text.startswith(rest, end):
            continue
        ranges = [pair for pair, _ in members]
        if start == "([":
            return _kind(CharClass(False, tuple(sorted([*ranges, (_QUOTE, _QUOTE)])))), end + len(rest)
        if not ranges:
            return Any1(name=True), end + len(rest)
        return _kind(CharClass(True, (*sorted(ranges), ("/", "/")))), end + len(rest)
    return None


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
    if character == "\\":
        return _escaped(text, at)
    if character in "^$*+?{" or character < " ":
        raise RegexError(f"{character!r} here")
    return (END if character == _QUOTE else character), at + 1


def _escaped(text: str, at: int) -> tuple[Token, int]:
    """Return the character that a backslash stands before."""
    if text.startswith(_ESCAPED_QUOTE, at):
        return _QUOTE, at + len(_ESCAPED_QUOTE)
    if (numbered := _NUMBERED.match(text, at)) is not None:
        return _one_of_number(numbered), numbered.end()
    after = text[at + 1 : at + 2]
    if after in _CLASSES:
        return Kind(CharClass(False, _CLASSES[after])), at + 2
    if not after or after.isalnum():
        raise RegexError(f"the escape \\{after}")
    return after, at + 2


def _one_of_number(numbered: re.Match[str]) -> str:
    character = chr(int(numbered[1], 16))
    if not character.isprintable() or character in (_QUOTE, "\\"):
        raise RegexError(f"the character {numbered[0]}")
    return character


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
    kept = (*ranges, ("/", "/")) if negated else ranges
    return _kind(CharClass(negated, kept), quote=negated and '"' not in listed), at + 1


def _kind(one: CharClass, *, quote: bool = False) -> Kind:
    """Return a class as a token. RegexError if no pattern can have it."""
    ranges = [pair for pair in one.ranges if not (one.negated and pair == ("/", "/"))]
    if any(set(pair) & set("]!^-/\\") for pair in ranges) or (not one.negated and _spans_slash(ranges)):
        raise RegexError("a class with a character that a pattern cannot have there")
    return Kind(one, quote=quote)


def _spans_slash(ranges: Sequence[tuple[str, str]]) -> bool:
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
    if (numbered := _NUMBERED.match(text, at)) is not None:
        return _one_of_number(numbered), numbered.end()
    after = text[at + 1 : at + 2]
    if not after or after.isalnum():
        raise RegexError(f"the escape \\{after} in a class")
    return after, at + 2
