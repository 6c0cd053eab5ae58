"""Condition of a query for the rows of a session and its sub-sessions, served by an index."""

from __future__ import annotations

from typing import Any


def of_session(session: str | None, table: str = "op") -> tuple[str, tuple[Any, ...]]:
    """Return a condition on `op`, or another table, for a session and its sub-sessions (`night/tests` is one
    of `night`); None: all.
    """
    if session is None:
        return "1 = 1", ()
    # The bounds are wider than the condition after them, but an index serves them; "0" comes after "/".
    return (
        f"({table}.session COLLATE BINARY >= ? AND {table}.session COLLATE BINARY < ?"
        f" AND ({table}.session = ? OR substr({table}.session, 1, ?) = ?))",
        (session, session + "0", session, len(session) + 1, session + "/"),
    )
