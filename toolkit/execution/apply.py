"""Application of a judged plan: commits the intent and the old content, then makes the changes.

Returns the outcome of each change. If another call has an open intent at the same path, waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial

from ringfence.policy import Amount
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.change_maker import ChangeMaker
from ringfence.toolkit.execution.logged_change import is_loggable, size_of
from ringfence.toolkit.execution.outcome import Outcome
from ringfence.toolkit.history.path_locks import Busy
from ringfence.toolkit.history.records import Operation
from ringfence.toolkit.history.store import History
from ringfence.toolkit.plan.changes import (
    Change,
    Plan,
    SetMode,
    Write,
)
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.storage.ambiguous_outcome import AMBIGUOUS
from ringfence.toolkit.storage.backend import Spot, WritableTree, no_modes, traits_at
from ringfence.toolkit.storage.guarantees import unconditional
from ringfence.toolkit.workspace.workspace import Workspace

_VERY_MANY = 64  # from this many new files on, all are synced together
_PATIENCE, _PAUSE = 2.0, 0.02  # seconds a call waits for another one at the same path


def apply(  # noqa: PLR0913  one operation's parts, named by the caller
    plan: Plan,
    workspace: Workspace,
    history: History,
    operation: Operation,
    usage: dict[str, Amount],
    *,
    spots: dict[str, Spot],
    guard: Callable[[], None] = lambda: None,
    progress: Progress,
) -> Outcome:
    """Make a plan's changes. `spots` are the handles of the judged places, by canonical path.

    Raises CallError if nothing was changed; later failures are in the Outcome.
    """
    workspace.remembered.clear()
    maker = ChangeMaker(workspace, spots, progress, history, plan.quarantined)
    try:
        numbered = maker.number(plan.changes)
        _check_modes(plan.changes, workspace)
        maker.intent.read_large_contents(numbered)
        logged = history.redo.in_use and is_loggable(plan, workspace.backend.traits)
        with nullcontext() if logged else _early(plan, maker, workspace.writable(), spots):
            op = _begin(maker, numbered, workspace, history, operation, usage, guard, logged)
            try:
                with history.redo.later(op, size_of(plan)) if logged else nullcontext():
                    return _carry_out(Outcome(op, logged), plan, numbered, maker, workspace, history)
            except BaseException:
                # The outcome is unknown; recovery finds it out, at the latest at the next start.
                with suppress(CallError):
                    history.abandon(op)
                raise
    finally:
        maker.release()


def _carry_out(  # noqa: PLR0913  what `apply` got, once the intent is committed
    outcome: Outcome,
    plan: Plan,
    numbered: list[tuple[Change, int]],
    maker: ChangeMaker,
    workspace: Workspace,
    history: History,
) -> Outcome:
    """Make the changes, and complete the outcome."""
    if plan.apart:
        maker.make_apart(numbered, outcome, plan.after)
    else:
        with _synced(maker.one_by_one(plan.changes), workspace.writable()):
            for change, first in numbered:
                maker.make(change, first, outcome)
                maker.release()
                if plan.atomic and outcome.failures and outcome.error is None:
                    missed = outcome.failures[0]
                    outcome.error = missed.error()
            maker.set_restored_metadata(outcome)
    backend = workspace.backend
    outcome.resolved.extend(getattr(backend, "take_resolved", tuple)())
    outcome.unconditional = unconditional(plan.changes, partial(traits_at, backend))
    outcome.kept_in = maker.kept_in(plan.changes)
    if any(missed.code in AMBIGUOUS for missed in outcome.failures):
        from ringfence.toolkit.execution.second_look import look_again

        look_again(outcome, workspace, history)
    return outcome


def _check_modes(changes: Iterable[Change], workspace: Workspace) -> None:
    """Refuse a change of mode in a store without modes, before anything is changed."""
    for change in changes:
        if isinstance(change, SetMode) and not traits_at(workspace.backend, change.path).modes:
            raise no_modes(change.path)


def _early(
    plan: Plan, maker: ChangeMaker, backend: WritableTree, spots: dict[str, Spot]
) -> AbstractContextManager[None]:
    """Return a context in which a single file is written and synced while its intent is committed."""
    match plan.changes:
        case (Write() as change,) if change.path in spots and change.path not in plan.quarantined:
            return backend.early(spots[change.path], change, maker.intent.name(change))
    return nullcontext()


def _synced(changes: Iterable[Change], backend: WritableTree) -> AbstractContextManager[None]:
    """Return a context that makes very many new files durable together; the history has their content."""
    new = sum(isinstance(change, Write) and change.stat is None for change in changes)
    return backend.sync_once() if new >= _VERY_MANY else nullcontext()


def _begin(  # noqa: PLR0913  what `apply` got, to begin with
    maker: ChangeMaker,
    numbered: list[tuple[Change, int]],
    workspace: Workspace,
    history: History,
    operation: Operation,
    usage: dict[str, Amount],
    guard: Callable[[], None],
    logged: bool,
) -> int:
    """Commit the intent. If another call has an open intent at the same path, wait for it, or recover it if
    its process is dead.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            items = (item for change, _ in numbered for item in maker.intent.items(change))
            return history.begin(operation, items, usage, guard, logged)
        except Busy:
            if history.orphans():
                from ringfence.toolkit.execution.recovery import recover

                if recover(history, workspace):
                    continue
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE)
