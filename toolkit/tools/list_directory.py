"""list_directory: list the names in one directory that the agent may know."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ringfence.toolkit import paths
from ringfence.toolkit.plan.changes import DIRECTORY, LINK, Entry, Plan, Stat
from ringfence.toolkit.text import escaped, plural, rfc3339, size
from ringfence.toolkit.tools import _messages, preconditions
from ringfence.toolkit.tools._narrowing import Tally

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

MAX_SHOWN = 1000

# The largest and the newest first; unknown values come last.
_ORDERS: dict[str, Callable[[Entry], Any]] = {
    "size": lambda entry: (-1 if entry.stat.size is None else entry.stat.size) * -1,
    "modified": lambda entry: -(entry.stat.modified or 0.0),
}


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan no change; answer with the entries that the agent may know. Raises CallError `not_a_directory`."""
    place = view.place("path")
    preconditions.directory(place)
    names_only, order = arguments["names_only"], arguments["sort_by"]
    found = view.list(place, kinds_only=names_only and order == "name")
    at = len(paths.child(place.real, ""))
    kept = found if arguments["show_hidden"] else [entry for entry in found if entry.path[at] != "."]
    if order != "name":  # entries are listed in the order of names
        kept.sort(key=_ORDERS[order])
    directories = [entry.stat.kind for entry in kept].count(DIRECTORY)
    total = (
        f"Total: {plural(directories, 'directory', 'directories')}, {plural(len(kept) - directories, 'file')}"
    )
    shown = [(entry.path[at:], entry) for entry in kept[:MAX_SHOWN]]
    written = zip(escaped([name for name, _ in shown]), kept, strict=False)
    if names_only:
        rows = [
            f"[DIR]  {name}/" if entry.stat.kind == DIRECTORY else f"[FILE] {name}" for name, entry in written
        ]
    else:
        rows = [_row(name, entry, view) for name, entry in written]
    if len(kept) > MAX_SHOWN:
        tally = Tally(place.real)
        for entry in kept:
            tally.add(entry.path, directory=entry.stat.kind == DIRECTORY)
        advice = tally.advice(otherwise="search it for names with a pattern")
        rows.append(f"[{len(kept) - MAX_SHOWN:,} more are not shown; {advice}]")
    if len(found) > len(kept):
        total += f" ({plural(len(found) - len(kept), 'hidden name')} not shown; show_hidden: true shows them)"
    return Plan(
        content=_messages.message("\n".join(rows), total),
        data={
            "path": place.named,
            **_listed(shown, names_only),
            "directories": directories,
            "files": len(kept) - directories,
            "hidden": len(found) - len(kept),
            "truncated": len(kept) > MAX_SHOWN,
        },
    )


def _row(name: str, entry: Entry, view: View) -> str:
    if entry.stat.kind == DIRECTORY:
        return f"[DIR]  {name}/"
    target = _messages.link_target(entry, view) if entry.stat.kind == LINK else None
    arrow = f" -> {target}" if target else ""
    return f"[FILE] {name}{arrow}  {size(entry.stat.size)}"


def _listed(shown: list[tuple[str, Entry]], names_only: bool) -> dict[str, Any]:
    if not names_only:
        return {"entries": [_fields(name, entry.stat) for name, entry in shown]}
    return {"names": [f"{name}/" if entry.stat.kind == DIRECTORY else name for name, entry in shown]}


def _fields(name: str, stat: Stat) -> dict[str, Any]:
    return {"name": name, "type": stat.kind, "size": stat.size, "modified": rfc3339(stat.modified)}
