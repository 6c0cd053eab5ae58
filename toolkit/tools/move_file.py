"""move_file: rename a file, a link or a directory, or move it into another directory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, LINK, Entry, Move, Place, Plan, Stat
from ringfence.toolkit.text import escape, plural, size
from ringfence.toolkit.tools import _messages, preconditions

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan a move of a file, a link or a directory. Raises CallError `already_exists` or `invalid_move`."""
    source, destination = view.place("source"), view.place("destination")
    stat = preconditions.present(source, parameter="source")
    _check_ends(source, destination)
    if stat.kind == DIRECTORY and destination.stat is not None:
        message = f"'{preconditions.shown(destination)}' already exists"
        raise CallError("already_exists", message, where="destination", hint="choose a different destination")
    parents = preconditions.landing(
        destination,
        view,
        overwrite=arguments["allow_overwrite"],
        create_parents=arguments["create_parents"],
        parameter="destination",
    )
    entries = view.tree(source) if stat.kind == DIRECTORY else ()
    preconditions.all_regular(entries, view)
    files = (
        [entry for entry in entries if entry.stat.kind != DIRECTORY] if stat.kind == DIRECTORY else [source]
    )
    move = Move(source.real, destination.real, stat, destination.stat, entries)
    ends = f"{preconditions.led_to(source)} to {preconditions.led_to(destination)}"
    over = " over the file that is there" if destination.stat else ""
    kind = stat.kind if stat.kind in (DIRECTORY, LINK) else "file"
    return Plan(
        content=_messages.message(
            f"✓ Moved: {escape(source.named)} → {escape(destination.named)}",
            _messages.labelled("Reason", arguments),
        ),
        data={
            "source": source.named,
            "destination": destination.named,
            "path": destination.named,
            "type": stat.kind,
            "size": stat.size if stat.kind != DIRECTORY else _total(entries),
            "files_moved": len(files),
            "replaced": destination.stat is not None,
        },
        changes=(*parents, move),
        title=f"Move {kind} {ends}{over}{_of(stat, files)}",
        draw=lambda: _list(source, destination, entries, destination.stat),
    )


def _check_ends(source: Place, destination: Place) -> None:
    if source.real == destination.real:
        message = "Source and destination are the same"
        raise CallError("invalid_move", message, where="destination")
    if paths.is_below(destination.real, source.real):
        message = f"'{preconditions.shown(source)}' cannot be moved into itself"
        raise CallError("invalid_move", message, where="destination")


def _of(stat: Stat, files: list[Entry] | list[Place]) -> str:
    return f" ({plural(len(files), 'file')})" if stat.kind == DIRECTORY else ""


def _total(entries: tuple[Entry, ...]) -> int:
    return sum(entry.stat.size or 0 for entry in entries if entry.stat.kind != DIRECTORY)


def _list(source: Place, destination: Place, entries: tuple[Entry, ...], over: Stat | None) -> str:
    """Return each moved name, and a replaced file with its size, as text."""
    rows = [f"{escape(source.real)} -> {escape(destination.real)}"]
    if over is not None:
        rows.append(f"replaces {escape(destination.real)}  ({size(over.size)})")
    for entry in entries:
        rest = entry.path[len(source.real) :]
        slash = "/" if entry.stat.kind == DIRECTORY else ""
        rows.append(f"{escape(entry.path)}{slash} -> {escape(destination.real + rest)}{slash}")
    return "\n".join(rows)
