"""delete_file: remove one file or link, never a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, LINK, Delete, Place, Plan, Stat
from ringfence.toolkit.text import escape, size
from ringfence.toolkit.tools import _messages, preconditions

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan the deletion of one file or link. Raises CallError `not_found` or `is_directory`."""
    place = view.place("path")
    stat = preconditions.present(place, f"File '{preconditions.shown(place)}' does not exist")
    if stat.kind == DIRECTORY:
        message = f"'{preconditions.shown(place)}' is a directory. Use a directory deletion tool instead."
        raise CallError("is_directory", message, where="path", hint="use the delete tool for a directory")
    return one_file(arguments, view, place, stat)


def one_file(arguments: dict[str, Any], view: View, place: Place, stat: Stat) -> Plan:
    """Return the plan for one file or link; its content is reported only to an agent that may read it."""
    gone = _messages.removed(place.real, place, stat, view)
    # A key of the tool opens deleting, not reading.
    readable = all(view.may_read(path) and view.reads(path) for path in {place.named, place.real})
    freed, lines = (stat.size, gone.lines) if readable else (None, None)
    content = _messages.message(
        f"✓ Deleted: {escape(place.named)}",
        _messages.labelled("Reason", arguments),
        f"Size freed: {size(freed)}",
    )
    kind = "link" if stat.kind == LINK else "file"
    return Plan(
        content=content,
        data={
            "path": place.named,
            "size": freed,
            "lines": lines,
            "digest": gone.digest if readable else None,
            "diff": (gone.shown or "") if readable else "",
            "removals": lines or 0,
            "files_deleted": 1,
            "files": [{"path": place.named, "size": freed, "lines": lines}],
        },
        changes=(Delete(place.real, stat, digests=_messages.digests([gone])),),
        title=f"Delete {kind} {preconditions.led_to(place)} ({size(stat.size)})",
        draw=lambda: gone.diff or "",
    )
