"""The state kept for a workspace, outside it: one SQLite database for history, approvals and audit.

Opens it, upgrades nothing silently, and gives transactions that are durable or lazy.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from toolkit.errors import CallError

if TYPE_CHECKING:
    import sqlite3

VERSION = 2  # `toolkit.upgrade` knows the way from each older one
MEMORY = ":memory:"
_WAIT = 30.0  # seconds another process may hold the write lock before a call gives up
_SCHEMA = """
CREATE TABLE blob(hash TEXT PRIMARY KEY, size INTEGER NOT NULL, packed INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE op(id INTEGER PRIMARY KEY AUTOINCREMENT, call TEXT NOT NULL, given TEXT, session TEXT NOT NULL,
    owner TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL, started REAL NOT NULL, state TEXT NOT NULL,
    durable INTEGER NOT NULL, reason TEXT, undoes TEXT);
CREATE INDEX op_call ON op(call);
CREATE INDEX op_session ON op(session, id);
CREATE INDEX op_pending ON op(owner) WHERE state = 'pending';
CREATE TABLE item(op INTEGER NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL, path2 TEXT,
    type TEXT NOT NULL, before TEXT, after TEXT, mode INTEGER, target TEXT, size INTEGER, grown INTEGER,
    identity TEXT, temporary TEXT, state TEXT NOT NULL, PRIMARY KEY(op, n));
CREATE INDEX item_path ON item(path, op);
CREATE INDEX item_path2 ON item(path2, op) WHERE path2 IS NOT NULL;
CREATE INDEX item_busy ON item(path) WHERE state = 'pending';
CREATE INDEX item_before ON item(before) WHERE kind = 'delete';
CREATE TABLE caught(name TEXT PRIMARY KEY, op INTEGER NOT NULL, path TEXT NOT NULL);
CREATE TABLE usage(op INTEGER NOT NULL, action TEXT NOT NULL, files INTEGER NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY(op, action)) WITHOUT ROWID;
CREATE TABLE seen(session TEXT NOT NULL, path TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY(session, path))
    WITHOUT ROWID;
CREATE TABLE audit(seq INTEGER PRIMARY KEY, body TEXT NOT NULL, prev TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TABLE approval(id TEXT PRIMARY KEY, agent TEXT NOT NULL, session TEXT NOT NULL, tool TEXT NOT NULL,
    arguments TEXT NOT NULL, digest TEXT NOT NULL, revision TEXT NOT NULL, rule TEXT, state TEXT NOT NULL,
    scope TEXT, pattern TEXT, until REAL, reason TEXT, decided_by TEXT, asked REAL NOT NULL, decided REAL,
    request TEXT NOT NULL);
CREATE INDEX approval_call ON approval(session, agent, tool, state);
"""


class State:
    """One workspace's database, and the lock that shows this process is alive.

    `place` is a directory or ":memory:". Raises CallError `history_unavailable` when it cannot be used.
    """

    def __init__(self, place: str) -> None:
        import sqlite3

        self.place = place
        self.owner = secrets.token_hex(8)
        self._held = -1
        self._lock = threading.RLock()
        try:
            if place != MEMORY:
                os.makedirs(os.path.join(place, "owners"), mode=0o700, exist_ok=True)
                self._held = self._hold()
                self._sweep_owners()
            self.db: sqlite3.Connection = sqlite3.connect(
                MEMORY if place == MEMORY else os.path.join(place, "state.db"),
                timeout=_WAIT,
                isolation_level=None,
                check_same_thread=False,
            )
            self._open()
        except (OSError, sqlite3.Error) as error:
            raise unavailable(error) from None

    def close(self) -> None:
        self.db.close()
        if self._held >= 0:
            os.unlink(self._owner_file(self.owner))
            os.close(self._held)
            self._held = -1

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sqlite3.Connection]:
        """A write transaction; a durable one is on the disk when it ends, a lazy one soon after."""
        import sqlite3

        with self._lock:
            try:
                self.db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
                self.db.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                raise unavailable(error) from None
            try:
                yield self.db
                self.db.execute("COMMIT")
            except BaseException as error:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.IntegrityError):
                    raise unavailable(error) from None
                raise

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        import sqlite3

        with self._lock:
            try:
                return self.db.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise unavailable(error) from None

    def dead(self, owner: str) -> bool:
        """Whether the process that `owner` names is gone; its lock goes with it, however it ended."""
        if not owner:
            return True  # left open by a process that lives on and does not know what became of it
        if owner == self.owner or self.place == MEMORY:
            return False
        import fcntl

        try:
            fd = os.open(self._owner_file(owner), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            # Shared, so that two who look at once do not take each other for the owner.
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            return False
        finally:
            os.close(fd)

    def _hold(self) -> int:
        import fcntl

        while True:
            fd = os.open(self._owner_file(self.owner), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink:
                return fd
            os.close(fd)  # swept by another process before it was locked

    def _sweep_owners(self) -> None:
        """Remove the files of owners that are gone; a missing file says the same."""
        for owner in os.listdir(os.path.join(self.place, "owners")):
            if owner != self.owner and self.dead(owner):
                try:
                    os.unlink(self._owner_file(owner))
                except FileNotFoundError:
                    pass

    def _owner_file(self, owner: str) -> str:
        return os.path.join(self.place, "owners", owner)

    def _open(self) -> None:
        self.db.execute("PRAGMA journal_mode=WAL")
        (found,) = self.db.execute("PRAGMA user_version").fetchone()
        if found == 0:
            self.db.execute("BEGIN IMMEDIATE")
            # Another process may have made the tables while this one waited for the lock.
            if self.db.execute("PRAGMA user_version").fetchone() == (0,):
                for statement in _SCHEMA.split(";\n"):
                    self.db.execute(statement)
                self.db.execute(f"PRAGMA user_version={VERSION}")
            self.db.execute("COMMIT")
        elif found != VERSION:
            from toolkit.upgrade import upgrade

            upgrade(self.db, None if self.place == MEMORY else os.path.join(self.place, "state.db"), VERSION)


def unavailable(error: Exception) -> CallError:
    """The answer when state cannot be kept; the text names no host path."""
    reason = getattr(error, "strerror", None) or str(error)
    return CallError("history_unavailable", f"The history cannot be used ({reason}), so nothing was changed")


def default_place(url: str, state: str | None) -> str:
    """Where the state of the workspace `url` is kept: below `state`, or the user's state directory."""
    import hashlib

    if state == MEMORY:
        return MEMORY
    if state is None:
        import platformdirs

        state = platformdirs.user_state_dir("ringfence")
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in url.rstrip("/").rpartition("/")[2])[:40]
    return os.path.join(
        os.path.abspath(state), f"{name or 'root'}-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
    )
