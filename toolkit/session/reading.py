"""Limits on reading: what an answer gives is counted before the agent gets it.

Where no limit counts reading, nothing is changed and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from ringfence.toolkit.plan.changes import Plan

if TYPE_CHECKING:
    from ringfence.toolkit.session.attempt import Attempt


def counted(attempt: Attempt, plan: Plan) -> Plan:
    """Note what a plan's answer gives.

    If the agent's reading is limited, an answer about changes gives nothing: it has no diff any more.
    """
    if plan.gives is not None and plan.gives.files and attempt.counting.reads:
        attempt.usage["read"] = plan.gives
    if "diff" not in plan.data or not is_limited(attempt):
        return plan
    more = {"diff_left_out": plan.data["files_deleted"]} if "diff_left_out" in plan.data else {}
    return replace(plan, data={**plan.data, "diff": "", **more})


def is_limited(attempt: Attempt) -> bool:
    """Whether limits count what the agent reads."""
    return bool(attempt.policy.counting(attempt.context.agent, "read").reads)


def reserve(attempt: Attempt, guard: Callable[[], None]) -> None:
    """Add what the answer gives to the sums that limits count; `guard` checks them in the same transaction.

    A process that ends before its answer has read as much as the answer would have given.
    """
    if "read" not in attempt.usage:
        return
    context, counting = attempt.context, attempt.counting
    if counting.kept_reads:
        context.history.reserve_read(
            context.session,
            context.agent,
            attempt.known_tool.name,
            attempt.usage["read"],
            guard,
            timed=counting.timed_reads,
        )
