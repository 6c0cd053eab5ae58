"""Crash recovery of a session: settles the operations that a dead process or an earlier call left open.

Imports the recovery only if there is something to recover.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringfence.toolkit.session.attempt import Context
from ringfence.toolkit.session.left_scratches import sweep_scratches

if TYPE_CHECKING:
    from ringfence.toolkit.execution.recovery import Recovered


def recover_orphans(context: Context) -> list[Recovered]:
    """Settle what a power cut has left, recover the operations that dead processes left open, and remove the
    scratches of their commands. Returns what was settled after a power cut.

    Raises CallError if store or state fails, or `not_settled`.
    """
    history = context.history
    settled: list[Recovered] = []
    if history.redo.to_settle():
        from ringfence.toolkit.execution.settlement import settle

        settled = settle(history, context.workspace)
    if context.state.interrupted and history.content_files is not None:
        from ringfence.toolkit.history.pruning import sweep

        sweep(context.state, history.content_files)
    if history.orphans():
        from ringfence.toolkit.execution.recovery import recover

        recover(history, context.workspace)
    history.redo.sync_left()
    sweep_scratches(context)
    return settled


def recover_left_open(context: Context) -> None:
    """Recover an operation that an earlier call of this session left open, because the store did not answer.

    Raises CallError if store or state fails.
    """
    if context.history.left_open:
        from ringfence.toolkit.execution.recovery import recover

        context.history.left_open = False  # set again if the store still does not answer
        recover(context.history, context.workspace)
        context.history.redo.sync_left()
