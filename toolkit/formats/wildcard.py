"""Flat wildcards, in which a star crosses slashes: parsed, judged, and converted into .gitignore patterns.

A match is of the whole path and covers nothing below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ringfence.policy.patterns.syntax import CharClass
from ringfence.toolkit.formats.model import FormatError
from ringfence.toolkit.formats.regular_language import (
    ANY,
    ANYTHING,
    IN_NAME,
    Language,
    Many,
    One,
    Row,
    letter,
)

MAX_VARIANTS = 64


@dataclass(frozen=True, slots=True)
class Star:
    """Any characters, slashes included; or (`name`) any but slashes."""

    name: bool = False


@dataclass(frozen=True, slots=True)
class Any1:
    """One character, a slash included; or (`name`) any but a slash.

    `quote`: in a regular expression, a quote too.
    """

    name: bool = False
    quote: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Kind:
    """One character of a class without a slash; `quote` as in Any1."""

    kind: CharClass
    quote: bool = field(default=False, compare=False)


Token = str | Star | Any1 | Kind  # a str is one character
Tokens = tuple[Token, ...]


def tokens(pattern: str, *, question: bool = True) -> Tokens:
    """Parse `*` and, where the tool supports it, `?`."""
    found: list[Token] = []
    for character in pattern:
        if character == "*":
            if not found or found[-1] != Star():
                found.append(Star())
        else:
            found.append(Any1() if character == "?" and question else character)
    return tuple(found)


def language(pattern: Tokens) -> Language:
    """Return the texts that a whole wildcard matches."""
    parts: list[Language] = []
    for token in pattern:
        if isinstance(token, str):
            parts.append(One(letter(token)))
        elif isinstance(token, Star):
            parts.append(Many(One(IN_NAME)) if token.name else ANYTHING)
        elif isinstance(token, Kind):
            parts.append(One(token.kind))
        else:
            parts.append(One(IN_NAME if token.name else ANY))
    return Row(tuple(parts))


def below(pattern: Tokens, prefix: str) -> list[Tokens]:
    """Return the rest of a pattern of absolute paths after a directory and its slash, in every way."""
    places = {0}
    for character in prefix:
        after: set[int] = set()
        for at in _skip(pattern, places):
            if at < len(pattern):
                token = pattern[at]
                if isinstance(token, Star):
                    after.add(at)
                elif isinstance(token, Any1) or token == character:
                    after.add(at + 1)
        places = after
    return [pattern[at:] for at in sorted(_skip(pattern, places))]


def _skip(pattern: Tokens, places: set[int]) -> set[int]:
    out = set(places)
    for at in sorted(places):
        while at < len(pattern) and isinstance(pattern[at], Star):
            at += 1
            out.add(at)
    return out


def patterns(pattern: Tokens) -> list[str]:
    """Return equivalent .gitignore patterns; each also covers what is below its match."""
    out: dict[str, None] = {}
    for number, variant in enumerate(_variants(pattern)):
        if number >= MAX_VARIANTS:
            raise FormatError("the wildcards stand for too many patterns")
        text = _pattern(variant)
        if text is not None:
            out.setdefault(text)
    return list(out)


def _variants(pattern: Tokens) -> Iterator[Tokens]:
    """Yield each `?` as a slash and as another character, each star in text within a name or across."""
    question = next((at for at, token in enumerate(pattern) if token == Any1()), None)
    star = _between(pattern)
    if question is not None:
        for one in (Any1(name=True), "/"):
            yield from _variants((*pattern[:question], one, *pattern[question + 1 :]))
    elif star is not None:
        for some in ((Star(name=True),), (Star(name=True), "/", Star())):
            yield from _variants((*pattern[:star], *some, *pattern[star + 1 :]))
    else:
        yield pattern


def _between(pattern: Tokens) -> int | None:
    for at, token in enumerate(pattern):
        if token == Star() and 0 < at < len(pattern) - 1:
            before, after = pattern[at - 1], pattern[at + 1]
            if before != "/" and after != "/":
                return at
    return None


def _pattern(pattern: Tokens) -> str | None:
    """Return one pattern, anchored unless it begins with a star for any depth; None: it matches no path."""
    if pattern == (Star(),):
        return "*"
    segments = _segments(pattern)
    out: list[str] = []
    for number, segment in enumerate(segments):
        last = number == len(segments) - 1
        if segment in ((), (".",), (".", ".")):
            return None
        crossing_first = segment[0] == Star()
        crossing_last = segment[-1] == Star()
        name = "".join(escaped(token) for token in segment)
        if segment == (Star(),):
            out += ["**"] if last else ["*", "**"]
            continue
        if crossing_first:
            out.append("**")
        out.append(name)
        if crossing_last and not last:
            out.append("**")
    if out == ["**"]:
        return "*"
    if out[-1] == "**" and len(out) > 1 and out[-2] == "**":
        out.pop()
    return out[1] if len(out) == 2 and out[0] == "**" and not out[1].startswith("!") else _anchored(out)


def _anchored(names: Sequence[str]) -> str:
    joined = "/".join(names)
    return joined if len(names) > 1 and not joined.startswith("!") else f"/{joined}"


def _segments(pattern: Tokens) -> list[Tokens]:
    out: list[list[Token]] = [[]]
    for token in pattern:
        if token == "/":
            out.append([])
        else:
            out[-1].append(token)
    return [tuple(each) for each in out]


def escaped(token: Token) -> str:
    """Return one token in a pattern's syntax."""
    if isinstance(token, Star):
        return "*"
    if isinstance(token, Any1):
        return "?"
    if isinstance(token, Kind):
        inner = "".join(low if low == high else f"{low}-{high}" for low, high in token.kind.ranges)
        return f"[{'!' if token.kind.negated else ''}{inner}]"
    return f"[{token}]" if token in "*?[{}" else token
