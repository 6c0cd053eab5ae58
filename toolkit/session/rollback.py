"""Rollback of a failed call: undoes its changes at once, as a recorded operation of its own.

Undoes everything of an all-or-nothing call, else the completed half of each failed change. A change that
cannot be undone stays marked as done.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.apply import apply
from ringfence.toolkit.execution.outcome import Outcome
from ringfence.toolkit.history.records import DONE, Operation
from ringfence.toolkit.plan.changes import Plan, numbered, paths_of
from ringfence.toolkit.progress import Progress

if TYPE_CHECKING:
    from ringfence.toolkit.session.attempt import Attempt


def roll_back(attempt: Attempt, plan: Plan, outcome: Outcome) -> None:
    """Undo the changes that depend on a failed one; the items that were undone are in `undone`."""
    changes = list(numbered(plan.changes))
    done = {n for n, state in outcome.states.items() if state == DONE}
    if all(n in done for _, numbers in changes for n in numbers):
        return
    if plan.atomic:
        groups = [done]
    else:
        halves = [set(numbers) for _, numbers in changes if not done.issuperset(numbers)]
        groups = [numbers & done for numbers in halves]
    for numbers in filter(None, groups):
        try:
            outcome.undone |= _undone_items(attempt, outcome, numbers)
        except CallError:
            continue  # it stays done, and the answer reports it
    undone_paths = {path for path, n in _numbers(plan) if n in outcome.undone}
    for path in undone_paths:
        outcome.seen.pop(path, None)


def _numbers(plan: Plan) -> list[tuple[str, int]]:
    return [
        (path, n)
        for change, numbers in numbered(plan.changes)
        for found, n in zip(paths_of(change), numbers, strict=True)
        for path in found
    ]


def _undone_items(attempt: Attempt, outcome: Outcome, numbers: set[int]) -> set[int]:
    """Undo some items of the operation; return those that are as they were before it."""
    from ringfence.toolkit.undo.planner import undo

    context = attempt.context
    context.history.mark(outcome.op, outcome.states)
    planned = context.history.position().without(outcome.op)
    items = [item for item in context.history.items("op.id = ?", (outcome.op,)) if item.n in numbers]
    undo_plan = undo(items, context.workspace, context.history)
    name = f"{attempt.name}-back"
    operation = Operation(
        name, None, context.session, context.agent, "roll_back", undoes=attempt.name, planned=planned
    )
    plan = undo_plan.plan("roll back")
    reverted = apply(plan, context.workspace, context.history, operation, {}, spots={}, progress=Progress())
    left = {conflict.path for conflict in undo_plan.conflicts}
    left |= {path for path, n in _numbers(plan) if reverted.states.get(n) != DONE}
    record = {
        "time": time.time(),
        "event": "roll_back",
        "tool": "roll_back",
        "session": context.session,
        "agent": context.agent,
        "call": attempt.name,
        "outcome": "partial" if left else "done",
    }
    context.history.finish(reverted.op, reverted.states, {}, record)
    return {item.n for item in items if item.path not in left and item.path2 not in left}
