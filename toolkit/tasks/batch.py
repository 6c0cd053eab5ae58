"""One answer for many tasks: a plan whose parts stand apart, and its text once it is known what failed.

Values only; nothing is looked at or changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from toolkit.plan import Change, Failed, Move, Plan, Told
from toolkit.tasks import said
from toolkit.tasks.said import Item
from toolkit.text import escape

_LOCKED = "Permission denied - task directory is locked"


def answer(
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
    """A plan of the changes of many tasks; `items` are those that will be done and those left alone."""
    order = {task: n for n, task in enumerate(ids)}
    ordered = sorted(items, key=lambda item: order[item.id])
    owner = {(c.source if isinstance(c, Move) else c.path): task for task, c in changes if task}

    def tell(failed: Failed) -> Told:
        lost = {owner[path]: why for path, why in failed.items() if path in owner}
        final = [_failed(item, *lost[item.id]) if item.id in lost else item for item in ordered]
        done = any(item.done for item in final)
        code = None
        if lost:
            code = "partial_failure" if done else _first(final, lost)
        elif not done:
            code = next(item.code for item in final if item.code is not None)
        content = said.results(what, final, again, note if done else "")
        return Told(content, said.fields(final, again), code)

    started = tell({})
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


def _first(items: list[Item], lost: dict[str, tuple[str, str]]) -> str:
    """The code of what really failed, before that of what was only taken back."""
    codes = [item.code for item in items if item.id in lost and item.code is not None]
    return next((code for code in codes if code != "partial_failure"), codes[0])


def _failed(item: Item, code: str, why: str) -> Item:
    return replace(item, code=code, why=_LOCKED if code == "permission_denied" else escape(why))
