"""restore_tasks: restore task folders from the trash, or cancel their scheduled deletion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Change, Delete, Entry, Move, Plan
from ringfence.toolkit.text import plural

if TYPE_CHECKING:
    from ringfence.toolkit.tasks.messages import Item
    from ringfence.toolkit.tasks.store_reader import Deleted
    from ringfence.toolkit.workspace.view import View


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan the restoration of tasks from the trash or from a schedule; each task succeeds or fails alone."""
    from ringfence.toolkit.tasks import store_reader
    from ringfence.toolkit.tasks.batch_plan import LOCKED, answer

    store_reader.store(view)
    ids, again = view.task_ids
    latest = store_reader.latest(view)
    scheduled = {one.id: one.entry for one in store_reader.scheduled(view)}
    known = store_reader.by_id(view)
    items: list[Item] = []
    changes: list[tuple[str, Change]] = []
    for task in ids:
        item, change = _back(view, task, task in known, latest.get(task), scheduled.get(task))
        if change is not None and not view.changeable(change):
            item, change = replace(item, code="permission_denied", why=LOCKED), None
        items.append(item)
        if change is not None:
            changes.append((task, change))
    done = [item for item in items if item.done]
    return answer(
        "restore",
        ids,
        items,
        again,
        changes,
        atomic=False,
        title=f"Restore {plural(len(done), 'task')}",
        draw=lambda: "\n".join(f"{item.title or 'untitled'} ({item.id})" for item in done),
    )


def _back(
    view: View, task: str, live: bool, latest: Deleted | None, scheduled: Entry | None
) -> tuple[Item, Change | None]:
    from ringfence.toolkit.task_ids import TASKS
    from ringfence.toolkit.tasks import store_reader
    from ringfence.toolkit.tasks.messages import Item

    if live and scheduled is not None:
        return Item(task), Delete(scheduled.path, scheduled.stat)
    if live:
        return Item(task, code="already_exists", why="A task with this id is there"), None
    if latest is None:
        return Item(task, code="not_found", why="No deleted task with this id is in the trash"), None
    entry = Entry(latest.path, latest.stat)
    try:
        known, entries = store_reader.task(view, entry)
    except CallError as error:
        return Item(task, code=error.code, why=error.message), None
    readable = view.shows(task)
    title = known.title if readable else None
    move = Move(latest.path, f"{TASKS}/{latest.id}", latest.stat, entries=entries)
    return Item(task, title, readable=readable), move
