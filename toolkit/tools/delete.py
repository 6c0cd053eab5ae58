"""delete: remove a file, a link, or a directory with everything in it that was listed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.plan import DIRECTORY, Delete, Entry, Place, Plan, Stat
from toolkit.text import escape, plural, size
from toolkit.tools import answers, targets
from toolkit.tools.answers import Removed
from toolkit.tools.delete_file import one_file

if TYPE_CHECKING:
    from toolkit.workspace import View

MAX_DIFF = 1 << 20


def plan(arguments: dict[str, Any], view: View) -> Plan:
    place = view.place("path")
    stat = targets.present(place, f"File or directory does not exist: {targets.shown(place)}")
    if stat.kind != DIRECTORY:
        return one_file(arguments, view, place, stat)
    return _tree(arguments, view, place, stat)


def _tree(arguments: dict[str, Any], view: View, place: Place, stat: Stat) -> Plan:
    entries = view.tree(place)
    targets.all_regular(entries, view)
    listed, gone, unread = _files(entries, view)
    lines = sum(file.lines or 0 for file in gone)
    freed = sum(entry.stat.size or 0 for entry in listed)
    text, left_out = _diff(gone)
    summary = f"{plural(len(listed), 'file')}, {plural(lines, 'total line')}"
    path = escape(place.named)
    if listed:
        first = f"✓ Deleted directory: {path} ({summary})"
        content = answers.message(first, answers.said("Reason", arguments), f"Size freed: {size(freed)}")
    else:
        content = answers.message(f"Deleted empty directory: {path}", answers.said("Reason", arguments))
    return Plan(
        content=content,
        data={
            "path": place.named,
            "size": freed,
            "lines": lines,
            "diff": text,
            "diff_left_out": left_out,
            "removals": lines,
            "files_deleted": len(listed),
            "files": [file.to_json() for file in gone],
        },
        changes=(Delete(place.real, stat, entries),),
        title=f"Delete directory {targets.led_to(place)} ({summary})",
        preview=_list(entries, gone, unread),
    )


def _files(entries: tuple[Entry, ...], view: View) -> tuple[list[Entry], list[Removed], int]:
    """All files and links of the tree, what those the agent may read held, and how many it may not read."""
    listed = [entry for entry in entries if entry.stat.kind != DIRECTORY]
    readable = [entry for entry in listed if view.may_read(entry.path)]
    gone = [answers.removed(entry.path, entry, entry.stat, view) for entry in readable]
    return listed, gone, len(listed) - len(readable)


def _diff(gone: list[Removed]) -> tuple[str, int]:
    """The removal diffs of whole files up to a bound, and how many files had no room."""
    shown: list[str] = []
    room = MAX_DIFF
    for file in gone:
        room -= len(file.diff)
        if room < 0:
            break
        shown.append(file.diff)
    return "".join(shown), len(gone) - len(shown)


def _list(entries: tuple[Entry, ...], gone: list[Removed], unread: int) -> str:
    lines = {file.path: file.lines for file in gone}
    rows = []
    for entry in entries:
        if entry.stat.kind == DIRECTORY:
            rows.append(f"{escape(entry.path)}/")
            continue
        count = lines.get(entry.path)
        held = "" if count is None else f", {plural(count, 'line')}"
        rows.append(f"{escape(entry.path)}  ({size(entry.stat.size)}{held})")
    if unread:
        rows.append(f"({plural(unread, 'file')} of these the agent may not read: lines not counted)")
    return "\n".join(rows)
