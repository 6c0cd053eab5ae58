"""Data of the session pages: the sessions of a workspace, and what one of them did.

Reads the history and the audit; changes nothing. A parent's row does not count its sub-sessions.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from ringfence.toolkit.audit import command_lookup, counts
from ringfence.toolkit.history.records import DONE
from ringfence.toolkit.history.session_diff import Changed
from ringfence.toolkit.plan.changes import DIRECTORY
from ringfence.toolkit.review import change_origins
from ringfence.toolkit.review.change_origins import Origin
from ringfence.toolkit.session.session import Session

SESSIONS = 100
COMMANDS = 200  # commands on one page, the last ones
FILES = 100  # changed files on one page
COMPARED = 2_000  # changed files that are compared with what others did since
PERSON = "person:"  # what a person's own acts have in place of an agent
ACTIVE = 300.0  # seconds after its last call in which a session counts as active


@dataclass(slots=True)
class SessionRow:
    """One session of the list; times in POSIX seconds."""

    name: str
    agents: set[str] = field(default_factory=set)
    first: float = float("inf")
    last: float = 0.0
    changed: int = 0
    deleted: int = 0
    waiting: int = 0

    @property
    def depth(self) -> int:
        """How many sessions it is below."""
        return self.name.count("/")

    @property
    def active(self) -> bool:
        """Whether it called a tool a moment ago."""
        return time.time() - self.last < ACTIVE

    def widen(self, agent: str | None, first: float, last: float) -> None:
        """Add calls or changes of an agent."""
        if agent and not agent.startswith(PERSON):
            self.agents.add(agent)
        self.first, self.last = min(self.first, first), max(self.last, last)


@dataclass(frozen=True, slots=True)
class SessionList:
    """The last sessions, sub-sessions below their parents, and how many there are in all."""

    rows: list[SessionRow]
    total: int

    @property
    def active(self) -> int:
        """How many sessions called a tool a moment ago."""
        return sum(row.active for row in self.rows)


def sessions(session: Session) -> SessionList:
    """Return the last sessions that called a tool or changed something."""
    found: dict[str, SessionRow] = {}
    state = session.state
    for name, some in counts.by_session(state):
        found.setdefault(name, SessionRow(name)).widen(some.kind.agent, some.first, some.last)
    for name, agent, first, last in state.rows(
        "SELECT session, agent, min(started), max(started) FROM op WHERE undoes IS NULL"
        " GROUP BY session, agent"
    ):
        found.setdefault(str(name), SessionRow(str(name))).widen(str(agent), float(first), float(last))
    rows = sorted(found.values(), key=lambda row: -row.last)[:SESSIONS]
    _count(session, {row.name: row for row in rows})
    latest = {row.name.partition("/")[0]: at for at, row in reversed(list(enumerate(rows)))}
    rows.sort(key=lambda row: (latest[row.name.partition("/")[0]], row.name))
    return SessionList(rows, len(found))


def _count(session: Session, rows: dict[str, SessionRow]) -> None:
    for request in session.approvals.waiting():
        if request.session in rows:
            rows[request.session].waiting += 1
    marks = ",".join("?" * len(rows))
    within = f"op.session IN ({marks}) AND item.state = ? AND item.type != ? AND op.undoes IS NULL"
    values = (*rows, DONE, DIRECTORY)
    for name, count in session.state.rows(
        f"SELECT op.session, count(DISTINCT item.path) FROM op JOIN item ON item.op = op.id WHERE {within}"
        " GROUP BY op.session",
        values,
    ):
        rows[str(name)].changed = int(count)
    # A deletion counts while the session itself has put nothing else there, an undo among it.
    for name, count in session.state.rows(
        f"SELECT op.session, count(DISTINCT item.path) FROM op JOIN item ON item.op = op.id WHERE {within}"
        " AND item.kind = 'delete' AND NOT EXISTS (SELECT 1 FROM item later JOIN op other"
        " ON other.id = later.op WHERE later.path = item.path AND later.op > item.op"
        " AND later.kind != 'delete' AND later.state = 'done' AND other.session = op.session)"
        " GROUP BY op.session",
        values,
    ):
        rows[str(name)].deleted = int(count)


@dataclass(frozen=True, slots=True)
class FileRow:
    """One changed file of a session, with its origin where the history has it."""

    change: Changed
    origin: Origin | None
    kept: bool  # whether the content that it had before is kept


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent of a session: its calls, and the files that it changed."""

    name: str
    calls: int
    files: int


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session: its files on one page, deleted ones first, and numbers over all of it.

    `spared` files were changed by others since; None if there are too many files to compare.
    """

    name: str
    files: list[FileRow]
    start: int
    kinds: Counter[str]
    lost: int  # deleted files of this page whose content is not kept
    spared: int | None
    calls: Counter[str]
    agents: list[AgentRow]
    commands: list[dict[str, Any]]
    first: float | None
    last: float | None
    waiting: int

    @property
    def total(self) -> int:
        """How many files differ."""
        return self.kinds.total()

    @property
    def active(self) -> bool:
        """Whether it called a tool a moment ago."""
        return self.last is not None and time.time() - self.last < ACTIVE


def view(session: Session, name: str, start: int) -> SessionView:
    """Return what a session and its sub-sessions did; `start`: the first file of the page."""
    found = session.changes(name)
    found.sort(key=lambda one: (one.kind != "deleted", one.path))
    page = found[start : start + FILES]
    files = _files(session, name, page)
    calls, agents, first, last = _calls(session, name)
    changed_by = Counter(agent for one in found for agent in one.agents if not agent.startswith(PERSON))
    commands = command_lookup.that_changed(session.state, name, most=COMMANDS) if not start else []
    return SessionView(
        name,
        files,
        start,
        Counter(one.kind for one in found),
        sum(row.change.kind == "deleted" and not row.kept for row in files),
        _spared(session, name, found),
        calls,
        [
            AgentRow(agent, agents[agent], changed_by[agent])
            for agent in sorted({*agents, *changed_by}, key=lambda one: (-changed_by[one], one))
        ],
        list(reversed(commands)),
        first,
        last,
        sum(change_origins.is_in(one.session, name) for one in session.approvals.waiting()),
    )


def _files(session: Session, name: str, page: list[Changed]) -> list[FileRow]:
    known = change_origins.origins(session, name, [one.path for one in page])
    rows = change_origins.calls(session, ((one.last.call, one.last.session) for one in known.values()))
    found = []
    for change in page:
        origin = known.get(change.path)
        if origin is not None:
            origin = replace(origin, row=rows.get(origin.last.call))
        found.append(FileRow(change, origin, _is_kept(session, change, origin)))
    return found


def _is_kept(session: Session, change: Changed, origin: Origin | None) -> bool:
    if change.kind != "deleted" or change.type != "file":
        return True
    digest = origin.last.before if origin is not None else None
    return digest is not None and session.history.is_stored(digest)


def _spared(session: Session, name: str, found: list[Changed]) -> int | None:
    if len(found) > COMPARED:
        return None
    known = change_origins.origins(session, name, [one.path for one in found])
    return sum(one.later is not None for one in known.values())


def _calls(session: Session, name: str) -> tuple[Counter[str], Counter[str], float | None, float | None]:
    """Return the numbers of calls, questions, refusals and denials, the calls by agent, and the times."""
    numbers: Counter[str] = Counter()
    agents: Counter[str] = Counter()
    firsts: list[float] = []
    lasts: list[float] = []
    for some in counts.of_session(session.state, name):
        kind = some.kind
        if kind.event == "call":
            numbers["calls"] += some.records
            numbers["denied"] += some.records if kind.effect == "deny" else 0
            if kind.agent and not kind.agent.startswith(PERSON):
                agents[kind.agent] += some.records
        elif kind.event == "approval" and kind.outcome in ("asked", "refused"):
            numbers[kind.outcome] += some.records
        firsts.append(some.first)
        lasts.append(some.last)
    return numbers, agents, min(firsts, default=None), max(lasts, default=None)
