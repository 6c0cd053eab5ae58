"""Read-only state: for history on a copy, on a read-only mount, or beside running processes.

Creates no file and no directory, and takes no lock that a writer waits for.
"""

from __future__ import annotations

import os
import threading
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.state.audit_segments import FileSegments, Segments
from ringfence.toolkit.state.errors import no_state, unavailable, wrong
from ringfence.toolkit.state.files import DATABASE, LOG
from ringfence.toolkit.state.process_locks import is_dead, living
from ringfence.toolkit.state.protocol import MEMORY, SHARED, VERSION, Database, State

if TYPE_CHECKING:
    import sqlite3

_WAIT = 30.0
# How to open a database: the parameters of its URI, and whether the log is read without an index in a file.
_OpenMode = tuple[str, bool]
_LIVE: _OpenMode = ("mode=ro", False)
# Nobody has it open: a log needs an index, which is made in memory alone where nothing is locked.
_LEFT: _OpenMode = ("mode=ro&vfs=unix-none", True)
_WHOLE: _OpenMode = ("mode=ro&immutable=1", False)


def open_to_read(place: str, key: bytes | None = None) -> State:
    """Open the state at a place from `default_place`. CallError `not_found` where there is none."""
    if place.startswith(SHARED):
        from ringfence.toolkit.state.postgres import PostgresState

        return PostgresState(place, key, make=False)
    if place == MEMORY or not os.path.isdir(place) or not os.listdir(place):
        raise no_state()
    return ReadState(place, key)


class ReadState:
    """The database of one workspace in a directory, only for reading.

    Methods that would change something raise CallError or do nothing.
    """

    def __init__(self, place: str, key: bytes | None = None) -> None:
        self.key = key
        self.folder: str | None = place
        self.archive: Segments | None = FileSegments(os.path.join(place, "audit"))
        self.owner = ""
        self.is_new = False
        self.interrupted = False  # remains of an earlier version are left to a writer
        self._place = place
        self._lock = threading.RLock()
        self._mode = _LIVE
        self._seen: list[tuple[int, int, int]] = []
        if not os.path.exists(os.path.join(place, DATABASE)):
            raise wrong("missing")
        if not os.path.getsize(os.path.join(place, DATABASE)):
            raise wrong("emptied")
        self._db = self._open()

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query. CallError `history_unavailable`."""
        import sqlite3

        with self._lock:
            try:
                if self._mode != _LIVE and self._seen != self._fingerprint():
                    self._db.close()  # another process has written since
                    self._db = self._open()
                return self._db.execute(sql, values).fetchall()
            except sqlite3.Error as error:
                raise unavailable(error) from None

    def dead(self, owner: str) -> bool:
        """Whether the process that `owner` names is gone."""
        return not owner or is_dead(os.path.join(self._place, "owners"), owner) is not False

    def transaction(self, *, durable: bool = False) -> AbstractContextManager[Database]:
        """Raise CallError `history_unavailable`: this state is only read."""
        raise wrong("read-only")

    def vacuum(self, pages: int) -> None:
        """Raise CallError `history_unavailable`: this state is only read."""
        raise wrong("read-only")

    def vacuum_all(self) -> None:
        """Raise CallError `history_unavailable`: this state is only read."""
        raise wrong("read-only")

    def insert(self, db: Database, sql: str, values: tuple[Any, ...]) -> int:
        """Raise CallError `history_unavailable`: this state is only read."""
        raise wrong("read-only")

    def check(self) -> None:
        """Raise CallError `history_unavailable`: this state is only read."""
        raise wrong("read-only")

    def _fingerprint(self) -> list[tuple[int, int, int]]:
        """Return a fingerprint of the files, which changes with every write."""
        found = []
        for name in (DATABASE, LOG, "owners"):
            with suppress(FileNotFoundError):
                info = os.stat(os.path.join(self._place, name))
                found.append((info.st_ino, info.st_size, info.st_mtime_ns))
        return found

    def _modes(self) -> tuple[_OpenMode, ...]:
        """Return the modes in which the files as they are now can be opened, the best first."""
        log = os.path.join(self._place, LOG)
        whole = not os.path.exists(log) or not os.path.getsize(log)
        if living(os.path.join(self._place, "owners")):
            return (_LIVE, _WHOLE) if whole else (_LIVE, _LEFT)
        return (_WHOLE,) if whole else (_LEFT, _LIVE)

    def _open(self) -> sqlite3.Connection:
        import sqlite3

        failed: sqlite3.Error | None = None
        self._seen = self._fingerprint()
        for mode in self._modes():
            try:
                db = _connected(os.path.join(self._place, DATABASE), mode)
            except sqlite3.Error as error:
                failed = failed or error
                continue
            self._mode = mode
            return db
        assert failed is not None
        raise unavailable(failed)


def _connected(file: str, mode: _OpenMode) -> sqlite3.Connection:
    import sqlite3

    parameters, alone = mode
    db = sqlite3.connect(
        f"file:{quote(file)}?{parameters}",
        uri=True,
        timeout=_WAIT,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        if alone:
            db.execute("PRAGMA locking_mode=EXCLUSIVE")
        (found,) = db.execute("PRAGMA user_version").fetchone()
        if found > VERSION:
            from ringfence.toolkit.state.migrations import newer

            raise newer(found, VERSION)
        if found != VERSION:
            raise CallError(
                "history_unavailable",
                f"The state is of an older version (schema {found}, this one reads {VERSION})",
                hint="begin a session once where the state, or a copy of it, can be written to",
            )
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except BaseException:
        db.close()
        raise
    return db
