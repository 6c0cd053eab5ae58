"""Second look after a failed change: the disk or store may have made a change that it reported as failed.

Answers follow the files found then. A directory of this machine keeps its error, because its content may not
be durable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.item_recovery import known, verdicts
from ringfence.toolkit.history.records import ABORTED, DONE, PENDING, UNKNOWN, ItemRow
from ringfence.toolkit.history.store import History
from ringfence.toolkit.paths import is_below
from ringfence.toolkit.storage.ambiguous_outcome import NO_REPLY, no_reply
from ringfence.toolkit.storage.backend import FailedEntry, traits_at
from ringfence.toolkit.workspace.workspace import Workspace

if TYPE_CHECKING:
    from ringfence.toolkit.execution.outcome import Outcome


def look_again(outcome: Outcome, workspace: Workspace, history: History) -> None:
    """Set the states of failed items from the files, and correct the failures accordingly."""
    items = list(history.items("op.id = ?", (outcome.op,)))
    try:
        found, left = verdicts(workspace, items)
    except CallError:
        # The state is still unknown: recovery reads it again before the next call.
        outcome.states.update({n: PENDING for n in outcome.unsure if outcome.states[n] == ABORTED})
        if not any(traits_at(workspace.backend, one.path).race_free for one in outcome.failures):
            _report_open(outcome)
        return
    outcome.left.extend(left)
    unsure = [item for item in items if item.n in outcome.unsure and outcome.states[item.n] == ABORTED]
    late = [item for item in unsure if found[item.n] in (DONE, UNKNOWN)]
    outcome.states.update({item.n: found[item.n] for item in late})
    waiting = [item.path for item in items if outcome.states[item.n] == PENDING]
    # A late request that may still move an entry out of a directory may also move the directory.
    open_still = [item for item in unsure if any(is_below(path, item.path) for path in waiting)]
    outcome.states.update({i.n: PENDING for i in open_still if outcome.states[i.n] == ABORTED})
    _drop_what_is_done(outcome, workspace, items, late)
    if set(outcome.states.values()) == {ABORTED}:
        _report_nothing_done(outcome)


def _drop_what_is_done(
    outcome: Outcome, workspace: Workspace, items: list[ItemRow], late: list[ItemRow]
) -> None:
    """Drop the failure of a change that is done. It stays if a later change was not tried because of it."""
    states = outcome.states
    if outcome.error is not None and set(states.values()) != {DONE}:
        return
    undone = [item.path for item in items if states[item.n] != DONE]
    done = {item.path for item in late}
    for missed in list(outcome.failures):
        at = missed.path
        local = traits_at(workspace.backend, at).race_free
        if local or at not in done or any(path == at or is_below(path, at) for path in undone):
            continue
        outcome.failures.remove(missed)
        outcome.resolved.append(at)
    if not outcome.failures:
        outcome.error = None
        outcome.seen.update(row for item in late for row in known(item))


def _report_open(outcome: Outcome) -> None:
    """Report failed items of unknown state as open: they may be done in part."""
    unsure = ("io_error", "directory_not_empty")
    outcome.failures[:] = [
        FailedEntry(one.path, no_reply(one.path).message, NO_REPLY) if one.code in unsure else one
        for one in outcome.failures
    ]
    if outcome.error is not None and outcome.error.code in unsure:
        outcome.error = no_reply(outcome.failures[-1].path)


def _report_nothing_done(outcome: Outcome) -> None:
    """Report the original failure of a move by halves that is reverted now."""

    def first(error: BaseException | None) -> CallError | None:
        moved = isinstance(error, CallError) and error.code == "partial_failure"
        return error.__cause__ if moved and isinstance(error.__cause__, CallError) else None  # type: ignore[union-attr]

    for n, missed in enumerate(outcome.failures):
        cause = first(outcome.raised.get(missed.path))
        if cause is not None:
            outcome.failures[n] = FailedEntry(missed.path, cause.message, cause.code)
    outcome.error = first(outcome.error) or outcome.error
