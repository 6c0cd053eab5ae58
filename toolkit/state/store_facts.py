"""Facts about a store: results of probes and their times, stored beside the history of its root.

A cache only: where it cannot be read or written, the store is probed again.
"""

from __future__ import annotations

from contextlib import suppress

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.state.protocol import State


class StoreFacts:
    """Facts as texts by name, in the state."""

    def __init__(self, state: State) -> None:
        self._state = state

    def get(self, name: str) -> str | None:
        """Return the stored text; None if there is none or it cannot be read."""
        with suppress(CallError):
            rows = self._state.rows("SELECT value FROM meta WHERE name = ?", (name,))
            return str(rows[0][0]) if rows else None
        return None

    def put(self, name: str, value: str) -> None:
        """Store the text under the name; a failure is ignored."""
        with suppress(CallError), self._state.transaction() as db:
            db.execute(
                "INSERT INTO meta VALUES(?,?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
                (name, value),
            )
