"""State in SQLite, outside the workspace: one database for history, approvals and audit.

One write transaction at a time, durable or lazy. `toolkit.state.postgres` is the same in PostgreSQL.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.private_files import private_directory
from ringfence.toolkit.state.audit_segments import FileSegments
from ringfence.toolkit.state.errors import unavailable, wrong
from ringfence.toolkit.state.files import DATABASE, OpenedFiles, Owning, make_database, write_owning
from ringfence.toolkit.state.process_locks import Owner
from ringfence.toolkit.state.protocol import MEMORY, SCHEMA, VERSION, Database, identify

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

# Moving the log into the database waits for the disk. After so many transactions a thread begins with it, for
# which no call waits; where the log has so many pages all the same (of 4 KiB), a call moves what is left.
# A log that begins anew often stays short, and is written where its file has blocks already: for a file that
# grows each commit waits for the file system's journal too.
_OFTEN, _WAL = 128, 8_000
_WAIT = 30.0  # seconds another process may hold the write lock before a call gives up


class SqliteState:
    """The database of one workspace in a directory or in memory, with the lock of this process."""

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
        self._durable: bool | None = None  # the connection's present setting
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
        """Close the database and release the lock of this process."""
        if self._moving is not None:
            self._moving.join()
        self.db.close()
        if self._owner is not None:
            self._owner.close()

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[sqlite3.Connection]:
        """Open a write transaction; a durable one is on disk when it ends, a lazy one soon after."""
        return _Transaction(self._begin, self._end, durable)

    def _begin(self, durable: bool) -> sqlite3.Connection:
        self._lock.acquire()
        try:
            self.check()
            if durable is not self._durable:
                self._set_durability(durable)
            self.db.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            import sqlite3

            self._lock.release()
            if isinstance(error, sqlite3.Error):
                raise unavailable(error) from None
            raise
        return self.db

    def _end(self, error: BaseException | None) -> None:
        try:
            failed = None
            if error is None:
                try:
                    self.db.execute("COMMIT")
                    self._commits += 1
                    return
                except BaseException as at_the_end:  # noqa: BLE001  rolled back, then raised again
                    error = failed = at_the_end
            import sqlite3

            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.IntegrityError):
                raise unavailable(error) from None
            if failed is not None:
                raise failed
        finally:
            if self._commits >= _OFTEN and self.folder is not None:
                self._begin_moving()
            self._lock.release()

    def _set_durability(self, durable: bool) -> None:
        self._durable = None  # unknown until it is set
        self.db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
        self._durable = durable

    def _begin_moving(self) -> None:
        self._commits = 0
        if self._moving is None or not self._moving.is_alive():
            moving = threading.Thread(target=self._move_log, name="ringfence-log", daemon=True)
            with suppress(RuntimeError):  # no thread could be started; the commit stands all the same
                moving.start()
                self._moving = moving

    def _move_log(self) -> None:
        """Checkpoint the write-ahead log into the database; writers go on meanwhile."""
        import sqlite3

        assert self.folder is not None, "only a file has a log"
        with suppress(sqlite3.Error):  # the rest is moved the next time
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
        """Add a row in a transaction; returns its new `id`."""
        # Asking for it in the statement itself (RETURNING) makes that half as long again.
        return int(db.execute(sql, values).lastrowid)  # type: ignore[attr-defined]

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query. CallError `history_unavailable`."""
        import sqlite3

        with self._lock:
            try:
                return self.db.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise unavailable(error) from None

    def vacuum(self, pages: int) -> None:
        """Return up to `pages` free pages to the disk, if the database was created with that ability."""
        import sqlite3

        with self._lock:
            try:
                # Not `execute`, which would take the first step of the statement only: one page.
                self.db.executescript(f"PRAGMA incremental_vacuum({pages})")
            except sqlite3.Error as error:
                raise unavailable(error) from None

    def vacuum_all(self) -> None:
        """Return all free pages; a database of an earlier version can return parts from then on."""
        with suppress(CallError):  # another process is busy, or the disk is full: free pages are used again
            self.rows("PRAGMA auto_vacuum = INCREMENTAL")  # takes effect with the next statement
            self.rows("VACUUM")
        with suppress(CallError):
            self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def dead(self, owner: str) -> bool:
        """Whether the process that `owner` names is gone; the kernel released its lock, however it ended."""
        if not owner:
            return True  # left open by a running process that does not know its outcome
        return self._owner is not None and self._owner.dead(owner) is not False

    def check(self) -> None:
        """Raise CallError `history_unavailable` if the files are not the opened ones, or after a fork."""
        # The kernel holds the lock, so nobody treats this process as dead while it runs.
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
        """Distinguish a database that was vacuumed from one that was truncated."""
        import sqlite3

        assert self._files is not None
        with self._lock:
            try:
                self.db.execute("PRAGMA shrink_memory")  # the remembered state of the file is useless
                (found,) = self.db.execute("PRAGMA quick_check(1)").fetchone()
            except sqlite3.Error:
                found = "not to be read"
            if found != "ok":
                raise wrong("truncated")
            self._files.is_shorter()

    def _keep_log(self) -> None:
        """Use a write-ahead log; while others create or remove theirs, SQLite fails instead of waiting."""
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
    """Create a new database. Until it has its name nobody uses it, and an incomplete one is discarded."""
    import sqlite3

    db = sqlite3.connect(file, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode=OFF")
        db.execute("PRAGMA auto_vacuum=INCREMENTAL")  # before its first page: so free pages go back in parts
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


class _Transaction:
    # A generator of contextlib costs as much as a statement or two.
    __slots__ = ("_begin", "_durable", "_end")

    def __init__(
        self,
        begin: Callable[[bool], sqlite3.Connection],
        end: Callable[[BaseException | None], None],
        durable: bool,
    ) -> None:
        self._begin, self._end, self._durable = begin, end, durable

    def __enter__(self) -> sqlite3.Connection:
        return self._begin(self._durable)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._end(error)
