"""Protocol of a state, and the tables that every kind of it has.

In SQLite by `toolkit.state.sqlite`, in PostgreSQL by `toolkit.state.postgres`.
"""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ringfence.toolkit.state.audit_segments import Segments

VERSION = 5  # `toolkit.state.migrations` knows the way from each older one


MEMORY = ":memory:"


SHARED = ("postgresql://", "postgres://")


SCHEMA = """
CREATE TABLE blob(hash TEXT PRIMARY KEY, size INTEGER NOT NULL, packed INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE op(id INTEGER PRIMARY KEY, call TEXT NOT NULL, given TEXT, session TEXT NOT NULL,
    owner TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL, started REAL NOT NULL, state TEXT NOT NULL,
    durable INTEGER NOT NULL, reason TEXT, undoes TEXT);
CREATE INDEX op_call ON op(call);
CREATE INDEX op_session ON op(session, id);
CREATE INDEX op_pending ON op(owner) WHERE state = 'pending';
CREATE TABLE item(op INTEGER NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL, path2 TEXT,
    type TEXT NOT NULL, before TEXT, after TEXT, mode INTEGER, target TEXT, size INTEGER, grown INTEGER,
    identity TEXT, temporary TEXT, state TEXT NOT NULL, metadata TEXT, PRIMARY KEY(op, n))
    WITHOUT ROWID;
CREATE INDEX item_path ON item(path, op);
CREATE INDEX item_path2 ON item(path2, op) WHERE path2 IS NOT NULL;
CREATE INDEX item_before ON item(before) WHERE kind = 'delete';
CREATE TABLE caught(name TEXT PRIMARY KEY, op INTEGER NOT NULL, path TEXT NOT NULL);
CREATE TABLE usage(op INTEGER NOT NULL, action TEXT NOT NULL, files INTEGER NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY(op, action)) WITHOUT ROWID;
CREATE TABLE spent(session TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL, action TEXT NOT NULL,
    files INTEGER NOT NULL, bytes INTEGER NOT NULL, op INTEGER NOT NULL,
    PRIMARY KEY(session, agent, tool, action)) WITHOUT ROWID;
CREATE TABLE seen(session TEXT NOT NULL, path TEXT NOT NULL, digest TEXT NOT NULL, at REAL,
    PRIMARY KEY(session, path)) WITHOUT ROWID;
CREATE TABLE audit(seq INTEGER PRIMARY KEY, body TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL,
    time REAL, session TEXT, kind TEXT);
CREATE INDEX audit_time ON audit(time, seq);
CREATE INDEX audit_session ON audit(session, seq);
CREATE INDEX audit_kind ON audit(kind, seq);
CREATE TABLE audit_path(path TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(path, seq)) WITHOUT ROWID;
CREATE TABLE approval(id TEXT PRIMARY KEY, agent TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL,
    arguments TEXT NOT NULL, digest TEXT NOT NULL, revision TEXT NOT NULL, rule TEXT, state TEXT NOT NULL,
    scope TEXT, pattern TEXT, until REAL, reason TEXT, decided_by TEXT, asked REAL NOT NULL, decided REAL,
    request TEXT NOT NULL);
CREATE INDEX approval_call ON approval(session, agent, tool, state);
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


class Cursor(Protocol):
    """What a statement gave."""

    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Database(Protocol):
    """A connection inside a transaction; both kinds of database take the same statements."""

    def execute(self, sql: str, values: Any = ..., /) -> Cursor: ...
    def executemany(self, sql: str, values: Any, /) -> Cursor: ...


class State(Protocol):
    """What is kept of one workspace, and the sign that this process is alive.

    Every method raises CallError `history_unavailable` when the state cannot be used.
    """

    key: bytes | None  # what audit records are sealed with
    interrupted: bool  # whether a process that had it open before has ended without closing it
    is_new: bool  # whether it was made when it was opened

    @property
    def owner(self) -> str:
        """What names this process in the intents that it has open."""

    @property
    def folder(self) -> str | None:
        """The directory of this machine in which something is kept for it."""

    @property
    def archive(self) -> Segments | None:
        """Where the oldest audit records are packed; None where all stay in their table."""

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Database]:
        """A write transaction, the only one at its time; a durable one is on the disk when it ends."""

    def insert(self, db: Database, sql: str, values: tuple[Any, ...]) -> int:
        """Add a row, in a transaction; gives the number (`id`) that the database gave it."""

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]: ...

    def give_back(self, pages: int) -> None:
        """Return up to so many free pages to the disk, where the database does not do so by itself."""

    def give_back_all(self) -> None:
        """Return all free pages, in one go."""

    def dead(self, owner: str) -> bool:
        """Whether the process that `owner` names is gone, so that its intents are to be settled."""

    def check(self) -> None:
        """Refuse when this is not the state that was opened, or others may take this process for dead by now:
        it must change nothing more."""

    def close(self) -> None: ...


def identify(db: Database) -> str:
    """The id that tells this state from every other one; given to it when it is first asked for."""
    known = "SELECT value FROM meta WHERE name = 'id'"
    found = db.execute(known).fetchone()
    if found is None:
        fresh = "INSERT INTO meta VALUES('id', ?) ON CONFLICT(name) DO NOTHING"
        db.execute(fresh, (secrets.token_hex(16),))
        found = db.execute(known).fetchone()
    return str(found[0])
