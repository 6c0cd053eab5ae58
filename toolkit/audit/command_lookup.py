"""Lookup of commands by call and by session, in the audit records. Only reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from ringfence.toolkit.audit import log
from ringfence.toolkit.audit.command_records import TOOL, counts, of, ran
from ringfence.toolkit.state.protocol import State

_LOOKED_AT = 1_000  # records that are read to find the command of one call
CHANGED = ("done", "partial", "unknown")  # outcomes of calls whose changes were applied, at least in part

Record = dict[str, Any]


def of_calls(state: State, calls: Iterable[tuple[str, str, float]]) -> dict[str, Record]:
    """Return the commands of calls, by call; each call is given with its session and the time of its change.

    A call whose record is not found is left out.
    """
    found: dict[str, Record] = {}
    for call, session, time in calls:
        if call not in found:
            record = next((one for one in _before(state, session, time) if one.get("call") == call), None)
            command = None if record is None else of(record)
            if command is not None:
                found[call] = command
    return found


def that_changed(
    state: State, session: str, agent: str | None = None, *, most: int | None = None
) -> list[Record]:
    """Return the records of the commands of a session and its sub-sessions that changed something, oldest
    first. Also those whose changes were all discarded, or written at once. `most`: only the last ones.
    """
    records: dict[int, Record] = {}
    for name in _family(state, session):
        wanted = log.RecordFilter(session=name, agent=agent, tool=TOOL)
        found = (record for record in log.matching(state, wanted, back=True) if _changed(record))
        records |= {record["seq"]: record for record in islice(found, most)}
    return [records[seq] for seq in sorted(records)][-(most or 0) :]


def _family(state: State, session: str) -> list[str]:
    """Return a session with its sub-sessions that changed something."""
    rows = state.rows(
        "SELECT DISTINCT session FROM op WHERE session >= ? AND session < ?", (f"{session}/", f"{session}0")
    )
    return [session, *(str(row[0]) for row in rows)]  # "0" is the character after "/"


def _changed(record: Record) -> bool:
    command = of(record)
    if command is None or not ran(command):
        return False
    made = record.get("outcome") in CHANGED and bool(counts(command) or command.get("dropped"))
    return made or bool(command.get("through") or command.get("discarded"))


def _before(state: State, session: str, time: float) -> Iterator[Record]:
    """Yield the records of commands that a session had begun by a time, the newest first."""
    wanted = log.RecordFilter(session=session, tool=TOOL, until=time + 1)  # a call begins before its change
    return islice(log.matching(state, wanted, back=True), _LOOKED_AT)
