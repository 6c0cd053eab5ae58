"""Looks at the task store through a view: which folders there are, what they say, what is in the trash.

Reads only, and follows no link. Who may see what is the tools' to ask.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.errors import CallError
from toolkit.plan import DIRECTORY, FILE, Entry, Stat
from toolkit.tasks import metadata
from toolkit.tasks.ids import IN_TRASH, TASKS, is_id
from toolkit.tasks.metadata import CORRUPT, Task

if TYPE_CHECKING:
    from toolkit.workspace import View

DUE = ".due"


@dataclass(frozen=True, slots=True)
class Deleted:
    """One deletion in the trash: `number` counts those of the same id, from 1."""

    id: str
    number: int
    stat: Stat

    @property
    def path(self) -> str:
        return f"{IN_TRASH}/{self.name}"

    @property
    def name(self) -> str:
        return self.id if self.number == 1 else f"{self.id}.{self.number}"


def store(view: View) -> None:
    """Refuse a call where no task store is given (`not_found`), or it cannot be used now."""
    if not view.workspace.has_tasks:
        raise CallError(
            "not_found",
            "Cannot resolve storage directory: no task folders are given",
            where="tasks",
            hint="start with --tasks DIR, or write `tasks: {path: DIR}` in the policy",
        )
    view.workspace.open_tasks()


def folders(view: View) -> list[Entry]:
    """The entries of the store whose names are task ids, by name; also those that are no folders."""
    return [entry for entry in view.entries_at(TASKS) if is_id(entry.name)]


def by_id(view: View) -> dict[str, Entry]:
    """The entries of the store by id in lower case; of two that differ by case the lower one counts."""
    return {entry.name.lower(): entry for entry in sorted(folders(view), key=lambda one: one.name)}


def trash(view: View) -> list[Deleted]:
    """Every deletion in the trash, by id and the oldest first."""
    found = []
    for entry in view.entries_at(IN_TRASH):
        name, _, number = entry.name.partition(".")
        if entry.stat.kind == DIRECTORY and is_id(name) and (not number or number.isdigit()):
            found.append(Deleted(name, int(number or 1), entry.stat))
    return sorted(found, key=lambda one: (one.id, one.number))


def task(view: View, entry: Entry) -> tuple[Task, tuple[Entry, ...]]:
    """What a task folder says of itself, and all that is in it. Raises CallError if it cannot be opened."""
    with view.opened(entry.path) as (entries, chunks):
        return _told(entry, entries, chunks), entries


def _told(entry: Entry, entries: tuple[Entry, ...], chunks: Callable[[str], Iterator[bytes]]) -> Task:
    name = entry.name.partition(".")[0].lower()
    cut = len(entry.path) + 1
    files = {short: one for one in entries if "/" not in (short := one.path[cut:])}
    size = sum(one.stat.size or 0 for one in entries if one.stat.kind == FILE)
    said, mode, trouble = _read(files, chunks)
    latest = max((one.stat.modified or 0.0 for one in entries if one.stat.kind == FILE), default=0.0)
    status = CORRUPT if trouble else metadata.COMPLETED if said.done else metadata.ACTIVE
    return Task(
        id=name,
        title=said.title,
        created=said.first,
        active=said.last or latest or None,
        status=status,
        mode=said.mode or mode,
        messages=None if said.trouble and not said.count else said.count,
        size=size,
        files=sum(one.stat.kind != DIRECTORY for one in entries),
        trouble=trouble,
    )


def _read(
    files: dict[str, Entry], chunks: Callable[[str], Iterator[bytes]]
) -> tuple[metadata.Messages, str | None, str | None]:
    name = next((name for name in metadata.MESSAGES if name in files), metadata.MESSAGES[0])
    if name in files and files[name].stat.kind == FILE:
        said = metadata.messages(name, chunks(name))
    else:
        said = metadata.Messages(trouble=f"{name} is missing")
    trouble, mode, history = said.trouble, None, files.get(metadata.HISTORY)
    if history is None or history.stat.kind != FILE:
        trouble = trouble or f"{metadata.HISTORY} is missing"
    elif said.mode is None:
        try:
            mode = metadata.mode_of(chunks(metadata.HISTORY))
        except CallError as error:
            trouble = trouble or f"{metadata.HISTORY} cannot be read ({error.code})"
    return said, mode, trouble


def due(view: View) -> Iterator[tuple[str, dict[str, Any], Entry]]:
    """The scheduled deletions: id, what was scheduled, and the file that says so."""
    for entry in view.entries_at(IN_TRASH):
        name = entry.name.removesuffix(DUE)
        if entry.name.endswith(DUE) and is_id(name) and entry.stat.kind == FILE:
            try:
                note = json.loads(b"".join(view.chunks(entry.path)))
            except (ValueError, CallError):
                continue
            if isinstance(note, dict):
                yield name, note, entry
