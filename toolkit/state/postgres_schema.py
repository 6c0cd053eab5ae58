"""Schema of a shared state in PostgreSQL: made, upgraded, and copied before an upgrade.

Each function runs inside the caller's transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.state.postgres_sql import PATH_INDEXES, named, schema_statement, translated
from ringfence.toolkit.state.protocol import SCHEMA, VERSION
from ringfence.toolkit.state.schema_ownership import check_schema

if TYPE_CHECKING:
    import psycopg

_OWNERS = """
CREATE TABLE owner(id TEXT PRIMARY KEY, host TEXT NOT NULL, boot TEXT NOT NULL, pid INTEGER NOT NULL,
    beat TIMESTAMPTZ NOT NULL);
CREATE TABLE version(number INTEGER NOT NULL);
CREATE TABLE audit_pack(first INTEGER NOT NULL, last INTEGER NOT NULL, lines BLOB NOT NULL,
    summary BLOB NOT NULL, PRIMARY KEY(first, last))"""
# What an upgrade makes besides what it makes in SQLite.
_STEPS = {4: _OWNERS.split(";\n")[-1:]}
_log = logging.getLogger("ringfence")


class Statements:
    """Runs statements in SQLite's syntax on PostgreSQL."""

    def __init__(self, db: psycopg.Connection[Any]) -> None:
        self._db = db

    def execute(self, sql: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        """Run a statement, and return the cursor with its rows. psycopg.Error."""
        return self._db.execute(translated(sql), named(values))

    def executemany(self, sql: str, values: Sequence[Sequence[Any]]) -> psycopg.Cursor[Any]:
        """Run a statement once for each row of values. psycopg.Error."""
        cursor = self._db.cursor()
        if values:
            cursor.executemany(translated(sql), [named(row) for row in values])
        return cursor


def make_schema(db: psycopg.Connection[Any], schema: str) -> None:
    """Create the schema, if the administrator has not, and its tables. CallError `history_unavailable`."""
    _create(db, schema)
    for statement in (*SCHEMA.split(";\n"), *_OWNERS.split(";\n")):
        if statement.strip():
            db.execute(schema_statement(statement))
    db.execute("INSERT INTO version VALUES(%s)", (VERSION,))
    check_schema(db, schema)  # what others may do with new tables is the administrator's


def _create(db: psycopg.Connection[Any], schema: str) -> None:
    """Create the schema unless the administrator has; fails where another role has just created it."""
    from psycopg.errors import InsufficientPrivilege

    if check_schema(db, schema):
        return
    (user,) = db.execute("SELECT quote_ident(current_user)").fetchone() or ("",)
    try:
        db.execute(f"CREATE SCHEMA {schema}")
    except InsufficientPrivilege:
        raise CallError(
            "history_unavailable",
            "The shared history's schema is not there, and the user may not create it",
            hint=f"the database's administrator runs: CREATE SCHEMA {schema} AUTHORIZATION {user}",
        ) from None


def upgrade_schema(db: psycopg.Connection[Any], schema: str, found: int) -> None:
    """Run the migrations of SQLite's schema, after a copy. CallError `history_unavailable`."""
    from ringfence.toolkit.state.migrations import STEPS, finish_step, newer

    if found > VERSION:
        raise newer(found, VERSION)
    _copy(db, schema, found)
    for step in range(found, VERSION):
        for statement in (*STEPS[step], *_STEPS.get(step, ())):
            db.execute(schema_statement(statement))
        finish_step(step, Statements(db), schema_statement)
    db.execute("UPDATE version SET number = %s", (VERSION,))


def index_paths(db: psycopg.Connection[Any], schema: str) -> None:
    """Make the indexes accept paths of any length; an earlier version's accepted 2,704 bytes."""
    for name, statements in PATH_INDEXES.items():
        if db.execute("SELECT to_regclass(%s)", (f"{schema}.{name}",)).fetchone() == (None,):
            for statement in statements:
                db.execute(statement)


def _copy(db: psycopg.Connection[Any], schema: str, version: int) -> None:
    """Copy all tables into another schema, which can be renamed to this one's name."""
    from psycopg.errors import InsufficientPrivilege

    utc = "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISS')"
    (now,) = db.execute(utc).fetchone() or ("",)
    copy = f"{schema}_v{version}_{now}"
    try:
        db.execute(f"CREATE SCHEMA {copy}")
    except InsufficientPrivilege:
        raise CallError(
            "history_unavailable",
            "The state is of an older schema and cannot be copied before its upgrade",
            hint="GRANT CREATE ON DATABASE to the user until this version has started once",
        ) from None
    tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
    for (table,) in tables:
        db.execute(f"CREATE TABLE {copy}.{table} (LIKE {schema}.{table} INCLUDING ALL)")
        db.execute(f"INSERT INTO {copy}.{table} SELECT * FROM {schema}.{table}")
    sequence = f"pg_get_serial_sequence('{copy}.op', 'id')"
    db.execute(f"SELECT setval({sequence}, max(id)) FROM {copy}.op HAVING max(id) IS NOT NULL")
    _log.warning("the shared state of schema %s was copied to %s before its upgrade", version, copy)
