"""Purge of tasks: empties the trash by age and carries out scheduled deletions that are due. A person's act,
recorded.

Never purges a task of unknown age, nor deletes one that changed since its deletion was scheduled.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.apply import apply
from ringfence.toolkit.history.records import DONE, Operation
from ringfence.toolkit.plan.changes import DIRECTORY, Change, Delete, Entry, Move, Plan, numbered
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.attempt import Attempt
from ringfence.toolkit.session.responses import raise_failure
from ringfence.toolkit.session.rollback import roll_back
from ringfence.toolkit.task_ids import IN_TRASH
from ringfence.toolkit.tasks import store_reader as store_reader
from ringfence.toolkit.text import plural
from ringfence.toolkit.tools.delete_tasks import holds
from ringfence.toolkit.workspace.view import View

_TRIES = 30  # another purge may be running; each try waits for it a little and then finds fewer tasks
_GONE = ("not_found", "path_changed")


@dataclass(slots=True)
class _Found:
    """The changes to make, each with its task and whether the task is "purged" or "due"."""

    changes: list[tuple[Change, str, str]] = field(default_factory=list)
    kept: list[dict[str, str]] = field(default_factory=list)
    # The path of a note, and the task that has to be deleted before it.
    after: dict[str, str] = field(default_factory=dict)

    def keep(self, task: str, why: str) -> None:
        self.kept.append({"id": task, "why": why})


def purge(attempt: Attempt, older_than: float, *, dry_run: bool, progress: Progress) -> Result:
    """Plan the purge and, unless `dry_run`, carry it out. Raises CallError for failures.

    A task that another purge, or anybody else, removed meanwhile is no failure.
    """
    view = View.unjudged(attempt.context.workspace)
    store_reader.store(view)
    for left in range(_TRIES, 0, -1):
        attempt.planned = attempt.context.history.position()
        found = _Found()
        _old(attempt, view, time.time() - older_than, found)
        _scheduled(view, found)
        attempt.plan = _plan(found)
        if dry_run or not found.changes:
            break
        try:
            _do(attempt, view, progress)
            break
        except CallError as error:
            # Nothing was changed yet, so the plan is made anew.
            if attempt.outcome is not None or error.code not in _GONE or left == 1:
                raise
    return _result(attempt, found, dry_run)


def _plan(found: _Found) -> Plan:
    changes = tuple(change for change, _, _ in found.changes)
    return Plan(changes=changes, title="purge tasks", apart=True, after=found.after)


def _do(attempt: Attempt, view: View, progress: Progress) -> None:
    context, plan = attempt.context, attempt.plan
    assert plan is not None, "made just before"
    operation = Operation(
        attempt.name, None, context.session, context.agent, "purge_tasks", planned=attempt.planned
    )
    attempt.outcome = outcome = apply(
        plan, context.workspace, context.history, operation, {}, spots={}, progress=progress
    )
    outcome.failures[:] = [missed for missed in outcome.failures if _is_there(view, missed.path)]
    if outcome.failures:
        roll_back(attempt, plan, outcome)
    raise_failure(outcome)


def _is_there(view: View, path: str) -> bool:
    try:
        return view.stat_at(path) is not None
    except CallError:
        return True  # a folder that cannot be read is not known to be gone


def _result(attempt: Attempt, found: _Found, dry_run: bool) -> Result:
    """Return the result, without changes that somebody else made first."""
    made = _made(attempt)
    done = [(task, what) for change, task, what in found.changes if dry_run or id(change) in made]
    purged, due = ([task for task, each in done if each == what] for what in ("purged", "due"))
    data: dict[str, Any] = {"purged": purged, "kept": found.kept, "due": due}
    count = f"{plural(len(purged), 'task')} purged, {len(due):,} scheduled deletions done"
    if dry_run:
        return Result(None, "ok", f"Dry run, nothing was changed: {count}", {**data, "dry_run": True})
    return Result(None, "ok", count, data)


def _made(attempt: Attempt) -> set[int]:
    """Return the identities (`id`) of the changes that were made."""
    plan, outcome = attempt.plan, attempt.outcome
    if plan is None or outcome is None:
        return set()
    stands = outcome.stands
    return {
        id(change)
        for change, numbers in numbered(plan.changes)
        if all(stands.get(n) == DONE for n in numbers)
    }


def _old(attempt: Attempt, view: View, limit: float, found: _Found) -> None:
    for one in store_reader.trash(view):
        at = _deleted_at(attempt, one.path)
        if at is None:
            found.keep(one.name, "the history does not know when it was deleted")
        elif at > limit:
            found.keep(one.name, "not old enough")
        elif (entries := _tree(view, one.name, one.path, found)) is not None:
            found.changes.append((Delete(one.path, one.stat, entries), one.name, "purged"))


def _tree(view: View, task: str, path: str, found: _Found) -> tuple[Entry, ...] | None:
    """Return everything in a folder; None, with a reported failure, if the folder cannot be read."""
    try:
        return view.tree_at(path)
    except CallError as error:
        if error.code != "not_found":
            found.keep(task, f"it cannot be opened ({error.code})")
        return None


def _deleted_at(attempt: Attempt, path: str) -> float | None:
    items = attempt.context.history.items(
        "item.path2 = ? AND item.kind = 'move' AND item.state = ?", (path, DONE)
    )
    return max((item.started for item in items), default=None)


def _scheduled(view: View, found: _Found) -> None:
    taken, known = store_reader.latest(view), store_reader.by_id(view)
    for one in store_reader.scheduled(view):
        note = Delete(one.entry.path, one.entry.stat)
        named = known.get(one.id, ())
        if one.why is not None:
            found.keep(one.id, one.why)
        elif one.due > time.time():
            continue
        elif len(named) > 1:
            found.keep(one.id, store_reader.TWINS)
        elif not named or named[0].stat.kind != DIRECTORY:
            found.changes.append((note, one.id, "note"))
        elif (entries := _tree(view, one.id, named[0].path, found)) is not None:
            if holds(named[0], entries) != one.holds:
                found.keep(one.id, "it changed after its deletion was scheduled")
                continue
            number = taken[one.id].number + 1 if one.id in taken else 1
            found.changes.append((_deletion(named[0], entries, one.permanent, number), one.id, "due"))
            found.changes.append((note, one.id, "note"))
            found.after[note.path] = named[0].path  # a task that could not be deleted stays scheduled


def _deletion(folder: Entry, entries: tuple[Entry, ...], permanent: bool, number: int) -> Change:
    if permanent:
        return Delete(folder.path, folder.stat, entries)
    name = folder.name if number == 1 else f"{folder.name}.{number}"
    return Move(folder.path, f"{IN_TRASH}/{name}", folder.stat, entries=entries)
