"""read_file: a text file or a stretch of its lines, with the digest of the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import CallError
from toolkit.plan import Place, Plan, sha256
from toolkit.text import decode, is_binary, plural, size, split_lines
from toolkit.tools import targets

if TYPE_CHECKING:
    from toolkit.workspace import View

MAX_BYTES = 16 << 20
MAX_SHOWN = 1 << 20


def plan(arguments: dict[str, Any], view: View) -> Plan:
    place = view.place("path")
    stat = targets.regular_file(place)
    if stat.size is not None and stat.size > MAX_BYTES:
        message = f"'{targets.shown(place)}' has {size(stat.size)}; files up to {size(MAX_BYTES)} are read"
        raise CallError("too_large", message, where="path", hint="ask a person for the part that is needed")
    data = view.read(place, MAX_BYTES)
    fields = {"path": place.named, "size": len(data), "digest": sha256(data)}
    if is_binary(data):
        return Plan(content=f"Binary file, {len(data):,} bytes", data={**fields, "binary": True})
    return _text(arguments, place, data, fields)


def _text(arguments: dict[str, Any], place: Place, data: bytes, fields: dict[str, Any]) -> Plan:
    lines = split_lines(data)
    start, most = int(arguments["start_line"]), int(arguments["max_lines"])
    if start > max(len(lines), 1):
        message = f"Line {start} is out of range: '{targets.shown(place)}' has {plural(len(lines), 'line')}"
        raise CallError("line_out_of_range", message, where="start_line")
    kept, cut = _fitting(lines[start - 1 : start - 1 + most])
    end = start - 1 + len(kept)
    utf8 = _is_utf8(data)
    text = decode(b"".join(kept))
    notes = []
    if not utf8:
        notes.append("[Not UTF-8: bytes that are no text are shown as \\xNN]")
    if cut:
        notes.append(f"[Line {end} is cut after {size(MAX_SHOWN)}]")
    if end < len(lines):
        notes.append(f"[Lines {start} to {end} of {len(lines)}; go on with start_line: {end + 1}]")
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
            "truncated": cut or start > 1 or end < len(lines),
            "encoding": "utf-8" if utf8 else "unknown",
        },
    )


def _fitting(lines: list[bytes]) -> tuple[list[bytes], bool]:
    """As many whole lines as there is room for; when not even one fits, its beginning and True."""
    room = MAX_SHOWN
    for number, line in enumerate(lines):
        room -= len(line)
        if room < 0:
            return (lines[:number], False) if number else ([line[:MAX_SHOWN]], True)
    return lines, False


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
