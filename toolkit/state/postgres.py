"""State in PostgreSQL, shared by several machines: a schema for each workspace, tables as in SQLite.

One write transaction at a time per workspace, as in SQLite. Never treats another machine's process as dead
before its lease has expired, and makes no change under an own lease that may have expired.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.private_files import private_directory
from ringfence.toolkit.state.audit_segments import Segments, TableSegments
from ringfence.toolkit.state.errors import (
    database_unavailable,
    log_former_state,
    no_state,
    unavailable,
    why_unreachable,
    wrong,
)
from ringfence.toolkit.state.machine_identity import kernel_identity
from ringfence.toolkit.state.postgres_schema import Statements, index_paths, make_schema, upgrade_schema
from ringfence.toolkit.state.postgres_url import redacted, secret_parts
from ringfence.toolkit.state.process_locks import Owner
from ringfence.toolkit.state.protocol import VERSION, identify
from ringfence.toolkit.state.schema_ownership import check_schema

if TYPE_CHECKING:
    import psycopg

    from ringfence.toolkit.state.protocol import Database

LEASE = 60.0  # seconds after its last heartbeat in which a process counts as alive everywhere
_BEAT = 15.0  # seconds between two heartbeats
_FREE = 1.0  # seconds in which a heartbeat waits for the session's own connection
_TRUSTED = 40.0  # seconds after our own last heartbeat in which we may change something; less than the lease
_SETTINGS = (
    # Bounded waits: for the write lock, and for a process that stopped while holding it.
    "SET lock_timeout = '30s'",
    "SET idle_in_transaction_session_timeout = '60s'",
)
_BEATS = "UPDATE owner SET beat = clock_timestamp() WHERE id = %s"
_NOT_THERE = ("42P01", "3F000")  # a table, a schema
_log = logging.getLogger("ringfence")
_NOWHERE = logging.NullHandler()


class PostgresState:
    """The state of one workspace; `place` is a URL and, after the `#`, the name of the schema."""

    def __init__(
        self, place: str, key: bytes | None = None, former: str | None = None, *, make: bool = True
    ) -> None:
        self.key = key
        self.is_new = False
        self.id = ""
        self._make = make
        self.archive: Segments | None = TableSegments(self)
        self._url, _, self._schema = place.rpartition("#")
        self._former = former and former.rpartition("#")[2]
        self.folder: str | None = _locks(self._schema)
        self._lock = threading.RLock()
        self._beating: threading.Thread | None = None
        self._closing = threading.Event()
        self._owner: Owner | None = None
        self.interrupted = False  # nothing is kept outside the database
        self._beaten = 0.0
        self._lost = False
        self._out = False  # whether the unreachable database was logged already
        turn = hashlib.sha256(self._schema.encode()).digest()[:8]
        self._turn = int.from_bytes(turn, "big", signed=True)
        self._secrets: tuple[str, ...] = ()
        with self._errors():
            self._secrets = secret_parts(self._url)
            self._kernel = kernel_identity()
            self._connection = self._connect()
            try:
                self._open()
                self._new_owner()
                self._sweep_owners()
            except BaseException:
                self.close()
                raise

    @property
    def owner(self) -> str:
        """The id of this process in its open intents."""
        return self._owner.name if self._owner is not None else ""

    def close(self) -> None:
        """End the lease and the connections."""
        self._closing.set()
        if self._beating is not None:
            self._beating.join()
        with suppress(CallError), self._errors():
            if not self._connection.closed:
                self._forget_owner()
        self._connection.close()
        if self._owner is not None:
            # The row stays; an unlocked lock file shows this machine that its process is gone.
            self._owner.release()
            self._owner = None

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[Statements]:
        """Open the only write transaction of the workspace; waits for others.

        CallError `history_unavailable`.
        """
        with self._lock, self._errors():
            self._check_process()
            self._renew()
            db = self._connection
            if durable:
                self._keep_beating()
            try:
                # In one request, because others wait for the lock meanwhile.
                # Without waiting for the disk, a server crash would lose a change already reported as made.
                wait = " SET LOCAL synchronous_commit = on;" if durable else ""
                turn = db.execute(
                    f"BEGIN;{wait} SELECT pg_advisory_xact_lock({self._turn});"
                    f" SELECT value FROM {self._schema}.meta WHERE name = 'id'"
                )
                self._check_id(turn)
                yield Statements(db)
                db.execute("COMMIT")
                self._out = False
            except BaseException:
                with suppress(Exception):
                    db.execute("ROLLBACK")
                raise

    def _check_id(self, turn: psycopg.Cursor[Any]) -> None:
        """Refuse a schema that was dropped and created again since it was opened."""
        while turn.nextset():
            pass
        found = turn.fetchone()
        if found is None or found[0] != self.id:
            raise wrong("replaced")

    def insert(self, db: Database, sql: str, values: tuple[Any, ...]) -> int:
        """Add a row in a transaction; returns its new `id`."""
        return int(db.execute(f"{sql} RETURNING id", values).fetchone()[0])

    def rows(self, sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query, outside of any transaction. CallError `history_unavailable`."""
        with self._lock, self._errors():
            self._check_process()
            if self._connection.closed:
                self._renew()
            found = Statements(self._connection).execute(sql, values).fetchall()
            self._out = False
            return found

    def vacuum(self, pages: int) -> None:
        """Do nothing: PostgreSQL's autovacuum reuses free space and truncates tables."""

    def vacuum_all(self) -> None:
        """Do nothing: returning more locks the tables and is left to the administrator."""

    def dead(self, owner: str) -> bool:
        """Whether the process that `owner` names is gone or its lease has expired."""
        if not owner:
            return True  # left open by a running process that does not know its outcome
        assert self._owner is not None
        here = self._owner.dead(owner)
        if here is not None:
            return here
        late = "SELECT beat < clock_timestamp() - make_interval(secs => ?) FROM owner WHERE id = ?"
        found = self.rows(late, (LEASE, owner))
        return not found or bool(found[0][0])

    def check(self) -> None:
        """Raise CallError `history_unavailable` if the state was replaced, or our lease may have expired."""
        self._check_process()
        if self._lost or _now() - self._beaten > _TRUSTED:
            raise CallError(
                "history_unavailable",
                "The shared history has not responded for too long, so nothing more was changed",
                hint="send the call again when the database can be reached",
            )

    # ------------------------------------------------------------------- inside

    def _check_process(self) -> None:
        """Refuse in a forked child, whose traffic on its parent's connection would break it."""
        if self._owner is not None:
            self._owner.check()

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg

        # The library would print a lost connection on stderr; we report it ourselves.
        logging.getLogger("psycopg").addHandler(_NOWHERE)
        db = psycopg.connect(self._url, autocommit=True, connect_timeout=10, application_name="ringfence")
        try:
            for setting in (*_SETTINGS, f"SET search_path = {self._schema}"):
                db.execute(setting)
            check_schema(db, self._schema)
        except BaseException:
            db.close()
            raise
        return db

    def _open(self) -> None:
        db = self._connection
        with db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(%s)", (self._turn,))
            if db.execute("SELECT to_regclass(%s)", (f"{self._schema}.version",)).fetchone() == (None,):
                if not self._make:
                    raise no_state()
                self.is_new = True
                make_schema(db, self._schema)
                if self._former and db.execute(
                    "SELECT to_regclass(%s)", (f"{self._former}.version",)
                ).fetchone() != (None,):
                    log_former_state(f"the schema {self._former}")
            (found,) = db.execute("SELECT number FROM version").fetchone() or (0,)
            if found != VERSION:
                upgrade_schema(db, self._schema, found)
            index_paths(db, self._schema)
            self.id = identify(Statements(db))

    def _renew(self) -> None:
        """Reconnect after the connection was lost; its former owner is dead for others, and so for us."""
        if self._connection.closed:
            self._connection = self._connect()
            self._lost = True
        if self._lost:
            self._forget_owner()
            self._new_owner()

    def _forget_owner(self) -> None:
        """Delete the row first: while the lock file exists, this machine's other processes know better."""
        if self._owner is not None:
            self._connection.execute("DELETE FROM owner WHERE id = %s", (self.owner,))
            self._owner.close()
            self._owner = None

    def _new_owner(self) -> None:
        assert self.folder is not None
        private_directory(os.path.dirname(self.folder))
        self._owner = Owner(self.folder, self._kernel)
        row = (self._owner.name, socket.gethostname(), self._kernel, os.getpid())
        started = _now()
        self._connection.execute("INSERT INTO owner VALUES(%s, %s, %s, %s, clock_timestamp())", row)
        self._beaten, self._lost = started, False

    def _sweep_owners(self) -> None:
        """Delete this machine's owners that are gone, and owners without a heartbeat for long."""
        assert self._owner is not None
        for owner in self._owner.gone():
            # The row first: while the file is there the others of this machine know better.
            self._connection.execute("DELETE FROM owner WHERE id = %s", (owner,))
            self._owner.forget(owner)
        late = "DELETE FROM owner WHERE beat < clock_timestamp() - make_interval(secs => %s)"
        self._connection.execute(late, (LEASE * 10,))

    def _keep_beating(self) -> None:
        """Start the heartbeat; only a process that is about to change something starts it."""
        if _now() - self._beaten > _BEAT:
            self._beat(self._connection)
        if self._beating is None:
            self._beating = threading.Thread(target=self._beats, name="ringfence-lease", daemon=True)
            self._beating.start()

    def _beats(self) -> None:
        while not self._closing.wait(_BEAT):
            try:
                self._beat_beside()
            except Exception as error:  # noqa: BLE001  the thread must go on; the error is logged
                self._warn("no heartbeat was written to the shared history", error)

    def _beat_beside(self) -> None:
        """Write a heartbeat on the session's connection; while a call has that, on one for this heartbeat.

        A second connection that stays would halve the sessions that a database has room for.
        """
        if self._lock.acquire(timeout=_FREE):
            try:
                if not self._connection.closed:
                    self._beat(self._connection)
                    return
            finally:
                self._lock.release()
        with closing(self._connect()) as db:
            self._beat(db)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except CallError:
            raise
        except OSError as error:
            raise unavailable(error) from None
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "psycopg":
                raise
            # The server's message may name hosts and databases, which an agent must not see.
            self._warn("the shared history cannot be used", error)
            what = getattr(error, "sqlstate", None) or type(error).__name__
            if what in _NOT_THERE and self.id:
                raise wrong("removed") from None
            raise database_unavailable(what, getattr(error, "sqlstate", None)) from None

    def _warn(self, what: str, error: Exception) -> None:
        """Log a warning; an unreachable database is logged once, until it answers again."""
        from psycopg import OperationalError

        operational = isinstance(error, OperationalError)
        unreachable = operational and (getattr(error, "sqlstate", None) or "08")[:2] in (
            "08",
            "28",
            "3D",
            "57",
        )
        if not (operational and self._out):
            _log.warning(
                "%s: %s",
                what,
                why_unreachable(str(error)) if unreachable else redacted(str(error), self._secrets),
            )
        _log.debug("%s: %s", what, redacted(str(error), self._secrets))
        self._out = self._out or operational

    def _beat(self, connection: psycopg.Connection[Any]) -> None:
        owner, started = self.owner, _now()
        found = connection.execute(_BEATS, (owner,)).rowcount
        if owner == self.owner:
            # No row: others treated this process as dead, and may have recovered its intents.
            self._lost = self._lost or found == 0
            self._beaten = started


def _locks(schema: str) -> str:
    import platformdirs

    return os.path.join(platformdirs.user_state_dir("ringfence"), f"shared-{schema}", "owners")


def _now() -> float:
    """Return seconds of a clock that runs while the machine sleeps, as the lease does."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
