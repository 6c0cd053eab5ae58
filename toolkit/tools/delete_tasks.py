"""delete_tasks: move task folders to the trash or delete them for good, now or at a given time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, LINK, Change, Delete, Entry, Move, Plan, Write
from ringfence.toolkit.plan.content import sha256
from ringfence.toolkit.text import plural, rfc3339

if TYPE_CHECKING:
    from ringfence.toolkit.tasks.messages import Item
    from ringfence.toolkit.tasks.metadata import Task
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan the deletion of tasks: to the trash, for good, or scheduled; with `atomic` all or none."""
    from ringfence.toolkit.tasks import messages, store_reader
    from ringfence.toolkit.tasks.batch_plan import LOCKED, answer

    store_reader.store(view)
    ids, again = view.task_ids
    permanent, due = arguments["permanent"], _due(arguments)
    chosen: list[tuple[Task, Entry, tuple[Entry, ...]]] = []
    left: list[Item] = []
    known = store_reader.by_id(view)
    for task in ids:
        found = _found(view, task, known.get(task, ()))
        if isinstance(found, tuple):
            chosen.append(found)
        else:
            left.append(found)
    changes = _changes(view, chosen, permanent, due)
    locked = {task for task, change in changes if not view.changeable(change)}
    left += [messages.Item(task, code="permission_denied", why=LOCKED) for task in ids if task in locked]
    changes = [(task, change) for task, change in changes if task not in locked]
    tasks = [task for task, _, _ in chosen if task.id not in locked]
    if arguments["atomic"] and left:
        raise CallError(
            left[0].code or "not_found",
            f"Nothing was deleted, because atomic was asked for: {left[0].id}: {left[0].why}",
            where="task_ids",
            data=messages.fields([*(_spared(task) for task in tasks), *left], again),
        )
    shown = {task.id: view.shows(task.id) for task in tasks}
    items = [messages.Item(t.id, t.title if shown[t.id] else None, readable=shown[t.id]) for t in tasks]
    return answer(
        "schedule" if due else "delete",
        ids,
        [*items, *left],
        again,
        changes,
        atomic=arguments["atomic"],
        note=_note(due) if items else "",
        title=f"Delete {plural(len(tasks), 'task')}{' permanently' if permanent else ''}",
        draw=lambda: messages.confirmation(tasks, permanent, due, left),
    )


def _spared(task: Task) -> Item:
    from ringfence.toolkit.tasks.messages import Item

    return Item(task.id, code="partial_failure", why="Left alone, because another cannot be deleted")


def _due(arguments: dict[str, Any]) -> str | None:
    from ringfence.toolkit.tools.list_tasks import time_of

    if "delete_after" not in arguments:
        return None
    due = rfc3339(time_of(arguments["delete_after"], "delete_after"))
    if due is None:  # no assert, which can be switched off: None would mean to delete now
        raise AssertionError("a time that cannot be told is refused")
    return due


def _note(due: str | None) -> str:
    if due:
        return f"They are deleted by `ringfence tasks purge` after {due}; restore_tasks takes that back."
    return ""


def _found(view: View, task: str, named: tuple[Entry, ...]) -> tuple[Task, Entry, tuple[Entry, ...]] | Item:
    """Return the task with its folder and all entries, or the reason why it is not deleted."""
    from ringfence.toolkit.tasks import messages, store_reader

    if task == view.workspace.own_task:
        return messages.Item(task, code="protected_path", why="This is the agent's own running task")
    if not named:
        return messages.Item(task, code="not_found", why="Task not found - its directory does not exist")
    if len(named) > 1:
        return messages.Item(task, code="not_unique", why=store_reader.TWINS)
    (entry,) = named
    if entry.stat.kind != DIRECTORY:
        what = "a link, which is not followed" if entry.stat.kind == LINK else "not a directory"
        return messages.Item(task, code="not_a_directory", why=f"The task's entry is {what}")
    try:
        known, entries = store_reader.task(view, entry)
        return known, entry, entries
    except CallError as error:
        return messages.Item(task, code=error.code, why=error.message)


def _changes(
    view: View, chosen: list[tuple[Task, Entry, tuple[Entry, ...]]], permanent: bool, due: str | None
) -> list[tuple[str, Change]]:
    from ringfence.toolkit.task_ids import IN_TRASH
    from ringfence.toolkit.tasks import store_reader

    if permanent and not due:
        return [(task.id, Delete(entry.path, entry.stat, entries)) for task, entry, entries in chosen]
    if not chosen:
        return []
    changes: list[tuple[str, Change]] = []
    if due:
        return [
            *changes,
            *((task.id, _note_of(view, task, e, below, permanent, due)) for task, e, below in chosen),
        ]
    latest = store_reader.latest(view)
    for task, entry, entries in chosen:
        number = latest[task.id].number + 1 if task.id in latest else 1
        name = entry.name if number == 1 else f"{entry.name}.{number}"
        changes.append((task.id, Move(entry.path, f"{IN_TRASH}/{name}", entry.stat, entries=entries)))
    return changes


def _note_of(  # noqa: PLR0913  one task's parts
    view: View, task: Task, entry: Entry, entries: tuple[Entry, ...], permanent: bool, due: str
) -> Write:
    """Return the note about a scheduled deletion: what and when, and the digest of the approved content."""
    from ringfence.toolkit.task_ids import IN_TRASH
    from ringfence.toolkit.tasks.store_reader import DUE

    path = f"{IN_TRASH}/{task.id}{DUE}"
    body = {"due": due, "permanent": permanent, "holds": holds(entry, entries)}
    stat = view.stat_at(path)
    before = None if stat is None else b"".join(view.chunks(path))
    return Write(path, json.dumps(body).encode() + b"\n", before, stat)


def holds(entry: Entry, entries: tuple[Entry, ...]) -> str:
    """Return a digest of a task folder as it was listed: its names, kinds, sizes and times."""
    rows = [[one.path[len(entry.path) :], one.stat.kind, one.stat.size, one.stat.identity] for one in entries]
    return sha256(json.dumps(rows).encode("utf-8", "surrogateescape"))
