"""What a plan's changes amount to: the paths they need something on, their size, their description.

Pure: from values to values.
"""

from __future__ import annotations

from typing import Any

from policy import Amount
from toolkit.plan import (
    DIRECTORY,
    FILE,
    Change,
    Delete,
    Entry,
    MakeDirectory,
    MakeLink,
    Move,
    Plan,
    Write,
    length,
)

_NAMES = {
    Write: "write",
    Delete: "delete",
    Move: "move",
    MakeDirectory: "make_directory",
    MakeLink: "make_link",
}


def touched(change: Change) -> list[tuple[str, str, bool]]:
    """Every path a change needs something on, as (path, action, is it a directory)."""
    match change:
        case Write() | MakeLink():
            return [(change.path, "write", False)]
        case MakeDirectory():
            return [(change.path, "write", True)]
        case Delete():
            return [(entry.path, "delete", entry.stat.kind == DIRECTORY) for entry in _entries(change)]
        case Move():
            found = []
            for entry in _entries(change):
                directory = entry.stat.kind == DIRECTORY
                target = change.destination + entry.path[len(change.source) :]
                found += [(entry.path, "read", directory), (entry.path, "delete", directory)]
                found.append((target, "write", directory))
            return found


def usage_of(changes: tuple[Change, ...]) -> dict[str, Amount]:
    """How many files and bytes each action of a plan changes, for the limits."""
    found: dict[str, Amount] = {}

    def count(action: str, files: int, size: int) -> None:
        found[action] = found.get(action, Amount()) + Amount(files, size)

    for change in changes:
        match change:
            case Write():
                count("write", 1, length(change.data))
            case MakeLink():
                count("write", 1, 0)
            case Delete() | Move():
                files = [entry.stat for entry in _entries(change) if entry.stat.kind != DIRECTORY]
                size = sum(stat.size or 0 for stat in files if stat.kind == FILE)
                count("delete", len(files), size)
                if isinstance(change, Move):
                    count("write", len(files), size)
            case MakeDirectory():
                pass
    return found


def describe(plan: Plan) -> list[dict[str, Any]]:
    """The changes of a plan as fields, for a dry run and for the person who is asked."""
    rows: list[dict[str, Any]] = []
    for change in plan.changes:
        row: dict[str, Any] = {"change": _NAMES[type(change)]}
        if isinstance(change, Move):
            row |= {"path": change.source, "destination": change.destination, "entries": len(change.entries)}
        else:
            row |= {"path": change.path}
        if isinstance(change, Write):
            row |= {"bytes": length(change.data), "replaces": change.stat is not None}
        if isinstance(change, Delete):
            row |= {"kind": change.stat.kind, "entries": [entry.path for entry in change.entries]}
        rows.append(row)
    return rows


def _entries(change: Delete | Move) -> tuple[Entry, ...]:
    top = change.source if isinstance(change, Move) else change.path
    return (Entry(top, change.stat), *change.entries)
