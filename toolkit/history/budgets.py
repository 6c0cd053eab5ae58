"""Budgets: what agents have changed and read so far, in a session, in an hour or a day, for the limits.

Amounts are added in the transaction that permits them, so that racing calls cannot exceed a limit together.
Times are whole minutes: an amount counts for its hour or day, and up to a minute longer, never shorter.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ringfence.policy import Amount
from ringfence.policy.model import SECONDS, counted_actions
from ringfence.toolkit.history.session_condition import of_session

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import Database, State

_MINUTE = 60
_LONGEST = max(SECONDS.values()) // _MINUTE
# Minutes that the clocks of machines with one state may differ. What is later than that is from a clock that
# was wrong.
_SKEW = 5
_SUM = "SELECT CAST(coalesce(sum(files), 0) AS BIGINT), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM "
_ADD = (
    "INSERT INTO recent(agent, tool, action, minute, files, bytes) VALUES(?,?,?,?,?,?)"
    " ON CONFLICT(agent, tool, action, minute)"
    " DO UPDATE SET files = recent.files + excluded.files, bytes = recent.bytes + excluded.bytes"
)
_ADD_READ = (
    "INSERT INTO read_total(session, agent, tool, files, bytes, used) VALUES(?,?,?,?,?,?)"
    " ON CONFLICT(session, agent, tool) DO UPDATE SET files = read_total.files + excluded.files,"
    " bytes = read_total.bytes + excluded.bytes, used = excluded.used"
)
_TO_NOW = (
    "INSERT INTO recent(agent, tool, action, minute, files, bytes)"
    " SELECT agent, tool, action, ?, sum(files), sum(bytes) FROM recent WHERE minute > ?"
    " GROUP BY agent, tool, action ON CONFLICT(agent, tool, action, minute)"
    " DO UPDATE SET files = recent.files + excluded.files, bytes = recent.bytes + excluded.bytes"
)


def now() -> int:
    """Return the time in minutes since 1970."""
    return int(time.time() // _MINUTE)


def in_session(state: State, session: str, agent: str, key: str) -> Amount:
    """Return what `agent` and its sub-agents have changed or read in a session, by a limit's key.

    A session counts together with its parent and all of the parent's sub-sessions, so a new sub-session
    raises no limit.
    """
    family = session.partition("/")[0]
    by, who = _by(agent, key)
    if counted_actions(key) == ("read",):
        within, ends = of_session(family, "read_total")
        tool, named = ("", ()) if key == "read" else (" AND tool = ?", (key,))
        by, who = _of_agent(agent)
        return _amount(state, f"read_total WHERE {within} AND {by}{tool}", (*ends, *who, *named))
    (within, ends), (summed, _) = of_session(family), of_session(family, "spent")
    return _amount(
        state,
        f"(SELECT files, bytes FROM usage JOIN op ON op.id = usage.op WHERE {within} AND {by}"
        f" UNION ALL SELECT files, bytes FROM spent WHERE {summed} AND {by}) AS amounts",
        (*ends, *who, *ends, *who),
    )


def over_time(state: State, agent: str, key: str, per: str) -> Amount:
    """Return what `agent` and its sub-agents have changed or read in the last hour or day, in any session."""
    by, who = _by(agent, key)
    since = now() - SECONDS[per] // _MINUTE
    # What is in the future counts, too: a clock that was set back must raise no limit.
    return _amount(state, f"recent WHERE minute >= ? AND {by}", (since, *who))


def catch_up_with_clock(state: State) -> None:
    """Let amounts from the future, which a wrong clock has left, count from now on, for the whole period."""
    latest = now() + _SKEW
    if _newest(state) <= latest:
        return
    with state.transaction() as db:
        db.execute(_TO_NOW, (now(), latest))
        db.execute("DELETE FROM recent WHERE minute > ?", (latest,))
        # These rows are no more where an operation that ends could take its amount back from.
        db.execute("UPDATE usage SET minute = NULL WHERE minute > ?", (latest,))


def _newest(state: State) -> int:
    ((minute,),) = state.rows("SELECT coalesce(max(minute), 0) FROM recent")
    return int(minute)


def add_changes(  # noqa: PLR0913  the columns
    db: Database, op: int, agent: str, tool: str, usage: Mapping[str, Amount], *, timed: bool
) -> None:
    """Add what an operation will change; `timed`: to the sums of the last hour and day, too."""
    minute = now() if timed else None
    db.executemany(
        "INSERT INTO usage(op, action, files, bytes, minute) VALUES(?,?,?,?,?)",
        [(op, action, amount.files, amount.bytes, minute) for action, amount in usage.items()],
    )
    if minute is not None:
        _add_recent(db, agent, tool, usage, minute)


def add_read(  # noqa: PLR0913  the columns
    db: Database, session: str, agent: str, tool: str, amount: Amount, *, timed: bool
) -> None:
    """Add what an answer will give; `timed`: to the sums of the last hour and day, too."""
    minute = now()
    db.execute(_ADD_READ, (session, agent, tool, amount.files, amount.bytes, minute))
    if timed:
        _add_recent(db, agent, tool, {"read": amount}, minute)


def _add_recent(db: Database, agent: str, tool: str, usage: Mapping[str, Amount], minute: int) -> None:
    db.execute("DELETE FROM recent WHERE minute < ?", (minute - _LONGEST,))
    db.executemany(
        _ADD,
        [(agent, tool, action, minute, amount.files, amount.bytes) for action, amount in usage.items()],
    )


def lower(db: Database, op: int, usage: Mapping[str, Amount]) -> None:
    """Reduce the sums from what an operation reserved to what was done."""
    taken = db.execute("SELECT action, files, bytes, minute FROM usage WHERE op = ?", (op,)).fetchall()
    for action, files, size, minute in taken:
        done = usage.get(action, Amount())
        left = min(files, done.files), min(size, done.bytes)
        if left == (files, size):
            continue
        db.execute("UPDATE usage SET files = ?, bytes = ? WHERE op = ? AND action = ?", (*left, op, action))
        if minute is not None:
            agent, tool = db.execute("SELECT agent, tool FROM op WHERE id = ?", (op,)).fetchone()
            db.execute(
                "UPDATE recent SET files = files - ?, bytes = bytes - ?"
                " WHERE agent = ? AND tool = ? AND action = ? AND minute = ?",
                (files - left[0], size - left[1], agent, tool, action, minute),
            )


def _of_agent(agent: str) -> tuple[str, tuple[Any, ...]]:
    """Return a condition for the rows of an agent and its sub-agents."""
    return "(agent = ? OR substr(agent, 1, ?) = ?)", (agent, len(agent) + 1, agent + "/")


def _by(agent: str, key: str) -> tuple[str, tuple[Any, ...]]:
    """Return a condition for the rows of an agent and its sub-agents that a limit's key counts."""
    by, who = _of_agent(agent)
    actions = counted_actions(key)
    by += f" AND action IN ({','.join('?' * len(actions))})"
    who = (*who, *actions)
    return (by, who) if key in (*actions, "*") else (f"{by} AND tool = ?", (*who, key))


def _amount(state: State, table: str, values: tuple[Any, ...]) -> Amount:
    return Amount(*state.rows(_SUM + table, values)[0])
