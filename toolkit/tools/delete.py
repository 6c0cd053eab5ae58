"""delete: remove a file, a link, or a directory with everything that was listed in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.plan.changes import DIRECTORY, Delete, Entry, Place, Plan, Stat
from ringfence.toolkit.text import MAX_DIFF, escape, plural, size
from ringfence.toolkit.tools import _messages, preconditions
from ringfence.toolkit.tools._messages import Removed
from ringfence.toolkit.tools.delete_file import one_file

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

MAX_FILES = 1_000


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan the deletion of a file, a link or a whole tree. Raises CallError `not_found`."""
    place = view.place("path")
    stat = preconditions.present(place, f"File or directory does not exist: {preconditions.shown(place)}")
    if stat.kind != DIRECTORY:
        return one_file(arguments, view, place, stat)
    return _tree(arguments, view, place, stat)


def _tree(arguments: dict[str, Any], view: View, place: Place, stat: Stat) -> Plan:
    entries = view.tree(place)
    preconditions.all_regular(entries, view)
    every = [entry for entry in entries if entry.stat.kind != DIRECTORY]
    gone = _removed(every, view)
    # The person sees all of them, the agent those that it may read.
    readable = view.readable(file.path for file in gone)
    known = [file for file in gone if file.path in readable]
    freed, lines = sum(file.size or 0 for file in known), _lines(known)
    text, left_out = _diff(known)
    data = {
        "path": place.named,
        "size": freed,
        "lines": lines,
        "diff": text,
        "diff_left_out": left_out,
        "removals": lines,
        "files_deleted": len(gone),
        "files": [file.to_json() for file in known[:MAX_FILES]],
        "files_left_out": max(0, len(known) - MAX_FILES),
    }
    return Plan(
        content=_content(arguments, place, data),
        data=data,
        changes=(Delete(place.real, stat, entries, _messages.digests(gone)),),
        title=f"Delete directory {preconditions.led_to(place)} ({_count(len(gone), _lines(gone))})",
        draw=lambda: _list(entries, gone),
    )


def _removed(every: list[Entry], view: View) -> list[Removed]:
    """Return the deleted files, with diffs of those that the agent may read while there is room."""
    gone: list[Removed] = []
    room = MAX_DIFF
    with view.reading_ahead(iter(every), MAX_DIFF, exactly=True) as entries:
        for entry in view.in_open_directories(entries):
            view.check()
            drawn = room > 0 and view.may_read(entry.path)
            gone.append(_messages.removed(entry.path, entry, entry.stat, view, drawn=drawn))
            room -= len(gone[-1].diff or "")
    return gone


def _content(arguments: dict[str, Any], place: Place, data: dict[str, Any]) -> str:
    path, reason = escape(place.named), _messages.labelled("Reason", arguments)
    if not data["files_deleted"]:
        return _messages.message(f"Deleted empty directory: {path}", reason)
    count = _count(data["files_deleted"], data["lines"])
    unknown = data["files_deleted"] - len(data["files"]) - data["files_left_out"]
    rest = f", and {plural(unknown, 'file')} that you may not read" if unknown else ""
    return _messages.message(
        f"✓ Deleted directory: {path} ({count})", reason, f"Size freed: {size(data['size'])}{rest}"
    )


def _count(files: int, lines: int) -> str:
    return f"{plural(files, 'file')}, {plural(lines, 'total line')}"


def _lines(files: list[Removed]) -> int:
    return sum(file.lines or 0 for file in files)


def _diff(gone: list[Removed]) -> tuple[str, int]:
    """Return the removal diffs of whole files up to a bound, and how many files had no room."""
    shown: list[str] = []
    room = MAX_DIFF
    for file in gone:
        room -= len(file.shown or "")
        if room < 0 or file.shown is None:
            break
        shown.append(file.shown)
    return "".join(shown), len(gone) - len(shown)


def _list(entries: tuple[Entry, ...], gone: list[Removed]) -> str:
    """Return every deleted name with its size and lines, as text."""
    by_path = {file.path: file for file in gone}
    rows = []
    for entry in entries:
        file = by_path.get(entry.path)
        if file is None:
            rows.append(f"{escape(entry.path)}/")
            continue
        lines = "" if file.lines is None else f", {plural(file.lines, 'line')}"
        rows.append(f"{escape(entry.path)}  ({size(file.size)}{lines})")
    return "\n".join(rows)
