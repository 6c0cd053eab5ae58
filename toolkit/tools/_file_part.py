"""Part of a file's text for an answer: whole lines, as many as there is room for, and where to go on.

Content is judged whole and before it is cut, so no piece of a secret is in any part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringfence.policy.model import Amount
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_text import UNKNOWN, WIDE, file_text
from ringfence.toolkit.media import MAX_BYTES as MAX_MEDIA
from ringfence.toolkit.media import Media, mime_type
from ringfence.toolkit.plan.content import sha256
from ringfence.toolkit.text import decode, is_binary, plural, size, split_lines
from ringfence.toolkit.tools import preconditions

if TYPE_CHECKING:
    from ringfence.toolkit.plan.changes import Place
    from ringfence.toolkit.workspace.view import View

MAX_BYTES = 16 << 20
_NAMES = {"image": "Image", "audio": "Audio"}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which part is wanted: lines from 1, bytes of the text in UTF-8. With `tail`, the last lines.

    `goes_on` is what stands before the arguments of the call that reads on.
    """

    max_bytes: int
    start_line: int = 1
    line_offset: int = 0
    max_lines: int = 2000
    tail: int | None = None
    goes_on: str = "go on with "


@dataclass(frozen=True, slots=True)
class Part:
    """The part of one file in an answer: its text and fields, and the content given, for limits."""

    content: str
    data: dict[str, Any]
    gives: Amount | None = None
    media: Media | None = None


def part(place: Place, view: View, wanted: Wanted, *, alone: bool = True) -> Part:
    """Return a part of the file at a place. Raises `too_large`, `line_out_of_range` and what reading raises.

    `alone`: as in `View.shown`.
    """
    stat = preconditions.regular_file(place)
    if stat.size is not None and stat.size > MAX_BYTES:
        message = (
            f"'{preconditions.shown(place)}' has {size(stat.size)}; files up to {size(MAX_BYTES)} are read"
        )
        raise CallError("too_large", message, where="path", hint="ask a person for the part that is needed")
    data = view.read(place, MAX_BYTES)
    text = file_text(data)
    fields = {"path": place.named, "size": len(data), "digest": sha256(data)}
    if is_binary(text.data):
        return _of_binary(place, view, data, fields, alone=alone)
    shown = view.shown(place, text.data, alone=alone)
    return _of_text(wanted, place, shown, {**fields, "encoding": text.encoding})


def _of_binary(place: Place, view: View, data: bytes, fields: dict[str, Any], *, alone: bool) -> Part:
    fields = {**fields, "binary": True}
    kind = mime_type(data)
    if kind is None or len(data) > MAX_MEDIA:
        view.excerpt(place, data)  # nothing of it is shown but its digest
        if kind is None:
            return Part(f"Binary file, {len(data):,} bytes", fields)
        return Part(
            f"{_NAMES[kind[:5]]} ({kind}), {size(len(data))}; up to {size(MAX_MEDIA)} are shown",
            {**fields, "mime_type": kind, "attached": False},
        )
    said = f"{_NAMES[kind[:5]]} ({kind}), {size(len(data))}"
    if view.shown(place, data, alone=alone) != data:
        # With a mark in the place of a secret it would be no image any more.
        said += "; not shown, because of its content"
        return Part(said, {**fields, "mime_type": kind, "attached": False})
    media = Media(place.named, kind, data)
    return Part(said, {**fields, "mime_type": kind, "attached": True}, Amount(1, len(data)), media)


def _of_text(wanted: Wanted, place: Place, data: bytes, fields: dict[str, Any]) -> Part:
    lines, known = split_lines(data), fields["encoding"] != UNKNOWN
    start, offset = _start(wanted, len(lines)), wanted.line_offset
    if start > max(len(lines), 1):
        message = (
            f"Line {start} is out of range: '{preconditions.shown(place)}' has {plural(len(lines), 'line')}"
        )
        raise CallError("line_out_of_range", message, where="start_line")
    rest = _after(lines[start - 1 : start - 1 + wanted.max_lines], start, offset)
    kept, cut = _fitting(rest, wanted.max_bytes, known)
    end = start - 1 + len(kept)
    text = decode(b"".join(kept))
    notes = [] if known else ["[Not UTF-8: bytes that are no text are shown as \\xNN]"]
    if fields["encoding"] in WIDE:
        notes = [f"[Encoding: {fields['encoding']}]"]
    more: dict[str, Any] = {}
    if cut:
        reached = offset + len(kept[0])
        more = {"start_line": start, "line_offset": reached}
        notes.append(
            f"[Line {start}: bytes {offset:,} to {reached:,} of {len(lines[start - 1]):,};"
            f" {wanted.goes_on}start_line: {start}, line_offset: {reached}]"
        )
    elif end < len(lines):
        more = {"start_line": end + 1, "line_offset": 0}
        notes.append(f"[Lines {start} to {end} of {len(lines)}; {wanted.goes_on}start_line: {end + 1}]")
    elif wanted.tail is not None and start > 1:
        notes.append(f"[Lines {start} to {end} of {len(lines)}]")
    body = text if text else "[The file is empty]"
    return Part(
        "\n".join([body.removesuffix("\n"), *notes]) if notes else body,
        {
            **fields,
            "binary": False,
            "content": text,
            "lines": len(lines),
            "start_line": start,
            "end_line": end,
            "truncated": start > 1 or offset > 0 or bool(more),
            **({"next": more} if more else {}),
        },
        Amount(1, sum(map(len, kept))),
    )


def _start(wanted: Wanted, total: int) -> int:
    """Return the number of the first line to show. Raises CallError `invalid_arguments` for two of them."""
    if wanted.tail is None:
        return wanted.start_line
    if wanted.start_line != 1 or wanted.line_offset:
        message = "A call has tail, or start_line and line_offset, not both"
        raise CallError("invalid_arguments", message, where="tail", hint="leave one of them out")
    return max(total - wanted.tail, 0) + 1


def _after(lines: list[bytes], start: int, offset: int) -> list[bytes]:
    """Return the lines without the first `offset` bytes of the first one. Raises `line_out_of_range`."""
    if not offset:
        return lines
    length = len(lines[0]) if lines else 0
    if offset >= length:
        message = f"Byte {offset} is out of range: line {start} has {plural(length, 'byte')}"
        raise CallError("line_out_of_range", message, where="line_offset")
    return [lines[0][offset:], *lines[1:]]


def _fitting(lines: list[bytes], room: int, known: bool) -> tuple[list[bytes], bool]:
    """Return as many whole lines as fit, and False; if not even one fits, its beginning and True."""
    left = room
    for number, line in enumerate(lines):
        left -= len(line) if known else len(decode(line))
        if left < 0:
            return (lines[:number], False) if number else ([_beginning(line, room, known)], True)
    return lines, False


def _beginning(line: bytes, room: int, known: bool) -> bytes:
    """Return as much of a line as fits when it is shown, without splitting a character."""
    if not known:
        return line[: room // 4]  # a byte that is not text is shown as four characters
    end = room
    while end > 1 and line[end] & 0xC0 == 0x80:
        end -= 1
    return line[:end]
