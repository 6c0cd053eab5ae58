"""list_tasks: list the task folders that the agent may know, with their metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.durations import moment
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Entry, Plan
from ringfence.toolkit.text import escape, plural, size, when

if TYPE_CHECKING:
    from ringfence.toolkit.tasks.metadata import Task
    from ringfence.toolkit.workspace.view import View

_ORDERS: dict[str, Callable[[Task], Any]] = {
    "last_activity": lambda task: -(task.active or 0.0),
    "created": lambda task: -(task.created or 0.0),
    "title": lambda task: (task.title or "").casefold(),
    "size": lambda task: -(task.size or 0),
}


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan no change; answer with the tasks that the agent may know, filtered and sorted."""
    from ringfence.toolkit.tasks import store_reader
    from ringfence.toolkit.tasks.metadata import CORRUPT

    store_reader.store(view)
    since = time_of(arguments["since"], "since") if "since" in arguments else None
    found = [
        _read(view, entry)
        for entry in store_reader.folders(view)
        if entry.stat.kind == DIRECTORY and view.shows(entry.name)
    ]
    twice = Counter(task.id for task in found)
    found = [
        task if twice[task.id] == 1 else replace(task, status=CORRUPT, trouble=store_reader.TWINS)
        for task in found
    ]
    kept = [task for task in found if _wanted(task, arguments, since)]
    kept.sort(key=lambda task: task.id)
    kept.sort(key=_ORDERS[arguments["sort_by"]])
    shown = kept[: arguments["limit"]]
    blocks = [_block(task) for task in shown]
    left = f" ({len(kept) - len(shown):,} more are not shown)" if len(kept) > len(shown) else ""
    content = "\n\n".join([*blocks, f"Total: {plural(len(kept), 'task')}{left}"])
    return Plan(content=content, data={"tasks": [task.to_json() for task in shown], "total": len(kept)})


def _read(view: View, entry: Entry) -> Task:
    from ringfence.toolkit.tasks import store_reader
    from ringfence.toolkit.tasks.metadata import CORRUPT, Task

    try:
        return store_reader.task(view, entry)[0]
    except CallError as error:
        # A folder that cannot be opened exists, so it is listed.
        return Task(entry.name.lower(), status=CORRUPT, trouble=f"it cannot be opened ({error.code})")


def time_of(text: str, parameter: str) -> float:
    """Return the POSIX seconds of an RFC 3339 time with its zone. Raises CallError `invalid_arguments`."""
    found = moment(text)
    if found is None:
        message = f"The {parameter} is not a time with a zone, or not one of the years 1 to 9999"
        hint = "write it as 2026-01-31T18:00:00Z"
        raise CallError("invalid_arguments", message, where=parameter, hint=hint)
    return found


def _wanted(task: Task, arguments: dict[str, Any], since: float | None) -> bool:
    if arguments["status"] not in ("all", task.status.lower()):
        return False
    if "mode" in arguments and task.mode != arguments["mode"]:
        return False
    return since is None or (task.active is not None and task.active >= since)


def _block(task: Task) -> str:
    from ringfence.toolkit.tasks.messages import card

    more = [f"- Last activity: {when(task.active)}", f"- Size: {size(task.size)}"]
    return escape("\n".join([card(task), *more]), newlines=True)
