"""get_file_info: facts about a file or directory, without its content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit.paths import ROOT, names_directory
from ringfence.toolkit.plan.changes import DIRECTORY, LINK, Place, Plan, Stat
from ringfence.toolkit.text import escape, rfc3339, size, when
from ringfence.toolkit.tools import preconditions

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan no change; answer with type, size in bytes, times, mode and rights."""
    place = view.place("path")
    nowhere = _nowhere(place, view)
    stat = nowhere or preconditions.present(place)
    readable, writable = view.rights(place) if nowhere is None else (False, False)
    slash = "/" if stat.kind == DIRECTORY and place.named != ROOT else ""
    target = place.real if place.link else None
    rows = [
        f"File: {escape(place.named)}{slash}",
        "",
        f"Type: {stat.kind}",
        f"Size: {size(stat.size)}",
        f"Modified: {when(stat.modified)}",
        f"Accessed: {when(stat.accessed)}",
        f"Readable: {'Yes' if readable else 'No'}",
        f"Writable: {'Yes' if writable else 'No'}",
    ]
    if target is not None:
        rows.append(f"Link target: {escape(target)}{' (nothing is there)' if nowhere is not None else ''}")
    data = {
        "path": place.named,
        "type": stat.kind,
        "size": stat.size,
        "modified": rfc3339(stat.modified),
        "accessed": rfc3339(stat.accessed),
        "readable": readable,
        "writable": writable,
        "mode": None if stat.mode is None else f"{stat.mode & 0o7777:04o}",
        "hard_links": stat.links,
        "link_target": target,
    }
    return Plan(content="\n".join(rows), data=data)


def _nowhere(place: Place, view: View) -> Stat | None:
    """Return the link's own facts if its target does not exist; the name is in use all the same."""
    if place.stat is not None or not place.link or names_directory(place.argument):
        return None
    found = view.stat_at(place.named)
    return found if found is not None and found.kind == LINK else None
