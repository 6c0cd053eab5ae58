"""Protocol of a state, and the tables of every kind of state.

Implemented for SQLite in `toolkit.state.sqlite`, for PostgreSQL in `toolkit.state.postgres`.
"""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ringfence.toolkit.state.audit_segments import Segments

VERSION = 8  # `toolkit.state.migrations` upgrades older ones


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
    minute INTEGER, PRIMARY KEY(op, action)) WITHOUT ROWID;
CREATE TABLE spent(session TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL, action TEXT NOT NULL,
    files INTEGER NOT NULL, bytes INTEGER NOT NULL, op INTEGER NOT NULL,
    PRIMARY KEY(session, agent, tool, action)) WITHOUT ROWID;
CREATE TABLE read_total(session TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL,
    files INTEGER NOT NULL, bytes INTEGER NOT NULL, used INTEGER NOT NULL, PRIMARY KEY(session, agent, tool))
    WITHOUT ROWID;
CREATE TABLE recent(agent TEXT NOT NULL, tool TEXT NOT NULL, action TEXT NOT NULL, minute INTEGER NOT NULL,
    files INTEGER NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY(agent, tool, action, minute)) WITHOUT ROWID;
CREATE INDEX recent_minute ON recent(minute);
CREATE TABLE seen(session TEXT NOT NULL, path TEXT NOT NULL, digest TEXT NOT NULL, at REAL,
    PRIMARY KEY(session, path)) WITHOUT ROWID;
CREATE TABLE audit(seq INTEGER PRIMARY KEY, body TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL,
    time REAL, session TEXT, kind TEXT, path TEXT);
CREATE TABLE audit_part(last INTEGER PRIMARY KEY, first INTEGER NOT NULL, since REAL, until REAL);
CREATE TABLE audit_session(session TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(session, seq))
    WITHOUT ROWID;
CREATE TABLE audit_kind(kind TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(kind, seq)) WITHOUT ROWID;
CREATE TABLE audit_path(path TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(path, seq)) WITHOUT ROWID;
CREATE TABLE approval(id TEXT PRIMARY KEY, agent TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL,
    arguments TEXT NOT NULL, digest TEXT NOT NULL, revision TEXT NOT NULL, rule TEXT, state TEXT NOT NULL,
    scope TEXT, pattern TEXT, until REAL, reason TEXT, decided_by TEXT, asked REAL NOT NULL, decided REAL,
    request TEXT NOT NULL);
CREATE INDEX approval_call ON approval(session, agent, tool, state);
CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE unsynced(op INTEGER NOT NULL, boot TEXT NOT NULL, root TEXT NOT NULL, umask INTEGER NOT NULL,
    PRIMARY KEY(op));
"""


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> list[Any]:
        """Return all remaining rows."""


class Database(Protocol):
    """A connection inside a transaction; both kinds of database accept the same statements."""

    def execute(self, sql: str, values: Any = ..., /) -> Cursor:
        """Run one statement with its values, one for each `?`."""

    def executemany(self, sql: str, values: Any, /) -> Cursor:
        """Run one statement for each of several rows of values."""


class State(Protocol):
    """The database of one workspace, and the proof that this process is running.

    Every method raises CallError `history_unavailable` when the state cannot be used.
    """

    key: bytes | None  # the key that seals audit records
    interrupted: bool  # whether an earlier process ended without closing the state
    is_new: bool  # whether opening created the state

    @property
    def owner(self) -> str:
        """The id of this process in its open intents."""

    @property
    def folder(self) -> str | None:
        """The directory of this machine with the state's files; None without one."""

    @property
    def archive(self) -> Segments | None:
        """The segments with the oldest audit records; None where all records stay in their table."""

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Database]:
        """Open the only write transaction.

        A durable one is on disk when its block ends, a lazy one soon after.
        """

    def insert(self, db: Database, sql: str, values: tuple[Any, ...]) -> int:
        """Add a row in a transaction; returns the `id` that the database assigned."""

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query, outside of any transaction."""

    def vacuum(self, pages: int) -> None:
        """Return up to `pages` free pages to the disk, where the database does not do so by itself."""

    def vacuum_all(self) -> None:
        """Return all free pages to the disk at once."""

    def dead(self, owner: str) -> bool:
        """Whether the process that `owner` names is gone, so that its intents need recovery."""

    def check(self) -> None:
        """Raise CallError when this is not the opened state, or others may treat this process as dead.

        The process must change nothing after that.
        """

    def close(self) -> None:
        """Release the lock of this process and the connection."""


def identify(db: Database) -> str:
    """Return the id that distinguishes this state from all others; it is assigned on first use."""
    known = "SELECT value FROM meta WHERE name = 'id'"
    found = db.execute(known).fetchone()
    if found is None:
        fresh = "INSERT INTO meta VALUES('id', ?) ON CONFLICT(name) DO NOTHING"
        db.execute(fresh, (secrets.token_hex(16),))
        found = db.execute(known).fetchone()
    return str(found[0])
