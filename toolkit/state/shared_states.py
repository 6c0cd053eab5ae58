"""Shared states of one database: which workspaces have their state there, and how many requests wait in each.

Reads names and counts; changes nothing.
"""

from __future__ import annotations

from ringfence.toolkit.state.errors import database_unavailable

_SCHEMAS = (
    "SELECT nspname FROM pg_namespace WHERE nspname ~ '^ringfence_[0-9a-f]{16}$'"
    " AND has_schema_privilege(oid, 'USAGE') AND to_regclass(nspname || '.approval') IS NOT NULL"
    " ORDER BY nspname LIMIT 100"
)


def waiting_in(url: str) -> dict[str, int]:
    """Return the schemas that the role of a postgresql:// URL may read, each with its pending requests.

    CallError `history_unavailable`.
    """
    import psycopg
    from psycopg import sql

    count = sql.SQL("SELECT count(*) FROM {} WHERE state = 'pending'")
    try:
        with psycopg.connect(url, connect_timeout=10, application_name="ringfence") as db:
            db.read_only = True
            names = [str(name) for (name,) in db.execute(_SCHEMAS)]
            found = (db.execute(count.format(sql.Identifier(name, "approval"))).fetchone() for name in names)
            return {name: int(row[0]) if row else 0 for name, row in zip(names, found, strict=True)}
    except psycopg.Error as error:
        raise database_unavailable(error.sqlstate or type(error).__name__, error.sqlstate) from None
