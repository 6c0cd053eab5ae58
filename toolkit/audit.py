"""The audit: one record a call, chained by hash, never with file content in it.

Only ever appends. A chain shows an altered, missing or reordered record; it cannot show that the
whole of it was written anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.state import Database, State

START = "0" * 64
_NAMED = 1000  # missing records in a row that are named one by one


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with the chain at record `seq`: "altered", "missing", "swapped" or "unreadable"."""

    seq: int
    what: str


def append(db: Database, record: dict[str, Any]) -> int:
    """Add a record inside the caller's transaction; gives its number."""
    last = db.execute("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
    seq, prev = (last[0] + 1, last[1]) if last else (1, START)
    body = json.dumps({"seq": seq, **record}, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    db.execute("INSERT INTO audit VALUES(?,?,?,?)", (seq, body, prev, _hash(prev, body)))
    return seq


def records(state: State, *, since: int = 0) -> Iterator[dict[str, Any]]:
    """The records after number `since`, oldest first."""
    while rows := state.rows("SELECT seq, body FROM audit WHERE seq > ? ORDER BY seq LIMIT 500", (since,)):
        for seq, body in rows:
            since = seq
            yield json.loads(body)


def matching(
    state: State,
    *,
    session: str | None = None,
    agent: str | None = None,
    tool: str | None = None,
    path: str | None = None,
    effect: str | None = None,
    since: float | None = None,
    after: int = 0,
) -> Iterator[dict[str, Any]]:
    """The records after number `after` that all the conditions fit; an agent's sub-agents count as it.

    `path` is a pattern as in a policy, `since` a time in POSIX seconds.
    """
    for record in records(state, since=after):
        named = str(record.get("agent", ""))
        decision = record.get("decision") or {}
        if (
            session in (None, record.get("session"))
            and (agent is None or named == agent or named.startswith(agent + "/"))
            and tool in (None, record.get("tool"))
            and effect in (None, decision.get("effect"))
            and (since is None or record.get("time", 0.0) >= since)
            and (path is None or any(_fits(path, one) for one in record.get("paths") or ()))
        ):
            yield record


def _fits(pattern: str, path: str) -> bool:
    from policy.machine import matches

    return matches(pattern, path, directory=True)


def verify(state: State) -> list[Fault]:
    """Every place at which the chain does not hold; an empty list is a whole chain."""
    faults: list[Fault] = []
    expected, prev = 1, START
    for seq, body, given, digest in state.rows("SELECT seq, body, prev, hash FROM audit ORDER BY seq"):
        # A number made up by hand may be far away.
        faults += [Fault(missing, "missing") for missing in range(expected, min(seq, expected + _NAMED))]
        number = _number(body)
        if number is None:
            faults.append(Fault(seq, "unreadable"))
        elif number != seq:
            faults.append(Fault(seq, "swapped"))
        elif _hash(given, body) != digest or (seq == expected and given != prev):
            faults.append(Fault(seq, "altered"))
        expected, prev = seq + 1, digest
    return faults


def _hash(prev: str, body: str) -> str:
    return hashlib.sha256(f"{prev}\n{body}".encode()).hexdigest()


def _number(body: object) -> int | None:
    try:
        number = json.loads(str(body)).get("seq")
    except (ValueError, AttributeError):
        return None
    return number if isinstance(number, int) else None
