"""Automatic retention: deletes contents that the policy's retention no longer requires, in small portions,
and records it.

Only one process at a time works on a state; if it dies, the next one takes over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.archive import archive
from ringfence.toolkit.history.pruning import Pruned, choose, forget, note, sum_of
from ringfence.toolkit.history.retention import TURN, Rule
from ringfence.toolkit.state.bounded_tables import trim

if TYPE_CHECKING:
    from ringfence.policy import Policy
    from ringfence.toolkit.approvals.store import Approvals
    from ringfence.toolkit.session.attempt import Context
    from ringfence.toolkit.state.protocol import State

ENDED = 1_000  # at least this many of the latest finished requests stay
_DAY = 86400.0


def rule_of(policy: Policy) -> Rule | None:
    """Return the policy's retention rule at this time; None if it requires everything."""
    setting = policy.retention
    if setting.days is None and setting.max_bytes is None:
        return None
    before = None if setting.days is None else time.time() - setting.days * _DAY
    return Rule(before, setting.max_bytes, setting.keep)


def waiting(approvals: Approvals) -> frozenset[str]:
    """Return the paths of pending requests; their earlier contents stay for the person who decides."""
    return frozenset(path for request in approvals.waiting() for path in request.paths)


def record(context: Context, event: str, freed: Pruned) -> dict[str, Any]:
    """Return the audit record of what retention deleted."""
    return {
        "time": time.time(),
        "event": event,
        "session": context.session,
        "agent": context.agent,
        "tool": event,
        "outcome": "done",
        "calls": freed.calls,
        "contents": freed.contents,
        "trees": freed.trees,
        "bytes": freed.bytes,
        "changes": freed.changes,
    }


def carry_out(context: Context, policy: Policy, go_on: Callable[[], bool]) -> None:
    """Delete what the policy's retention no longer requires, if it is this process's turn.

    Stops when `go_on`, called between two portions, returns False. Raises CallError if the state cannot be
    used.
    """
    rule = rule_of(policy)
    if rule is None or not _take_turn(context.state):
        return
    try:
        _carry_out(context, rule, go_on)
    finally:
        _end_turn(context.state)


def _carry_out(context: Context, rule: Rule, go_on: Callable[[], bool]) -> None:
    content_files = context.history.content_files
    assert content_files is not None, "a session's history has one"
    archive(context.state, go_on)
    trim(context.state, go_on)
    context.approvals.forget_ended(max(rule.keep, ENDED))
    choice = choose(context.state, rule, waiting(context.approvals), go_on)
    freed: list[Pruned] = []
    try:
        for portion in forget(context.state, content_files, context.workspace, choice):
            freed.append(portion)
            if not go_on():
                break
    finally:
        done = sum_of(iter(freed))
        if done.contents or done.trees or done.changes:
            forgotten = replace(done, calls=choice.amounts.calls)
            with context.state.transaction() as db:
                audit.append(db, record(context, "retention", forgotten), context.state.key)


def _take_turn(state: State) -> bool:
    """Take the turn if no other process has it; return whether this process has it now."""
    with state.transaction() as db:
        found = db.execute("SELECT value FROM meta WHERE name = ?", (TURN,)).fetchone()
        owner, _, last = str(found[0]).split("|") if found else ("", "", "0")
        if owner and not state.dead(owner):
            return False
        note(db, TURN, f"{state.owner}|{time.time()}|{last}")
        return True


def _end_turn(state: State) -> None:
    with state.transaction() as db:
        (last,) = db.execute("SELECT coalesce(max(id), 0) FROM op").fetchone()
        note(db, TURN, f"|{time.time()}|{last}")
