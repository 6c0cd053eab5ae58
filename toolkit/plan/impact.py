"""Impact of a plan's changes: the paths that they touch, their size, their description.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ringfence.policy import Amount
from ringfence.toolkit.plan.changes import (
    DIRECTORY,
    FILE,
    LINK,
    Change,
    Delete,
    Entry,
    MakeDirectory,
    MakeLink,
    Move,
    Plan,
    SetMode,
    Write,
    octal,
)
from ringfence.toolkit.plan.content import length

_ACTIONS = {
    "write": ("write",),
    "link": ("write",),
    "mode": ("write",),
    "directory": (),
    "delete": ("delete",),
    "move": ("delete", "write"),
}
_NAMES = {
    Write: "write",
    Delete: "delete",
    Move: "move",
    MakeDirectory: "make_directory",
    MakeLink: "make_link",
    SetMode: "set_mode",
}


def touched(change: Change, *, edits: bool = False) -> list[tuple[str, str, bool, str]]:
    """Return every path that a change touches, as (path, action, whether it is a directory, kind of writing).

    `edits`: the tool writes a part of a file, and never all of it.
    """
    match change:
        case Write():
            return [(change.path, "write", False, _kind(change, edits=edits))]
        case MakeLink():
            return [(change.path, "write", False, "create")]
        case SetMode():
            return [(change.path, "write", False, "edit")]
        case MakeDirectory():
            return [(change.path, "write", True, "create")]
        case Delete():
            return [(entry.path, "delete", entry.stat.kind == DIRECTORY, "") for entry in _entries(change)]
        case Move():
            found = []
            for entry in _entries(change):
                directory = entry.stat.kind == DIRECTORY
                target = change.destination + entry.path[len(change.source) :]
                found += [(entry.path, "read", directory, ""), (entry.path, "delete", directory, "")]
                found.append((target, "write", directory, "create"))
            if change.over is not None:
                found[2] = (*found[2][:3], "replace")
            return found


def _kind(change: Write, *, edits: bool) -> str:
    if change.stat is None:
        return "create"
    return "edit" if edits or change.sets_mode_alone else "replace"


def new_paths(change: Change) -> list[str]:
    """Return every path at which a change creates an entry."""
    match change:
        case Write():
            return [change.path] if change.stat is None else []
        case MakeDirectory() | MakeLink():
            return [change.path]
        case Move():
            cut, top = len(change.source), [change.destination] if change.over is None else []
            return top + [change.destination + entry.path[cut:] for entry in change.entries]
        case Delete() | SetMode():
            return []


def losses(changes: tuple[Change, ...]) -> Callable[[str, str, str], str]:
    """Return a function from a path, its action and its kind of writing to what is lost there.

    That is "deleted", "replaced" (all of a file's content), or "" where nothing is: what moves is not lost.
    """
    moved = {entry.path for change in changes if isinstance(change, Move) for entry in _entries(change)}
    deletes = any(isinstance(change, Delete) for change in changes)

    def lost(path: str, action: str, kind: str) -> str:
        if action == "delete":
            return "deleted" if deletes and path not in moved else ""
        return "replaced" if kind == "replace" else ""

    return lost


class Step(NamedTuple):
    """One item of a plan: its kind and its entry's type as in the history, the bytes that are written, moved
    or deleted, and those of a file that a move replaces.
    """

    kind: str
    type: str
    size: int = 0
    over: int = 0


@dataclass(frozen=True, slots=True)
class Made:
    """Number of changed files, bytes written and bytes freed. A move neither writes nor frees bytes."""

    files: int = 0
    written: int = 0
    freed: int = 0


def steps(changes: tuple[Change, ...]) -> Iterator[Step]:
    """Yield the items of a plan, in the order in which the history numbers them."""
    for change in changes:
        match change:
            case Write():
                yield Step("write", FILE, length(change.data))
            case MakeLink():
                yield Step("link", LINK)
            case SetMode():
                yield Step("mode", FILE)
            case MakeDirectory():
                yield Step("directory", DIRECTORY)
            case Delete():
                yield from (Step("delete", e.stat.kind, e.stat.size or 0) for e in _entries(change))
            case Move():
                over = (change.over.size or 0) if change.over is not None else 0
                yield Step("move", change.stat.kind, change.stat.size or 0, over)
                yield from (Step("move", e.stat.kind, e.stat.size or 0) for e in change.entries)


def usage(found: Iterable[Step]) -> dict[str, Amount]:
    """Return how many files and bytes each action changes, for the limits: a move deletes and writes."""
    files: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for kind, type_, size, _ in found:
        if type_ != DIRECTORY:
            files[kind] = files.get(kind, 0) + 1
            sizes[kind] = sizes.get(kind, 0) + (size if type_ == FILE else 0)
    totals: dict[str, Amount] = {}
    for kind, count in files.items():
        for action in _ACTIONS[kind]:
            totals[action] = totals.get(action, Amount()) + Amount(count, sizes[kind])
    return totals


def without_files(amounts: dict[str, Amount]) -> dict[str, Amount]:
    """Return amounts by action with their bytes only: a task's files do not count as files."""
    return {action: Amount(0, amount.bytes) for action, amount in amounts.items()}


def made(found: Iterable[Step]) -> Made:
    """Return the totals of completed steps, for the record."""
    files = written = freed = 0
    for step in found:
        if step.type == DIRECTORY:
            continue
        files += 1
        size = step.size if step.type == FILE else 0
        written += size if step.kind == "write" else 0
        freed += size if step.kind == "delete" else step.over
    return Made(files, written, freed)


def describe(plan: Plan) -> list[dict[str, Any]]:
    """Return the changes of a plan as fields, for a dry run and for the person who decides."""
    rows: list[dict[str, Any]] = []
    for change in plan.changes:
        row: dict[str, Any] = {"change": _NAMES[type(change)]}
        if isinstance(change, Move):
            row |= {"path": change.source, "destination": change.destination, "entries": len(change.entries)}
        else:
            row |= {"path": change.path}
        if isinstance(change, Write):
            row |= {"bytes": length(change.data), "replaces": change.stat is not None}
        if isinstance(change, SetMode):
            row |= {"mode": octal(change.mode), "before": octal(change.stat.mode or 0)}
        if isinstance(change, Delete):
            row |= {"kind": change.stat.kind, "entries": [entry.path for entry in change.entries]}
        rows.append(row)
    return rows


def _entries(change: Delete | Move) -> tuple[Entry, ...]:
    top = change.source if isinstance(change, Move) else change.path
    return (Entry(top, change.stat), *change.entries)
