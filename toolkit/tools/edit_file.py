"""edit_file: replace a text that occurs exactly once in a file, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Place, Plan, Write
from ringfence.toolkit.text import count_lines, diff, escape, plural
from ringfence.toolkit.tools import _messages as answers
from ringfence.toolkit.tools import preconditions as targets
from ringfence.toolkit.tools._byte_edits import CRLF, check_encoding, newline, with_newline

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan the replacement of the one place with `old_str`. Raises CallError `no_match` or `not_unique`."""
    place = view.place("path")
    old, new = arguments["old_str"].encode("utf-8"), arguments["new_str"].encode("utf-8")
    if not old:
        raise CallError("invalid_arguments", "old_str is empty", where="old_str")
    before = targets.editable(place, view)
    old, new, at = _the_match(before, old, new, place)
    check_encoding(before, at, old + new, targets.shown(place))
    after = before[:at] + new + before[at + len(old) :]
    line = before.count(b"\n", 0, at) + 1
    content = answers.message(
        f"✓ Edited file: {escape(place.named)}",
        answers.said("Reason", arguments),
        f"Replaced at line {line}: {_lines(old)} by {_lines(new)}",
    )
    change = Write(place.real, after, before, place.stat)
    shown = diff(place.named, before, after)
    return Plan(
        content=content,
        data={"path": place.named, "line": line, **answers.written(change, after), "diff": shown},
        changes=(change,),
        title=f"Edit file {targets.led_to(place)} at line {line}",
        draw=lambda: shown,
    )


def _the_match(data: bytes, old: bytes, new: bytes, place: Place) -> tuple[bytes, bytes, int]:
    """Return what to replace, by what, and where. Line feeds in the arguments also match CRLF in the file."""
    at = data.find(old)
    plain = b"\r" not in old
    if plain and (newline(data) == CRLF or (at < 0 and CRLF in data)):
        old, new = with_newline(old, CRLF), with_newline(new, CRLF)
        at = data.find(old)
    if old == new:
        raise CallError("invalid_arguments", "old_str and new_str are the same", where="new_str")
    if at < 0:
        hint = "read the file and copy the text exactly, with its spaces and line ends"
        raise CallError(
            "no_match", f"String not found in '{targets.shown(place)}'", where="old_str", hint=hint
        )
    count = _occurrences(data, old, at)
    if count > 1:
        message = f"Found {count} matches for the string in '{targets.shown(place)}'. Provide a unique string"
        raise CallError("not_unique", message, where="old_str", data={"matches": count})
    return old, new, at


def _occurrences(data: bytes, old: bytes, at: int) -> int:
    # Overlapping matches count: in "aaa" there are two ways to replace "aa".
    count = 0
    while at >= 0:
        count += 1
        at = data.find(old, at + 1)
    return count


def _lines(data: bytes) -> str:
    return plural(count_lines(data), "line")
