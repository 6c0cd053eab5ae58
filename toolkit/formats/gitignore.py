"""One line of a file like .gitignore: the paths it matches, and the same as a pattern of a policy.

Source: gitignore(5).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ringfence.policy.patterns.syntax import CharClass
from ringfence.toolkit.formats.model import LONGEST
from ringfence.toolkit.formats.regular_language import (
    IN_NAME,
    NAME,
    NAMES_ABOVE,
    SLASH,
    Language,
    Many,
    One,
    Row,
    either_case,
    letter,
)

_SPECIAL = "*?[{}"


class LineError(ValueError):
    """A line that matches no path at all; the message says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line: what it matches by itself (`folder`: directories only), and the equivalent pattern.

    `wider`: why both match more than the line does; empty where they match the same.
    """

    negated: bool
    language: Language
    folder: bool
    pattern: str
    wider: str = ""


Piece = str | CharClass | None  # a character as it is, a class, or a star
Segment = tuple[Piece, ...] | None  # None: `**`


def lines(text: str) -> Iterator[tuple[int, str]]:
    """Return the lines with a rule, and their numbers."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        stripped = line.rstrip("\r")
        bare = stripped.rstrip(" \t")
        if bare.endswith("\\") and len(stripped) > len(bare):
            bare += " "
        if bare and not bare.startswith("#"):
            yield number, bare


def line(text: str, *, fold: bool = False, any_case: bool = False, depth: bool = False) -> Line:
    """Parse a line. `depth`: a pattern with a slash matches at any depth too. LineError."""
    negated = text.startswith("!")
    body = text[1:] if negated else text
    folder = body.endswith("/") and not body.endswith("\\/")
    body = body.rstrip("/") if folder else body
    anchored = "/" in body and not depth
    body = body.removeprefix("/")
    if not body:
        raise LineError("it names nothing")
    wider = ""
    if len(body) > LONGEST:
        wider, folder = f"it has {len(body)} characters; only its start is used", False
        body = _shortened(body)
    segments: list[Segment] = []
    for part in body.split("/"):
        segment, unsaid = _segment(part)
        segments.append(segment)
        if unsaid:
            wider, folder = unsaid, False  # the rest of the line is below what the star now matches
            break
    if any(segment == () for segment in segments):
        raise LineError("two slashes with no name between them match nothing")
    if not anchored and (segments[0] is not None or len(segments) == 1):
        segments = [None, *segments]
    while len(segments) > 1 and segments[-1] is None and segments[-2] is None:
        segments.pop()
    pattern = _pattern(segments, folder, any_case)
    if len(pattern) > LONGEST:
        return _without_letters(Line(negated, _language(segments, fold), folder, pattern, wider), segments)
    return Line(negated, _language(segments, fold), folder, pattern, wider)


def _shortened(body: str) -> str:
    """Return the start of a long line and a star: it matches all that the line matches, and more."""
    cut = body[: LONGEST - 8]
    for special in "[\\":
        cut = cut.partition(special)[0]
    return cut.rstrip("/") + "*"


def _without_letters(long: Line, segments: list[Segment]) -> Line:
    """Return the line with `?` for each letter, which matches both cases."""
    plain = [
        segment and tuple(IN_NAME if _cased(piece) else piece for piece in segment) for segment in segments
    ]
    pattern = _pattern(plain, long.folder, any_case=False)
    wider = long.wider or "with both cases of its letters it is too long; written with '?' for each"
    return Line(long.negated, _language(plain, False), long.folder, pattern, wider)


def _cased(piece: Piece) -> bool:
    return isinstance(piece, str) and len(either_case(piece)) > 1


def _segment(part: str) -> tuple[Segment, str]:  # noqa: C901  one flat branch per special character
    """Return one name, and why it matches more than the line does."""
    if len(part) > 1 and not part.strip("*"):
        return None, ""
    found: list[Piece] = []
    at = 0
    while at < len(part):
        character = part[at]
        at += 1
        if character == "\\":
            if at == len(part):
                raise LineError("a backslash at the end matches nothing")
            found.append(part[at])
            at += 1
        elif character == "*":
            if not found or found[-1] is not None:
                found.append(None)
        elif character == "?":
            found.append(IN_NAME)
        elif character == "[":
            try:
                kind, at = _class(part, at)
            except _ClassError as error:
                if not found or found[-1] is not None:
                    found.append(None)
                return tuple(found), f"{error}; written with a star from there on"
            found.append(kind)
        else:
            found.append(character)
    if "".join(each for each in found if isinstance(each, str)) in (".", "..") and None not in found:
        raise LineError("'.' and '..' are no names, and match nothing")
    return tuple(found), ""


class _ClassError(ValueError):
    """A character class that a policy cannot express; the message says why."""


def _class(part: str, at: int) -> tuple[CharClass, int]:
    if part[at : at + 1] in ("!", "^"):
        # For git it is a negation; the library that most agents use takes the mark as one more character.
        raise _ClassError("a class with '!' or '^' at its start, which is not read alike everywhere")
    ranges: list[tuple[str, str]] = []
    start = at
    while at < len(part) and (part[at] != "]" or at == start):
        if part[at] == "\\" or part.startswith("[:", at):
            raise _ClassError("a class with a backslash or a name in it")
        low = high = part[at]
        if part[at + 1 : at + 2] == "-" and part[at + 2 : at + 3] not in ("]", ""):
            high, at = part[at + 2], at + 2
        if high < low:
            raise _ClassError("a range that runs backwards")
        ranges.append((low, high))
        at += 1
    if at >= len(part):
        raise _ClassError("a class that is not closed")
    if any(set(pair) & set("]-!^/") for pair in ranges):
        raise _ClassError("a class with ']', '-', '!', '^' or '/' in it")
    return CharClass(False, tuple(ranges)), at + 1


def _language(segments: list[Segment], fold: bool) -> Language:
    out: list[Language] = []
    for at, segment in enumerate(segments):
        last = at == len(segments) - 1
        if segment is None:
            out.append(NAMES_ABOVE)
            if last:
                out.append(NAME)
            continue
        out += [_one(piece, fold) for piece in segment]
        if all(piece is None for piece in segment):
            out = [*out[: -len(segment)], NAME]
        if not last:
            out.append(One(SLASH))
    return Row(tuple(out))


def _one(piece: Piece, fold: bool) -> Language:
    if piece is None:
        return Many(One(IN_NAME))
    if isinstance(piece, str):
        return One(letter(piece, fold=fold))
    if fold:
        piece = CharClass(piece.negated, (*piece.ranges, *_other_case(piece)))
    return One(piece)


def _other_case(kind: CharClass) -> Iterator[tuple[str, str]]:
    for low, high in kind.ranges:
        for code in range(ord(low), min(ord(high), 0x7F) + 1):
            other = chr(code).swapcase()
            if other != chr(code):
                yield other, other


def _pattern(segments: list[Segment], folder: bool, any_case: bool) -> str:
    names = [
        "**" if segment is None else "".join(_written(p, any_case) for p in segment) for segment in segments
    ]
    if folder:
        if segments[-1] is None:
            names[-1] = "*"  # folders at any depth: everything that is not directly in the base
        names.append("**")  # a line for a folder does not match the folder's own name when a tool names it
    if len(names) == 2 and names[0] == "**" and names[1] != "**":
        return names[1] if not names[1].startswith("!") else "/".join(names)
    joined = "/".join(names)
    return joined if len(names) > 1 and not joined.startswith("!") else f"/{joined}"


def _written(piece: Piece, any_case: bool) -> str:
    if piece is None:
        return "*"
    if isinstance(piece, str):
        if any_case and len(either_case(piece)) > 1:
            return f"[{''.join(either_case(piece))}]"
        return f"[{piece}]" if piece in _SPECIAL else piece
    if piece == IN_NAME:
        return "?"
    ranges = [*piece.ranges, *(_other_case(piece) if any_case else ())]
    inner = "".join(low if low == high else f"{low}-{high}" for low, high in dict.fromkeys(ranges))
    return f"[{inner}]"
