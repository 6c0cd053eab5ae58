"""Reader of the task store through a view: its folders, their metadata, and the trash.

Reads only, and follows no link. The tools check what the agent may see.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ringfence.toolkit.durations import moment
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Entry, Stat
from ringfence.toolkit.task_ids import IN_TRASH, TASKS, is_id
from ringfence.toolkit.tasks import metadata
from ringfence.toolkit.tasks.metadata import CORRUPT, Task
from ringfence.toolkit.text import size as size_of

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

DUE = ".due"
TWINS = "Folders of this id differ by upper and lower case alone; a person has to rename all but one"
LONGEST_NOTE = 64 << 10  # bytes of a note about a scheduled deletion
MOST_SAID = 64 << 20  # bytes of a message file; a larger one is not read
_NUMBER = re.compile(r"[2-9]|[1-9][0-9]{1,8}")  # the first deletion of an id has no number


@dataclass(frozen=True, slots=True)
class Deleted:
    """One deletion in the trash: `number` counts those of the same id, from 1."""

    id: str
    number: int
    stat: Stat

    @property
    def path(self) -> str:
        """The path of the deleted task in the store's trash."""
        return f"{IN_TRASH}/{self.name}"

    @property
    def name(self) -> str:
        """The folder's name in the trash: the id, with a number from the second deletion on."""
        return self.id if self.number == 1 else f"{self.id}.{self.number}"


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A scheduled deletion with its note file; `why` is what is wrong with that file.

    `due` is in POSIX seconds, `holds` the digest of the folder at the time of scheduling.
    """

    id: str
    entry: Entry
    due: float = 0.0
    permanent: bool = False
    holds: str = ""
    why: str | None = None


def store(view: View) -> None:
    """Refuse a call if there is no task store (`not_found`) or it cannot be used now."""
    if not view.workspace.has_tasks:
        raise CallError(
            "not_found",
            "Cannot resolve storage directory: no task folders are given",
            where="tasks",
            hint="start with --tasks DIR, or write `tasks: {path: DIR}` in the policy",
        )
    view.workspace.open_tasks()


def folders(view: View) -> list[Entry]:
    """Return the store's entries whose names are task ids, sorted by name; also those that are no folders."""
    return [entry for entry in view.entries_at(TASKS) if is_id(entry.name)]


def by_id(view: View) -> dict[str, tuple[Entry, ...]]:
    """Return the store's entries by id in lower case; several if names differ only in case."""
    found: dict[str, tuple[Entry, ...]] = {}
    for entry in folders(view):
        found[entry.name.lower()] = (*found.get(entry.name.lower(), ()), entry)
    return found


def trash(view: View) -> list[Deleted]:
    """Return every deletion in the trash, by id in any case, oldest first."""
    found = []
    for entry in view.entries_at(IN_TRASH):
        name, dot, number = entry.name.partition(".")
        if entry.stat.kind == DIRECTORY and is_id(name) and (not dot or _NUMBER.fullmatch(number)):
            found.append(Deleted(name, int(number or 1), entry.stat))
    return sorted(found, key=lambda one: (one.id.lower(), one.number, one.id))


def latest(view: View) -> dict[str, Deleted]:
    """Return the latest deletion of each id, by the id in lower case."""
    return {one.id.lower(): one for one in trash(view)}


def task(view: View, entry: Entry) -> tuple[Task, tuple[Entry, ...]]:
    """Return a task folder's metadata and all its entries. Raises CallError if it cannot be opened."""
    with view.opened(entry.path) as (entries, chunks):
        found = _task(entry, entries, chunks)
    return replace(found, title=view.words(entry.path, found.title)), entries


def _task(entry: Entry, entries: tuple[Entry, ...], chunks: Callable[[str], Iterator[bytes]]) -> Task:
    name = entry.name.partition(".")[0].lower()
    cut = len(entry.path) + 1
    files = {short: one for one in entries if "/" not in (short := one.path[cut:])}
    size = sum(one.stat.size or 0 for one in entries if one.stat.kind == FILE)
    messages, mode, trouble = _read(files, chunks)
    latest = max((one.stat.modified or 0.0 for one in entries if one.stat.kind == FILE), default=0.0)
    status = CORRUPT if trouble else metadata.COMPLETED if messages.done else metadata.ACTIVE
    return Task(
        id=name,
        title=messages.title,
        created=messages.first,
        active=messages.last or latest or None,
        status=status,
        mode=messages.mode or mode,
        messages=None if messages.trouble and not messages.count else messages.count,
        size=size,
        files=sum(one.stat.kind != DIRECTORY for one in entries),
        trouble=trouble,
    )


def _read(
    files: dict[str, Entry], chunks: Callable[[str], Iterator[bytes]]
) -> tuple[metadata.Messages, str | None, str | None]:
    name = next((name for name in metadata.MESSAGES if name in files), metadata.MESSAGES[0])
    if name in files and files[name].stat.kind == FILE:
        messages = _messages(name, files[name].stat, chunks)
    else:
        messages = metadata.Messages(trouble=f"{name} is missing")
    trouble, mode, history = messages.trouble, None, files.get(metadata.HISTORY)
    if history is None or history.stat.kind != FILE:
        trouble = trouble or f"{metadata.HISTORY} is missing"
    elif messages.mode is None and (history.stat.size or 0) <= MOST_SAID:
        try:
            mode = metadata.mode_of(_at_most(chunks(metadata.HISTORY)))
        except CallError as error:
            trouble = trouble or f"{metadata.HISTORY} cannot be read ({error.code})"
    return messages, mode, trouble


def _messages(name: str, stat: Stat, chunks: Callable[[str], Iterator[bytes]]) -> metadata.Messages:
    if (stat.size or 0) > MOST_SAID:
        return metadata.Messages(trouble=f"{name} is larger than {size_of(MOST_SAID)}, and is not read")
    return metadata.messages(name, _at_most(chunks(name)))


def _at_most(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the pieces up to the bound for one file."""
    left = MOST_SAID
    for piece in pieces:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def scheduled(view: View) -> list[Scheduled]:
    """Return the scheduled deletions, one for each note file; also unreadable ones."""
    found = []
    for entry in view.entries_at(IN_TRASH):
        name = entry.name.removesuffix(DUE)
        if entry.name.endswith(DUE) and is_id(name) and entry.stat.kind == FILE:
            found.append(_scheduled(view, name.lower(), entry))
    return found


def _scheduled(view: View, task: str, entry: Entry) -> Scheduled:
    try:
        note = json.loads(_bounded(view.chunks(entry.path)))
        due = moment(note["due"])
        if due is None or type(note["permanent"]) is not bool or type(note["holds"]) is not str:
            raise ValueError
    except CallError as error:
        return Scheduled(task, entry, why=f"what was scheduled cannot be read ({error.code})")
    except (ValueError, TypeError, KeyError, RecursionError):
        return Scheduled(task, entry, why="what was scheduled is not a note of Ringfence")
    return Scheduled(task, entry, due, note["permanent"], note["holds"])


def _bounded(pieces: Iterable[bytes]) -> bytes:
    """Return the content of a small file. Raises ValueError for a large one."""
    data = b""
    for piece in pieces:
        data += piece
        if len(data) > LONGEST_NOTE:
            raise ValueError
    return data
