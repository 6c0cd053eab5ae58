"""Recorded sessions: the agents of each, its calls, its first and last record, the number of changed files.

Reads the index, and the records themselves only of archived segments.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from ringfence.toolkit.audit import command_records
from ringfence.toolkit.audit.archive import packed
from ringfence.toolkit.plan.changes import DIRECTORY
from ringfence.toolkit.state import audit_columns
from ringfence.toolkit.state.protocol import State


@dataclass(frozen=True, slots=True)
class Recorded:
    """A session; `first` and `last` are POSIX seconds, `files` counts each changed file once, `commands` the
    calls about a command.
    """

    session: str
    agents: tuple[str, ...]
    calls: int
    first: float
    last: float
    files: int
    commands: int = 0


class _Some(NamedTuple):
    """Records of one session and kind: their number, the first and the last time."""

    session: str
    kind: str
    records: int
    first: float
    last: float


def recorded(state: State, agent: str | None = None) -> list[Recorded]:
    """Return the recorded sessions, the one with the newest record last.

    With `agent` only sessions in which that agent or one of its sub-agents called a tool.
    """
    files = _files(state)
    grouped: dict[str, list[_Some]] = {}
    for some in _records(state):
        grouped.setdefault(some.session, []).append(some)
    found = []
    for session, parts in grouped.items():
        calls, commands, agents = 0, 0, dict[str, None]()
        for part in parts:
            kind = audit_columns.parse(part.kind)
            calls += part.records if kind.event == "call" else 0
            commands += part.records if (kind.event, kind.tool) == ("call", command_records.TOOL) else 0
            if kind.agent is not None:
                agents[kind.agent] = None
        if agent is None or any(one == agent or one.startswith(f"{agent}/") for one in agents):
            first, last = min(part.first for part in parts), max(part.last for part in parts)
            counted = files.get(session, 0)
            found.append(Recorded(session, tuple(sorted(agents)), calls, first, last, counted, commands))
    return sorted(found, key=lambda one: one.last)


def _records(state: State) -> Iterator[_Some]:
    archive = packed(state.archive)
    for file in archive:
        for _, body in file.records():
            time, session, kind = audit_columns.columns(json.loads(body))
            if session is not None and time is not None:
                yield _Some(session, kind, 1, time, time)
    rows = state.rows(
        "SELECT session, kind, count(*), min(time), max(time) FROM audit"
        " WHERE seq > ? AND session IS NOT NULL AND time IS NOT NULL GROUP BY session, kind",
        (archive[-1].last if archive else 0,),
    )
    yield from (_Some(str(row[0]), str(row[1]), int(row[2]), float(row[3]), float(row[4])) for row in rows)


def _files(state: State) -> dict[str, int]:
    rows = state.rows(
        "SELECT op.session, count(DISTINCT item.path) FROM op JOIN item ON item.op = op.id"
        " WHERE op.undoes IS NULL AND item.type != ? AND item.state IN ('done', 'partial', 'unknown')"
        " GROUP BY op.session",
        (DIRECTORY,),
    )
    return {str(session): int(count) for session, count in rows}
