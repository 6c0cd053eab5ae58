"""Plan for many tasks: its parts succeed or fail one by one, and its text is made once the failures are
known.

Values only; reads and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ringfence.toolkit.plan.changes import Change, Failed, Failure, PartialAnswer, Plan, path_of
from ringfence.toolkit.tasks import messages
from ringfence.toolkit.tasks.messages import Item
from ringfence.toolkit.text import escape, plural

LOCKED = "Permission denied - task directory is locked"

# Hints about ids, for codes whose own hint is about paths.
_HINTS = {
    "not_found": "compare the ids with those that list_tasks gives",
    "already_exists": "delete that one first if the deleted one is wanted",
}


def answer(  # noqa: PLR0913  the parts of one plan, by keyword
    what: str,
    ids: tuple[str, ...],
    items: list[Item],
    again: tuple[str, ...],
    changes: list[tuple[str, Change]],
    *,
    atomic: bool,
    title: str,
    draw: Callable[[], str],
    note: str = "",
) -> Plan:
    """Return the plan for many tasks; `items` are both the tasks to change and those left unchanged."""
    order = {task: n for n, task in enumerate(ids)}
    ordered = sorted(items, key=lambda item: order[item.id])
    owner = {path_of(change): task for task, change in changes if task}

    def tell(failed: Failed, call: str) -> PartialAnswer:
        lost = {owner[path]: failure for path, failure in failed.items() if path in owner}
        final = [_failed(item, lost[item.id], call) if item.id in lost else item for item in ordered]
        done = any(item.done for item in final)
        code = None
        if lost:
            half = any(item.half for item in final)
            code = "partial_failure" if done or half else _first(final, lost)
        elif not done:
            code = next(item.code for item in final if item.code is not None)
        content = messages.results(what, final, again, note if done else "")
        return PartialAnswer(content, messages.fields(final, again), code, _HINTS.get(code or ""))

    started = tell({}, "")
    return Plan(
        content=started.content,
        data=started.data,
        changes=tuple(change for _, change in changes),
        title=title,
        draw=draw,
        apart=not atomic,
        tell=tell,
        atomic=atomic,
    )


def _first(items: list[Item], lost: dict[str, Failure]) -> str:
    """Return the code of a real failure, in preference to that of a change that was only rolled back."""
    codes = [item.code for item in items if item.id in lost and item.code is not None]
    return next((code for code in codes if code != "partial_failure"), codes[0])


def _failed(item: Item, failure: Failure, call: str) -> Item:
    why = LOCKED if failure.code == "permission_denied" else escape(failure.why)
    inside = failure.path.partition(f"{item.id}/")[2] or None
    if failure.stay:
        left = plural(failure.stay, "entry", "entries")
        why = f"{why}; {left} of it changed all the same, and `ringfence undo {call}` takes that back"
    return replace(
        item,
        code="partial_failure" if failure.stay else failure.code,
        why=why,
        file=inside if item.readable else None,
        half=bool(failure.stay),
    )
