"""Empties the trash by age and carries out scheduled deletions that are due: a person's act, recorded.

Never purges what it does not know the age of, nor deletes what changed since it was scheduled.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from toolkit.answers import raise_failure
from toolkit.apply import apply
from toolkit.attempt import Attempt
from toolkit.call import Result
from toolkit.history import DONE, Operation
from toolkit.plan import DIRECTORY, Change, Delete, Entry, Move, Plan
from toolkit.progress import Progress
from toolkit.rollback import roll_back
from toolkit.tasks import look
from toolkit.tasks.ids import IN_TRASH
from toolkit.text import plural
from toolkit.tools.delete_tasks import holds
from toolkit.tools.list_tasks import time_of
from toolkit.workspace import View


@dataclass(slots=True)
class _Found:
    changes: list[Change] = field(default_factory=list)
    purged: list[str] = field(default_factory=list)
    kept: list[dict[str, str]] = field(default_factory=list)
    due: list[str] = field(default_factory=list)


def purge(attempt: Attempt, older_than: float, *, dry_run: bool, progress: Progress) -> Result:
    """Plan and, unless `dry_run`, do it. Raises CallError for failures."""
    session = attempt.session
    view = View.unjudged(session.workspace)
    look.store(view)
    found = _Found()
    _old(attempt, view, time.time() - older_than, found)
    _scheduled(view, found)
    attempt.plan = plan = Plan(changes=tuple(found.changes), title="purge tasks", apart=True)
    data: dict[str, Any] = {"purged": found.purged, "kept": found.kept, "due": found.due}
    count = f"{plural(len(found.purged), 'task')} purged, {len(found.due):,} scheduled deletions done"
    if dry_run:
        return Result(None, "ok", f"Dry run, nothing was changed: {count}", {**data, "dry_run": True})
    if plan.changes:
        operation = Operation(attempt.name, None, session.session, session.agent, "purge_tasks")
        attempt.outcome = apply(
            plan, session.workspace, session.history, operation, {}, spots={}, progress=progress
        )
        if attempt.outcome.failures:
            roll_back(attempt, plan, attempt.outcome)
        raise_failure(attempt.outcome)
    return Result(None, "ok", count, data)


def _old(attempt: Attempt, view: View, limit: float, found: _Found) -> None:
    for one in look.trash(view):
        at = _deleted_at(attempt, one.path)
        if at is None:
            found.kept.append({"id": one.name, "why": "the history does not know when it was deleted"})
        elif at > limit:
            found.kept.append({"id": one.name, "why": "not old enough"})
        else:
            found.changes.append(Delete(one.path, one.stat, view.tree_at(one.path)))
            found.purged.append(one.name)


def _deleted_at(attempt: Attempt, path: str) -> float | None:
    items = attempt.session.history.items(
        "item.path2 = ? AND item.kind = 'move' AND item.state = ?", (path, DONE)
    )
    return max((item.started for item in items), default=None)


def _scheduled(view: View, found: _Found) -> None:
    taken = {one.id.lower(): one.number for one in look.trash(view)}
    known = look.by_id(view)
    for task, note, entry in look.due(view):
        folder = known.get(task)
        if time_of(str(note.get("due")), "due") > time.time():
            continue
        if folder is None or folder.stat.kind != DIRECTORY:
            found.changes.append(Delete(entry.path, entry.stat))
            continue
        entries = view.tree_at(folder.path)
        if holds(folder, entries) != note.get("holds"):
            found.kept.append({"id": task, "why": "it changed after its deletion was scheduled"})
            continue
        found.changes.append(_deletion(folder, entries, bool(note.get("permanent")), taken.get(task, 0) + 1))
        found.changes.append(Delete(entry.path, entry.stat))
        found.due.append(task)


def _deletion(folder: Entry, entries: tuple[Entry, ...], permanent: bool, number: int) -> Change:
    if permanent:
        return Delete(folder.path, folder.stat, entries)
    name = folder.name if number == 1 else f"{folder.name}.{number}"
    return Move(folder.path, f"{IN_TRASH}/{name}", folder.stat, entries=entries)
