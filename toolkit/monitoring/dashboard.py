"""Dashboard data of a workspace while agents work, from the state that all its processes share.

Reads only what is new where possible, and changes nothing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from ringfence.toolkit.approvals.requests import GRANTED, PENDING, Request
from ringfence.toolkit.audit import command_lookup, command_records
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.history.session_diff import Changed, changed
from ringfence.toolkit.session.session import Session

SESSIONS = 20
LOG = 500
CHANGES = 500  # the last calls of a session whose changes are read
COMMANDS = 100  # the last commands of a session that are listed
REFUSED = 20  # refused requests that the board lists


@dataclass(frozen=True, slots=True)
class Work:
    """The changed files of one session.

    The files of its sub-sessions are included, so only root sessions are listed.

    `earlier`: the session made more changes than are read, before these. `commands` are the records of the
    last commands that changed something.
    """

    session: str
    files: tuple[Changed, ...]
    earlier: bool = False
    commands: tuple[dict[str, Any], ...] = ()


class Board:
    """Pending, granted and recently refused requests, calls in progress, changes and last calls of sessions,
    and the end of the log.

    With `only`, limited to one session and its sub-sessions. `look` updates all of it.
    """

    def __init__(self, session: Session, only: str | None = None) -> None:
        self.session = session
        self.pending: tuple[Request, ...] = ()
        self.granted: tuple[Request, ...] = ()  # grants that can still be used
        self.refused: tuple[Request, ...] = ()
        self.last_call: dict[str, float] = {}  # by session, in POSIX seconds
        self.running: tuple[str, ...] = ()
        self.work: tuple[Work, ...] = ()
        self.log: deque[dict[str, Any]] = deque(maxlen=LOG)
        self.logged = 0  # records added to `log` so far
        self._only = only
        self._read = max(audit.head(session.state)[0] - LOG, 0)
        self._latest: dict[str, int] | None = None  # the last operation read so far, by session
        self._kept: dict[str, Work] = {}
        self._stale: set[str] = set()  # sessions with new records since they were read

    def refresh(self) -> bool:
        """Read what is new since the last call; returns whether anything is."""
        before, read = (self.pending, self.running, self.logged), self._read
        for record in audit.records(self.session.state, since=self._read):
            self._read = record["seq"]
            self._stale.add(self._root(str(record.get("session"))))
            if record.get("event") == "call":
                self.last_call[str(record.get("session"))] = float(record.get("time") or 0)
            if self._concerns(record.get("session")):
                self.log.append(record)
                self.logged += 1
        found = [one for one in self.session.approvals.listing() if self._concerns(one.session)]
        self.pending = tuple(one for one in found if one.state == PENDING)
        self.granted = tuple(one for one in found if one.state == GRANTED)
        refused = self.session.approvals.refused(REFUSED)
        self.refused = tuple(one for one in refused if self._concerns(one.session))
        self.running = self._running()
        fresh = self._read != read or self._latest is None  # every finished call has a record
        if fresh:
            self.work = tuple(self._work())
        return fresh or before != (self.pending, self.running, self.logged)

    def _running(self) -> tuple[str, ...]:
        rows = self.session.state.rows(
            "SELECT session, tool FROM op WHERE state = 'pending' ORDER BY id LIMIT 50"
        )
        return tuple(doing(tool) for session, tool in rows if self._concerns(session))

    def _work(self) -> list[Work]:
        latest = self._sessions()
        roots: dict[str, int] = {}
        for name, last in latest.items():
            if self._concerns(name):
                root = self._root(name)
                roots[root] = max(roots.get(root, 0), last)
        chosen = sorted(roots, key=lambda root: -roots[root])[:SESSIONS]
        for root in chosen:
            if root in self._stale or root not in self._kept:
                self._kept[root] = self._of(root, latest)
        self._kept = {root: self._kept[root] for root in chosen}
        self._stale.clear()
        return [self._kept[root] for root in chosen if self._kept[root].files or self._kept[root].commands]

    def _of(self, root: str, latest: dict[str, int]) -> Work:
        """Return the last changes of a session and its sub-sessions."""
        state, found = self.session.state, list[int]()
        for name in latest:
            if name == root or name.startswith(root + "/"):
                newest = "SELECT id FROM op WHERE session = ? ORDER BY id DESC LIMIT ?"
                found += [int(row[0]) for row in state.rows(newest, (name, CHANGES + 1))]
        found.sort(reverse=True)
        since = found[CHANGES - 1] if len(found) > CHANGES else 0
        files = tuple(changed(self.session.history, root, since=since))
        commands = tuple(command_lookup.that_changed(state, root, most=COMMANDS))
        return Work(root, files, since > 0, commands)

    def _sessions(self) -> dict[str, int]:
        """Return each session with its last operation."""
        state = self.session.state
        if self._latest is None:
            self._latest, name = {}, ""
            # The index leads from one session to the next, without a scan of every operation.
            while (
                row := state.rows("SELECT min(session) FROM op WHERE session > ?", (name,))[0][0]
            ) is not None:
                name = str(row)
                ((last,),) = state.rows("SELECT max(id) FROM op WHERE session = ?", (name,))
                self._latest[name] = int(last)
            return self._latest
        newer = "SELECT session, max(id) FROM op WHERE id > ? GROUP BY session"
        known = max(self._latest.values(), default=0)
        self._latest |= {str(name): int(last) for name, last in state.rows(newer, (known,))}
        return self._latest

    def _root(self, session: str) -> str:
        return self._only or session.partition("/")[0]

    def _concerns(self, session: object) -> bool:
        if self._only is None:
            return True
        return session == self._only or str(session).startswith(self._only + "/")


def label(record: dict[str, Any]) -> str:
    """Return a call as the log names it: `[delete_tasks tasks: 3]`, `[delete src/a.py]`, `[$ make (exit 0,
    overlay)]`.
    """
    if command := command_records.in_short(record):
        return f"[{command}]"
    tool = str(record.get("tool") or record.get("event") or "?")
    tasks = record.get("tasks")
    if isinstance(tasks, dict):
        return f"[{tool} tasks: {tasks.get('succeeded', 0) + tasks.get('failed', 0)}]"
    paths = [str(path) for path in record.get("paths") or ()]
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"[{tool} {paths[0]}{more}]" if paths else f"[{tool}]"


_DOING = {"create": "Creating", "delete": "Deleting", "edit": "Editing", "insert": "Editing"}
_DOING |= {
    "run": "Applying a command's changes",
    "move": "Moving",
    "copy": "Copying",
    "undo": "Undoing",
    "restore": "Restoring",
}


def doing(tool: str) -> str:
    """Return a tool's progress word: `Deleting…`."""
    return f"{_DOING.get(tool.partition('_')[0], tool)}…"
