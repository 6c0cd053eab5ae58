"""What there is to see of a workspace while agents work, read from what all its processes share.

Reads only what is new where it can, and changes nothing.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

from toolkit import audit
from toolkit.approvals import PENDING, Request
from toolkit.changes import Changed
from toolkit.session import Session

SESSIONS = 20
LOG = 500
REFUSED = 20  # refused requests that are kept at hand


@dataclass(frozen=True, slots=True)
class Work:
    """One session's changed files; those of its sub-sessions are among them, so only roots are listed."""

    session: str
    files: tuple[Changed, ...]


class Board:
    """The requests that wait or were refused last, what is being done, what sessions changed, the log's end.

    With `only` those of one session and its sub-sessions. `look` brings all of it up to date.
    """

    def __init__(self, session: Session, only: str | None = None) -> None:
        self.session = session
        self.pending: tuple[Request, ...] = ()
        self.refused: tuple[Request, ...] = ()
        self.running: tuple[str, ...] = ()
        self.work: tuple[Work, ...] = ()
        self.log: deque[dict[str, Any]] = deque(maxlen=LOG)
        self.logged = 0  # records that came into `log` so far
        self._only = only
        self._read = max(self._number("SELECT max(seq) FROM audit") - LOG, 0)
        self._done = -1

    def look(self) -> bool:
        """Read what is new since the last look; whether anything is."""
        before = (self.pending, self.running, self.logged)
        for record in audit.records(self.session.state, since=self._read):
            self._read = record["seq"]
            if self._concerns(record.get("session")):
                self.log.append(record)
                self.logged += 1
        self.pending = tuple(
            one
            for one in self.session.approvals.listing()
            if one.state == PENDING and self._concerns(one.session)
        )
        refused = self.session.approvals.refused(REFUSED)
        self.refused = tuple(one for one in refused if self._concerns(one.session))
        self.running = self._running()
        done = self._number("SELECT count(*) FROM op WHERE state != 'pending'")
        fresh = done != self._done
        if fresh:
            self._done = done
            self.work = tuple(self._work())
        return fresh or before != (self.pending, self.running, self.logged)

    def _running(self) -> tuple[str, ...]:
        rows = self.session.state.rows(
            "SELECT session, tool FROM op WHERE state = 'pending' ORDER BY id LIMIT 50"
        )
        return tuple(doing(tool) for session, tool in rows if self._concerns(session))

    def _work(self) -> list[Work]:
        rows = self.session.state.rows(
            "SELECT session, max(id) FROM op GROUP BY session ORDER BY max(id) DESC LIMIT ?", (4 * SESSIONS,)
        )
        roots = dict.fromkeys(
            self._only or name.partition("/")[0] for name, _ in rows if self._concerns(name)
        )
        found = (Work(name, tuple(self.session.changes(name))) for name in list(roots)[:SESSIONS])
        return [one for one in found if one.files]

    def _concerns(self, session: object) -> bool:
        if self._only is None:
            return True
        return session == self._only or str(session).startswith(self._only + "/")

    def _number(self, sql: str) -> int:
        return int(self.session.state.rows(sql)[0][0] or 0)


def label(record: dict[str, Any]) -> str:
    """A call as the log names it: `[delete_tasks tasks: 3]`, `[delete src/a.py]`."""
    tool = str(record.get("tool") or record.get("event") or "?")
    tasks = record.get("tasks")
    if isinstance(tasks, dict):
        return f"[{tool} tasks: {tasks.get('succeeded', 0) + tasks.get('failed', 0)}]"
    paths = [str(path) for path in record.get("paths") or ()]
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"[{tool} {paths[0]}{more}]" if paths else f"[{tool}]"


_DOING = {"create": "Creating", "delete": "Deleting", "edit": "Editing", "insert": "Editing"}
_DOING |= {"move": "Moving", "copy": "Copying", "undo": "Undoing", "restore": "Restoring"}


def doing(tool: str) -> str:
    """What a tool is called while it works: `Deleting…`."""
    return f"{_DOING.get(tool.partition('_')[0], tool)}…"
