"""edit_file: replace a text that occurs exactly once, each occurrence of it, or several texts, in bytes."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Place, Plan, Write
from ringfence.toolkit.text import count_lines, diff, escape, plural, short_diff
from ringfence.toolkit.tools import _messages, preconditions
from ringfence.toolkit.tools._byte_edits import CRLF, check_encoding, newline, with_newline
from ringfence.toolkit.tools._nearest_text import nearest

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

Spans = tuple[tuple[int, int], ...]
_LINES_NAMED = 10


@dataclass(frozen=True, slots=True)
class _Edit:
    """One replacement as the call has it; `at` names its arguments in errors."""

    old: bytes
    new: bytes
    at: str = ""


@dataclass(frozen=True, slots=True)
class _Match:
    """One place of a file with what it has and what it gets; line ends are the file's own."""

    start: int
    old: bytes
    new: bytes
    at: str

    @property
    def end(self) -> int:
        return self.start + len(self.old)


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan the replacements as one change. Raises CallError `no_match` or `not_unique`.

    Each text is looked for in the file as it is, so no edit finds what another one writes.
    """
    edits = _edits(arguments)
    place = view.place("path")
    text = preconditions.editable(place, view)
    before = text.data
    seen = view.excerpt(place, before)
    every = arguments["replace_all"]
    matches = sorted(
        (match for edit in edits for match in _matches(before, edit, place, view, seen.hidden, every=every)),
        key=lambda match: match.start,
    )
    _check_apart(matches, before)
    for match in matches:
        check_encoding(before, match.start, match.old + match.new, preconditions.shown(place))
    after = _replaced(before, matches)
    lines = [before.count(b"\n", 0, match.start) + 1 for match in matches]
    shown = _messages.shown_diff(place, before, after, view)
    content = _messages.message(
        f"✓ Edited file: {escape(place.named)}",
        _messages.labelled("Reason", arguments),
        _summary(matches, lines),
        _messages.encoding(text),
        short_diff(shown),
    )
    change = Write(place.real, text.encoded(after), text.raw, place.stat)
    more = {} if len(matches) == 1 else {"replacements": len(matches)}
    return Plan(
        content=content,
        data={
            "path": place.named,
            "line": lines[0],
            **more,
            **_messages.written(change, after, text.encoding),
            "diff": shown,
        },
        changes=(change,),
        title=f"Edit file {preconditions.led_to(place)} {_at_lines(lines)}",
        draw=lambda: diff(place.named, before, after),
    )


def _edits(arguments: dict[str, Any]) -> list[_Edit]:
    """Return the edits of a call. Raises CallError `invalid_arguments` unless it has one form of them."""
    listed = arguments.get("edits")
    single = [name for name in ("old_str", "new_str") if name in arguments]
    if listed is None:
        missing = next((name for name in ("old_str", "new_str") if name not in single), None)
        if missing is not None:
            message, hint = f"edit_file needs the argument '{missing}'", f"add {missing}, or send edits"
            raise CallError("invalid_arguments", message, where=missing, hint=hint)
        return [_Edit(arguments["old_str"].encode(), arguments["new_str"].encode())]
    if single:
        message = f"A call has edits, or old_str and new_str: this one has edits and {single[0]}"
        raise CallError("invalid_arguments", message, where=single[0], hint=f"put the {single[0]} into edits")
    if not listed:
        raise CallError("invalid_arguments", "The edits are empty", where="edits", hint="send at least one")
    return [
        _Edit(each["old_str"].encode(), each["new_str"].encode(), f"edits.{number}.")
        for number, each in enumerate(listed)
    ]


def _matches(  # noqa: PLR0913  one edit and where it is looked for
    data: bytes, edit: _Edit, place: Place, view: View, hidden: Spans, *, every: bool
) -> list[_Match]:
    """Return where an edit applies. Line feeds in it also match CRLF in the file.

    What is hidden from the agent does not match: otherwise a secret could be guessed piece by piece.
    """
    old, new = edit.old, edit.new
    where = f"{edit.at}old_str"
    if not old:
        raise CallError("invalid_arguments", f"{where} is empty", where=where)
    start = _find(data, old, 0, hidden)
    if b"\r" not in old and (newline(data) == CRLF or (start < 0 and CRLF in data)):
        old, new = with_newline(old, CRLF), with_newline(new, CRLF)
        start = _find(data, old, 0, hidden)
    if old == new:
        other = f"{edit.at}new_str"
        raise CallError("invalid_arguments", f"{where} and {other} are the same", where=other)
    if start < 0:
        message = f"String not found in '{preconditions.shown(place)}'"
        hint = "read the file and copy the text exactly, with its spaces and line ends"
        if near := nearest(data, old, place, view):
            hint = f"{near}; {hint}"
        raise CallError("no_match", message, where=where, hint=hint)
    if every:
        return [_Match(start, old, new, where) for start in _apart(data, old, start, hidden)]
    count = _occurrences(data, old, start, hidden)
    if count > 1:
        message = (
            f"Found {count} matches for the string in '{preconditions.shown(place)}'. Provide a unique string"
        )
        hint = "take in lines around it until it is unique, or send replace_all: true"
        raise CallError("not_unique", message, where=where, hint=hint, data={"matches": count})
    return [_Match(start, old, new, where)]


def _check_apart(matches: list[_Match], data: bytes) -> None:
    for one, other in itertools.pairwise(matches):
        if other.start < one.end:
            line = data.count(b"\n", 0, other.start) + 1
            message = f"Two edits replace the same text at line {line}"
            raise CallError("invalid_arguments", message, where=other.at, hint="make one edit of the two")


def _replaced(data: bytes, matches: list[_Match]) -> bytes:
    parts, end = [], 0
    for match in matches:
        parts += [data[end : match.start], match.new]
        end = match.end
    return b"".join([*parts, data[end:]])


def _summary(matches: list[_Match], lines: list[int]) -> str:
    if len(matches) == 1:
        return f"Replaced at line {lines[0]}: {_lines(matches[0].old)} by {_lines(matches[0].new)}"
    return f"Replaced {plural(len(matches), 'place')}, {_at_lines(lines)}"


def _at_lines(lines: list[int]) -> str:
    found = list(dict.fromkeys(lines))
    if len(found) == 1:
        return f"at line {found[0]}"
    shown = ", ".join(map(str, found[:_LINES_NAMED]))
    return f"at lines {shown}" + (f" and {len(found) - _LINES_NAMED} more" if found[_LINES_NAMED:] else "")


def _apart(data: bytes, old: bytes, start: int, hidden: Spans) -> list[int]:
    """Return the places of a text from `start` on, from left to right, none overlapping the one before."""
    found = []
    while start >= 0:
        found.append(start)
        start = _find(data, old, start + len(old), hidden)
    return found


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
