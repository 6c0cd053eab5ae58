"""Facts about a store, remembered beside the history of its root: what it was found to do, and when.

A memory only: where it cannot be read or written, whoever uses it finds out anew.
"""

from __future__ import annotations

from contextlib import suppress

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.state.protocol import State


class StoreFacts:
    """Texts by name, in the state."""

    def __init__(self, state: State) -> None:
        self._state = state

    def get(self, name: str) -> str | None:
        with suppress(CallError):
            rows = self._state.rows("SELECT value FROM meta WHERE name = ?", (name,))
            return str(rows[0][0]) if rows else None
        return None

    def put(self, name: str, value: str) -> None:
        with suppress(CallError), self._state.transaction() as db:
            db.execute(
                "INSERT INTO meta VALUES(?,?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
                (name, value),
            )
