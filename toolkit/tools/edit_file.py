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

Spans = tuple[tuple[int, int], ...]


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan the replacement of the one place with `old_str`. Raises CallError `no_match` or `not_unique`."""
    place = view.place("path")
    old, new = arguments["old_str"].encode("utf-8"), arguments["new_str"].encode("utf-8")
    if not old:
        raise CallError("invalid_arguments", "old_str is empty", where="old_str")
    before = targets.editable(place, view)
    seen = view.excerpt(place, before)
    old, new, at = _the_match(before, old, new, place, seen.hidden)
    check_encoding(before, at, old + new, targets.shown(place))
    after = before[:at] + new + before[at + len(old) :]
    line = before.count(b"\n", 0, at) + 1
    content = answers.message(
        f"✓ Edited file: {escape(place.named)}",
        answers.said("Reason", arguments),
        f"Replaced at line {line}: {_lines(old)} by {_lines(new)}",
    )
    change = Write(place.real, after, before, place.stat)
    shown = answers.shown_diff(place, before, after, view)
    return Plan(
        content=content,
        data={"path": place.named, "line": line, **answers.written(change, after), "diff": shown},
        changes=(change,),
        title=f"Edit file {targets.led_to(place)} at line {line}",
        draw=lambda: diff(place.named, before, after),
    )


def _the_match(
    data: bytes, old: bytes, new: bytes, place: Place, hidden: Spans = ()
) -> tuple[bytes, bytes, int]:
    """Return what to replace, by what, and where. Line feeds in the arguments also match CRLF in the file.

    What is hidden from the agent does not match: otherwise a secret could be guessed piece by piece.
    """
    at = _find(data, old, 0, hidden)
    plain = b"\r" not in old
    if plain and (newline(data) == CRLF or (at < 0 and CRLF in data)):
        old, new = with_newline(old, CRLF), with_newline(new, CRLF)
        at = _find(data, old, 0, hidden)
    if old == new:
        raise CallError("invalid_arguments", "old_str and new_str are the same", where="new_str")
    if at < 0:
        hint = "read the file and copy the text exactly, with its spaces and line ends"
        raise CallError(
            "no_match", f"String not found in '{targets.shown(place)}'", where="old_str", hint=hint
        )
    count = _occurrences(data, old, at, hidden)
    if count > 1:
        message = f"Found {count} matches for the string in '{targets.shown(place)}'. Provide a unique string"
        raise CallError("not_unique", message, where="old_str", data={"matches": count})
    return old, new, at


def _find(data: bytes, old: bytes, start: int, hidden: Spans) -> int:
    """Return the first place of a text from `start` on that does not overlap what is hidden, or -1."""
    at = data.find(old, start)
    while at >= 0 and any(at < end and first < at + len(old) for first, end in hidden):
        at = data.find(old, at + 1)
    return at


def _occurrences(data: bytes, old: bytes, at: int, hidden: Spans) -> int:
    # Overlapping matches count: in "aaa" there are two ways to replace "aa".
    count = 0
    while at >= 0:
        count += 1
        at = _find(data, old, at + 1, hidden)
    return count


def _lines(data: bytes) -> str:
    return plural(count_lines(data), "line")
