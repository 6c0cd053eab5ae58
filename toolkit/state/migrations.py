"""Schema migrations: upgrade an older state in place, after making a copy of it.

One transaction per upgrade, so a killed process leaves the old schema or the new one. Never changes a state
that a newer version wrote.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.private_files import private_file
from ringfence.toolkit.state.audit_columns import fill, index_all

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import Database

# Statements that upgrade each version to the next; one statement per row.
STEPS: dict[int, tuple[str, ...]] = {
    1: (
        "CREATE TABLE caught(name TEXT PRIMARY KEY, op INTEGER NOT NULL, path TEXT NOT NULL)",
        "CREATE INDEX item_before ON item(before) WHERE kind = 'delete'",
    ),
    # An open change is found by its operation.
    2: ("DROP INDEX IF EXISTS item_busy",),
    3: (
        "ALTER TABLE item ADD COLUMN metadata TEXT",
        "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL)",
        "ALTER TABLE audit ADD COLUMN time REAL",
        "ALTER TABLE audit ADD COLUMN session TEXT",
        "ALTER TABLE audit ADD COLUMN kind TEXT",
        "CREATE TABLE audit_path(path TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(path, seq))"
        " WITHOUT ROWID",
    ),
    4: (
        "ALTER TABLE seen ADD COLUMN at REAL",
        "CREATE TABLE spent(session TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL,"
        " action TEXT NOT NULL, files INTEGER NOT NULL, bytes INTEGER NOT NULL, op INTEGER NOT NULL,"
        " PRIMARY KEY(session, agent, tool, action)) WITHOUT ROWID",
    ),
    5: (
        "ALTER TABLE usage ADD COLUMN minute INTEGER",
        "CREATE TABLE read_total(session TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL,"
        " files INTEGER NOT NULL, bytes INTEGER NOT NULL, used INTEGER NOT NULL,"
        " PRIMARY KEY(session, agent, tool)) WITHOUT ROWID",
        "CREATE TABLE recent(agent TEXT NOT NULL, tool TEXT NOT NULL, action TEXT NOT NULL,"
        " minute INTEGER NOT NULL, files INTEGER NOT NULL, bytes INTEGER NOT NULL,"
        " PRIMARY KEY(agent, tool, action, minute)) WITHOUT ROWID",
        "CREATE INDEX recent_minute ON recent(minute)",
    ),
    6: (
        "CREATE TABLE unsynced(op INTEGER NOT NULL, boot TEXT NOT NULL, root TEXT NOT NULL,"
        " umask INTEGER NOT NULL, PRIMARY KEY(op))",
    ),
    7: (
        "ALTER TABLE audit ADD COLUMN path TEXT",
        "DROP INDEX audit_time",
        "DROP INDEX audit_session",
        "DROP INDEX audit_kind",
        "CREATE TABLE audit_part(last INTEGER PRIMARY KEY, first INTEGER NOT NULL, since REAL, until REAL)",
        "CREATE TABLE audit_session(session TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(session, seq))"
        " WITHOUT ROWID",
        "CREATE TABLE audit_kind(kind TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY(kind, seq))"
        " WITHOUT ROWID",
    ),
}
# Columns to fill in after the statements of a step, and the statements that follow.
FILL: dict[int, Callable[[Database], None]] = {3: fill, 7: index_all}
LAST: dict[int, tuple[str, ...]] = {
    3: (
        "CREATE INDEX audit_time ON audit(time, seq)",
        "CREATE INDEX audit_session ON audit(session, seq)",
        "CREATE INDEX audit_kind ON audit(kind, seq)",
    ),
}
# And what each step is besides in SQLite, where a table with less around it takes fewer pages a change.
SQLITE: dict[int, tuple[str, ...]] = {
    2: (
        "ALTER TABLE op RENAME TO op_2",
        "CREATE TABLE op(id INTEGER PRIMARY KEY, call TEXT NOT NULL, given TEXT, session TEXT NOT NULL,"
        " owner TEXT NOT NULL, agent TEXT NOT NULL, tool TEXT NOT NULL, started REAL NOT NULL,"
        " state TEXT NOT NULL, durable INTEGER NOT NULL, reason TEXT, undoes TEXT)",
        "INSERT INTO op SELECT * FROM op_2",
        "DROP TABLE op_2",
        "CREATE INDEX op_call ON op(call)",
        "CREATE INDEX op_session ON op(session, id)",
        "CREATE INDEX op_pending ON op(owner) WHERE state = 'pending'",
        "ALTER TABLE item RENAME TO item_2",
        "CREATE TABLE item(op INTEGER NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, path TEXT NOT NULL,"
        " path2 TEXT, type TEXT NOT NULL, before TEXT, after TEXT, mode INTEGER, target TEXT, size INTEGER,"
        " grown INTEGER, identity TEXT, temporary TEXT, state TEXT NOT NULL, PRIMARY KEY(op, n))"
        " WITHOUT ROWID",
        "INSERT INTO item SELECT * FROM item_2",
        "DROP TABLE item_2",
        "CREATE INDEX item_path ON item(path, op)",
        "CREATE INDEX item_path2 ON item(path2, op) WHERE path2 IS NOT NULL",
        "CREATE INDEX item_before ON item(before) WHERE kind = 'delete'",
    ),
}


def upgrade(db: sqlite3.Connection, file: str | None, version: int) -> None:
    """Upgrade `db` (stored in `file`) to `version`. CallError `history_unavailable` for a newer state."""
    found = version_of(db)
    if found > version:
        raise newer(found, version)
    if found == version:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        found = version_of(db)  # another process may have upgraded while this one waited for the lock
        if found < version and file is not None:
            _copy(file, found)
        for step in range(found, version):
            for statement in (*STEPS[step], *SQLITE.get(step, ())):
                db.execute(statement)
            finish_step(step, db)
        db.execute(f"PRAGMA user_version={max(found, version)}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def finish_step(step: int, db: Database, word: Callable[[str], str] = str) -> None:
    """Fill in the columns that a step added, and index them.

    `word` translates a statement for the database.
    """
    if step in FILL:
        FILL[step](db)
    for statement in LAST.get(step, ()):
        db.execute(word(statement))


def newer(found: int, version: int) -> CallError:
    """Return the error for a state that a newer version wrote."""
    return CallError(
        "history_unavailable",
        f"The state was written by a newer Ringfence (schema {found}, this one knows {version})",
        hint="upgrade Ringfence, or choose another --state",
    )


def version_of(db: sqlite3.Connection) -> int:
    """Return the schema version of a database."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _copy(file: str, version: int) -> None:
    """Make a complete copy beside the database; its final name means that it is complete and on disk."""
    to, part = Path(f"{file}.v{version}"), Path(f"{file}.v{version}.part")
    if to.exists():
        return
    part.unlink(missing_ok=True)
    # A second connection reads what is committed; the caller's lock keeps everybody else from adding to it.
    private_file(str(part))
    source, copy = sqlite3.connect(file), sqlite3.connect(part)
    try:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")
    finally:
        source.close()
        copy.close()
    _sync(part)
    part.rename(to)
    _sync(to.parent)


def _sync(place: Path) -> None:
    fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
