"""Crash recovery of a session: settles the operations that a dead process or an earlier call left open.

Imports the recovery only if there is something to recover.
"""

from __future__ import annotations

from ringfence.toolkit.session.attempt import Context
from ringfence.toolkit.session.left_scratches import sweep_scratches


def recover_orphans(context: Context) -> None:
    """Recover the operations that dead processes left open, and remove the scratches of their commands.

    Raises CallError if store or state fails.
    """
    history = context.history
    if context.state.interrupted and history.content_files is not None:
        from ringfence.toolkit.history.pruning import sweep

        sweep(context.state, history.content_files)
    if history.orphans():
        from ringfence.toolkit.execution.recovery import recover

        recover(history, context.workspace)
    sweep_scratches(context)


def recover_left_open(context: Context) -> None:
    """Recover an operation that an earlier call of this session left open, because the store did not answer.

    Raises CallError if store or state fails.
    """
    if context.history.left_open:
        from ringfence.toolkit.execution.recovery import recover

        context.history.left_open = False  # set again if the store still does not answer
        recover(context.history, context.workspace)
