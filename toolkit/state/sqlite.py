"""The state kept for a workspace, outside it: one database for history, approvals and audit.

In SQLite here, in PostgreSQL by `ringfence.toolkit.state.postgres`. Write transactions are durable or lazy, one at a time.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import FILE, StoragePlace, shown
from ringfence.toolkit.private_files import private_directory
from ringfence.toolkit.state.audit_segments import FileSegments, Segments
from ringfence.toolkit.state.errors import unavailable, wrong
from ringfence.toolkit.state.files import DATABASE, OpenedFiles, Owning, make_database, write_owning
from ringfence.toolkit.state.process_locks import Owner

if TYPE_CHECKING:
    import sqlite3

VERSION = 5  # `ringfence.toolkit.state.migrations` knows the way from each older one
MEMORY = ":memory:"
SHARED = ("postgresql://", "postgres://")
# Moving the log into the database waits for the disk. After so many transactions a thread begins with it, for
# which no call waits; where the log has so many pages all the same (of 4 KiB), a call moves what is left.
_OFTEN, _WAL = 512, 8_000
_WAIT = 30.0  # seconds another process may hold the write lock before a call gives up
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


def open_state(
    place: str, key: bytes | None = None, former: str | None = None, workspace: Owning | None = None
) -> State:
    """The state at a directory, ":memory:", or what `default_place` made of a postgresql:// URL.

    Where it is new, and there is one at `former`, that is logged. `workspace` is whose it is.
    """
    if place.startswith(SHARED):
        from ringfence.toolkit.state.postgres import PostgresState

        return PostgresState(place, key, former)
    if former is not None and os.path.isdir(former) and not os.path.exists(place):
        tell_of_former(former)
    return SqliteState(place, key, workspace)


def tell_of_former(former: str) -> None:
    """Log where the history of this root may be from before places had an identity."""
    import logging  # slow to import, and seldom needed

    logging.getLogger("ringfence").warning(
        "a new history is begun for this workspace: the one that an earlier version kept, in %s, may also be"
        " that of others of the same path (see 'States of earlier versions' in docs/how-to/share-state.md)",
        former,
    )


class SqliteState:
    """One workspace's database in a directory or in memory, and the lock that shows this process is alive."""

    def __init__(self, place: str, key: bytes | None = None, workspace: Owning | None = None) -> None:
        import sqlite3

        self.key = key
        self.is_new = True
        self._files: OpenedFiles | None = None
        self.folder = None if place == MEMORY else place
        self.archive = None if place == MEMORY else FileSegments(os.path.join(place, "audit"))
        self._owner: Owner | None = None
        self.interrupted = False
        self._lock = threading.RLock()
        self._durable: bool | None = None  # what the connection was last told
        self._commits = 0
        self._moving: threading.Thread | None = None
        try:
            if self.folder is not None:
                private_directory(self.folder)
                self.is_new = make_database(self.folder, build_database)  # SQLite gives its log the same mode
                if workspace is not None:
                    write_owning(self.folder, workspace)
                self._owner = Owner(os.path.join(place, "owners"))
                for owner in self._owner.gone():
                    self.interrupted = True
                    self._owner.forget(owner)  # a missing file says the same
            self.owner = self._owner.name if self._owner is not None else secrets.token_hex(8)
            self.db: sqlite3.Connection = sqlite3.connect(
                MEMORY if self.folder is None else os.path.join(place, DATABASE),
                timeout=_WAIT,
                isolation_level=None,
                check_same_thread=False,
            )
            try:
                self._open()
                if self.folder is not None:
                    self._files = OpenedFiles(self.folder)
            except BaseException:
                self.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise unavailable(error) from None

    def close(self) -> None:
        if self._moving is not None:
            self._moving.join()
        self.db.close()
        if self._owner is not None:
            self._owner.close()

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        """A write transaction; a durable one is on the disk when it ends, a lazy one soon after."""
        return _Transaction(self, durable)

    def _begin(self, durable: bool) -> sqlite3.Connection:
        import sqlite3

        self._lock.acquire()
        try:
            self.check()
            self._say(durable)
            self.db.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self._lock.release()
            if isinstance(error, sqlite3.Error):
                raise unavailable(error) from None
            raise
        return self.db

    def _end(self, error: BaseException | None) -> None:
        import sqlite3

        try:
            failed = None
            if error is None:
                try:
                    self.db.execute("COMMIT")
                    self._commits += 1
                    return
                except BaseException as at_the_end:
                    error = failed = at_the_end
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.IntegrityError):
                raise unavailable(error) from None
            if failed is not None:
                raise failed
        finally:
            self._begin_moving()
            self._lock.release()

    def _say(self, durable: bool) -> None:
        if durable is not self._durable:
            self._durable = None  # not known until it is said
            self.db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    def _begin_moving(self) -> None:
        if self._commits < _OFTEN or self.folder is None:
            return
        self._commits = 0
        if self._moving is None or not self._moving.is_alive():
            moving = threading.Thread(target=self._move_log, name="ringfence-log", daemon=True)
            with suppress(RuntimeError):  # no thread to be had; what was committed stands all the same
                moving.start()
                self._moving = moving

    def _move_log(self) -> None:
        """Move what the log holds by now into the database; writers go on meanwhile."""
        import sqlite3

        assert self.folder is not None, "only a file has a log"
        with suppress(sqlite3.Error):  # what is left is moved the next time
            db = sqlite3.connect(os.path.join(self.folder, DATABASE), timeout=1.0)
            try:
                db.execute("PRAGMA user_version").fetchone()  # before it has read, it knows of no log
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                # What was added meanwhile is little: the turn to write is taken for a moment only, and the
                # log begins anew, in place of growing, which costs every call.
                db.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
            finally:
                db.close()

    def insert(self, db: Database, sql: str, values: tuple[Any, ...]) -> int:
        # Asking for it in the statement itself (RETURNING) makes that half as long again.
        return int(db.execute(sql, values).lastrowid)  # type: ignore[attr-defined]

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        import sqlite3

        with self._lock:
            try:
                return self.db.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise unavailable(error) from None

    def give_back(self, pages: int) -> None:
        """Return up to so many free pages of the database to the disk, if it was made so that it can."""
        import sqlite3

        with self._lock:
            try:
                # Not `execute`, which would take the first step of the statement only: one page.
                self.db.executescript(f"PRAGMA incremental_vacuum({pages})")
            except sqlite3.Error as error:
                raise unavailable(error) from None

    def give_back_all(self) -> None:
        """Return all free pages; one made by an earlier version can do so in parts from then on."""
        with suppress(CallError):  # somebody else is at it, or the disk is full: they are used again
            self.rows("PRAGMA auto_vacuum = INCREMENTAL")  # takes effect with the next statement
            self.rows("VACUUM")
        with suppress(CallError):
            self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def dead(self, owner: str) -> bool:
        """Whether the process that `owner` names is gone; its lock goes with it, however it ended."""
        if not owner:
            return True  # left open by a process that lives on and does not know what became of it
        return self._owner is not None and self._owner.dead(owner) is not False

    def check(self) -> None:
        # The lock is the kernel's: while this process lives, nobody takes it for dead.
        if self._owner is not None:
            self._owner.check()
        if self._files is None:
            return
        try:
            if not self._files.check():
                self._check_length()
        except OSError as error:
            raise unavailable(error) from None

    def _check_length(self) -> None:
        """Tell a database that was made smaller from one that was cut off."""
        import sqlite3

        assert self._files is not None
        with self._lock:
            try:
                self.db.execute("PRAGMA shrink_memory")  # what is remembered of the file is of no use
                (found,) = self.db.execute("PRAGMA quick_check(1)").fetchone()
            except sqlite3.Error:
                found = "not to be read"
            if found != "ok":
                raise wrong("truncated")
            self._files.is_shorter()

    def _keep_log(self) -> None:
        """Use a log; where others are just making or removing theirs, SQLite refuses and does not wait."""
        import sqlite3

        until = time.monotonic() + _WAIT
        while True:
            try:
                self.db.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.005)

    def _open(self) -> None:
        self._keep_log()
        self.db.execute(f"PRAGMA wal_autocheckpoint={_WAL}")
        (found,) = self.db.execute("PRAGMA user_version").fetchone()
        if found == 0:  # in memory
            _make_tables(self.db)
        elif found != VERSION:
            from ringfence.toolkit.state.migrations import upgrade

            place = None if self.folder is None else os.path.join(self.folder, DATABASE)
            upgrade(self.db, place, VERSION)
        self.id = identify(self.db)


def build_database(file: str) -> None:
    """A new database. It is nobody's yet: what is left of one that is not whole is thrown away."""
    import sqlite3

    db = sqlite3.connect(file, isolation_level=None)
    try:
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # before its first page: so free pages go back in parts
        db.execute("PRAGMA journal_mode=OFF")
        _make_tables(db)
    finally:
        db.close()


def _make_tables(db: Database) -> None:
    db.execute("BEGIN")
    for statement in SCHEMA.split(";\n"):
        db.execute(statement)
    identify(db)
    db.execute(f"PRAGMA user_version={VERSION}")
    db.execute("COMMIT")


def identify(db: Database) -> str:
    """The id that tells this state from every other one; given to it when it is first asked for."""
    known = "SELECT value FROM meta WHERE name = 'id'"
    found = db.execute(known).fetchone()
    if found is None:
        fresh = "INSERT INTO meta VALUES('id', ?) ON CONFLICT(name) DO NOTHING"
        db.execute(fresh, (secrets.token_hex(16),))
        found = db.execute(known).fetchone()
    return str(found[0])


class _Transaction:
    # A generator of contextlib costs as much as a statement or two.
    __slots__ = ("_durable", "_state")

    def __init__(self, state: SqliteState, durable: bool) -> None:
        self._state, self._durable = state, durable

    def __enter__(self) -> sqlite3.Connection:
        return self._state._begin(self._durable)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._state._end(error)


def default_place(place: StoragePlace, state: str | None) -> str:
    """Where the state of a root is kept: below `state`, or the user's state directory.

    In a shared database it is a schema of its own, named after the `#`. Raises CallError
    `history_unavailable` for a root that does not tell which one it is, and for a URL of no known kind.
    """
    if state == MEMORY:
        return MEMORY
    _check_url(state or "")
    if state is None or not state.startswith(SHARED):
        return _folder(place, place.name, state)
    from ringfence.toolkit.state.machine_identity import machine_identity

    name = place.name
    if "file" in place.protocols and not (place.protocols == FILE and place.authority):
        try:
            name = f"machine {machine_identity()} {name}"  # a path means the same files on one machine only
        except OSError as error:
            raise unavailable(error) from None
    return _schema(name, state)


def former_place(place: StoragePlace, state: str | None) -> str | None:
    """Where an earlier version kept the state of this root, perhaps with others'; None where it still is."""
    if state is None or not state.startswith((MEMORY, *SHARED)):
        return _folder(place, place.former, state) if place.former else None
    if state == MEMORY:
        return None
    if place.protocols == FILE and not place.authority:
        import socket

        return _schema(f"file://{socket.gethostname()}{place.path}", state)
    return _schema(place.former, state) if "://" in place.former else None


def _folder(place: StoragePlace, name: str, state: str | None) -> str:
    if state is None:
        import platformdirs

        state = platformdirs.user_state_dir("ringfence")
    last = (place.path or place.authority or "").rstrip("/").rpartition("/")[2]
    label = "".join(c if c.isalnum() or c in "-_." else "_" for c in last)[:40]
    return os.path.join(os.path.abspath(state), f"{label or 'root'}-{_digest(name)}")


def _schema(name: str, state: str) -> str:
    return f"{state}#ringfence_{_digest(name)}"


def _digest(name: str) -> str:
    import hashlib

    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _check_url(state: str) -> None:
    """Refuse what is meant as a URL and is none of a shared state: it would become a directory's name."""
    if not state.startswith(SHARED) and ("://" in state or state.startswith(("postgresql:", "postgres:"))):
        raise CallError(
            "history_unavailable",
            f"The state {shown(state)} is neither a directory nor a postgresql:// URL",
            hint="give a directory, or postgresql://host/database",
        )
