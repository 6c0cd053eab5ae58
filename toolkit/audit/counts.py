"""Counts of audit records by their kind: of each session, of one session, and since a time. Only reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ringfence.toolkit.audit.archive import packed
from ringfence.toolkit.audit.index import INDEXED, SINCE
from ringfence.toolkit.state import audit_columns
from ringfence.toolkit.state.audit_columns import Kind
from ringfence.toolkit.state.protocol import State

SEGMENTS = 50  # archived segments that are read, the newest ones

_PARTS = (
    "SELECT {} kind, count(*), min(time), max(time) FROM audit WHERE time IS NOT NULL AND {} GROUP BY {} kind"
)


@dataclass(frozen=True, slots=True)
class Counted:
    """How many records of a kind there are; the first and the last time in POSIX seconds.

    Of an archived segment that is counted by its summary, the times are those of the segment.
    """

    kind: Kind
    records: int
    first: float
    last: float


def by_session(state: State) -> Iterator[tuple[str, Counted]]:
    """Yield the counts for each session with records outside the archive."""
    for name, *row in state.rows(_PARTS.format("session,", "session IS NOT NULL", "session,")):
        yield str(name), _counted(row)


def of_session(state: State, session: str) -> list[Counted]:
    """Return the counts of a session and its sub-sessions, of the records outside the archive."""
    # The bounds serve the index and are wider than what follows; "0" comes after "/".
    within = (
        "audit.seq IN (SELECT seq FROM audit_session WHERE session COLLATE BINARY >= ?"
        f" AND session COLLATE BINARY < ? UNION ALL SELECT seq FROM audit WHERE seq > {INDEXED})"
        " AND (audit.session = ? OR substr(audit.session, 1, ?) = ?)"
    )
    name = audit_columns.stored(session)
    values = (name, name + "0", name, len(name) + 1, name + "/")
    return [_counted(row) for row in state.rows(_PARTS.format("", within, ""), values)]


def since(state: State, time: float) -> tuple[list[Counted], bool]:
    """Return the counts from a time on (POSIX seconds), and whether all records since then were counted.

    Of the archive only the newest segments are read.
    """
    files = packed(state.archive)
    done = files[-1].last if files else 0
    found = [
        _counted(row)
        for row in state.rows(
            _PARTS.format("", f"seq >= {SINCE} AND time >= ? AND seq > ?", ""), (time, time, done)
        )
    ]
    for file in reversed(files[-SEGMENTS:]):
        summary = file.summary()
        if summary is not None and summary.until < time:
            return found, True
        if summary is not None and summary.since >= time:
            ends = summary.since, summary.until
            found += [
                Counted(audit_columns.parse(kind), count, *ends) for kind, count in summary.kinds.items()
            ]
        else:
            found += _read((body for _, body in file.records()), time)
    return found, len(files) <= SEGMENTS


def _counted(row: Iterable[object]) -> Counted:
    kind, records, first, last = row
    return Counted(audit_columns.parse(str(kind)), int(str(records)), float(str(first)), float(str(last)))


def _read(bodies: Iterable[str], since: float) -> Iterator[Counted]:
    for body in bodies:
        time, _, kind = audit_columns.columns(json.loads(body))
        if time is not None and time >= since:
            yield Counted(audit_columns.parse(kind), 1, time, time)
