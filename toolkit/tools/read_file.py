"""read_file: read a text file or some of its lines, with the digest of the whole file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.policy.model import Amount
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_text import UNKNOWN, WIDE, file_text
from ringfence.toolkit.plan.changes import Place, Plan
from ringfence.toolkit.plan.content import sha256
from ringfence.toolkit.text import decode, is_binary, plural, size, split_lines
from ringfence.toolkit.tools import preconditions

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

MAX_BYTES = 16 << 20


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan no change; answer with lines and the digest. Raises `too_large` or `line_out_of_range`."""
    place = view.place("path")
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
        view.excerpt(place, data)  # nothing of it is shown but its digest
        return Plan(content=f"Binary file, {len(data):,} bytes", data={**fields, "binary": True})
    # Content is judged whole and before it is cut, so no piece of a secret is in any part.
    shown = view.shown(place, text.data)
    return _text(arguments, place, shown, {**fields, "encoding": text.encoding})


def _text(arguments: dict[str, Any], place: Place, data: bytes, fields: dict[str, Any]) -> Plan:
    lines, utf8 = split_lines(data), fields["encoding"] != UNKNOWN
    start, offset = _start(arguments, len(lines)), int(arguments["line_offset"])
    if start > max(len(lines), 1):
        message = (
            f"Line {start} is out of range: '{preconditions.shown(place)}' has {plural(len(lines), 'line')}"
        )
        raise CallError("line_out_of_range", message, where="start_line")
    wanted = _after(lines[start - 1 : start - 1 + int(arguments["max_lines"])], start, offset)
    kept, cut = _fitting(wanted, int(arguments["max_bytes"]), utf8)
    end = start - 1 + len(kept)
    text = decode(b"".join(kept))
    notes = [] if utf8 else ["[Not UTF-8: bytes that are no text are shown as \\xNN]"]
    if fields["encoding"] in WIDE:
        notes = [f"[Encoding: {fields['encoding']}]"]
    more: dict[str, Any] = {}
    if cut:
        reached = offset + len(kept[0])
        more = {"start_line": start, "line_offset": reached}
        notes.append(
            f"[Line {start}: bytes {offset:,} to {reached:,} of {len(lines[start - 1]):,};"
            f" go on with start_line: {start}, line_offset: {reached}]"
        )
    elif end < len(lines):
        more = {"start_line": end + 1, "line_offset": 0}
        notes.append(f"[Lines {start} to {end} of {len(lines)}; go on with start_line: {end + 1}]")
    elif "tail" in arguments and start > 1:
        notes.append(f"[Lines {start} to {end} of {len(lines)}]")
    body = text if text else "[The file is empty]"
    return Plan(
        content="\n".join([body.removesuffix("\n"), *notes]) if notes else body,
        data={
            **fields,
            "binary": False,
            "content": text,
            "lines": len(lines),
            "start_line": start,
            "end_line": end,
            "truncated": start > 1 or offset > 0 or bool(more),
            **({"next": more} if more else {}),
        },
        gives=Amount(1, sum(map(len, kept))),
    )


def _start(arguments: dict[str, Any], total: int) -> int:
    """Return the number of the first line to show. Raises CallError `invalid_arguments` for two of them."""
    tail, start = arguments.get("tail"), int(arguments["start_line"])
    if tail is None:
        return start
    if start != 1 or arguments["line_offset"]:
        message = "A call has tail, or start_line and line_offset, not both"
        raise CallError("invalid_arguments", message, where="tail", hint="leave one of them out")
    return max(total - int(tail), 0) + 1


def _after(lines: list[bytes], start: int, offset: int) -> list[bytes]:
    """Return the lines without the first `offset` bytes of the first one. Raises `line_out_of_range`."""
    if not offset:
        return lines
    length = len(lines[0]) if lines else 0
    if offset >= length:
        message = f"Byte {offset} is out of range: line {start} has {plural(length, 'byte')}"
        raise CallError("line_out_of_range", message, where="line_offset")
    return [lines[0][offset:], *lines[1:]]


def _fitting(lines: list[bytes], room: int, utf8: bool) -> tuple[list[bytes], bool]:
    """Return as many whole lines as fit, and False; if not even one fits, its beginning and True."""
    left = room
    for number, line in enumerate(lines):
        left -= len(line) if utf8 else len(decode(line))
        if left < 0:
            return (lines[:number], False) if number else ([_beginning(line, room, utf8)], True)
    return lines, False


def _beginning(line: bytes, room: int, utf8: bool) -> bytes:
    """Return as much of a line as fits when it is shown, without splitting a character."""
    if not utf8:
        return line[: room // 4]  # a byte that is not text is shown as four characters
    end = room
    while end > 1 and line[end] & 0xC0 == 0x80:
        end -= 1
    return line[:end]
