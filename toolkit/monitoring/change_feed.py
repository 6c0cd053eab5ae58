"""Change feed for editors: changes by any process in a workspace, from the shared state.

Reads only what is new, and changes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ringfence.toolkit.history.records import DONE, ItemRow
from ringfence.toolkit.history.session_condition import of_session
from ringfence.toolkit.history.subscriptions import CREATED, DELETED, RESTORED, UPDATED
from ringfence.toolkit.locations import FILE
from ringfence.toolkit.protected_paths import TASKS
from ringfence.toolkit.session.session import Session

MOVED = "moved"


class Bridge:
    """The changes since it was created, each reported once, after its call.

    With `only`, limited to one session.
    """

    def __init__(self, session: Session, only: str | None = None) -> None:
        self._session = session
        self._only = of_session(only)
        place = session.workspace.place
        self._root = Path(place.path) if place.protocols == FILE else None
        self._open = self._pending()
        self._seen = int(session.state.rows("SELECT max(id) FROM op")[0][0] or 0)

    def look(self) -> list[dict[str, Any]]:
        """Return the changes since the last call of this method, oldest first."""
        fresh = self._session.state.rows("SELECT id FROM op WHERE id > ? ORDER BY id", (self._seen,))
        if not fresh and not self._open:
            return []
        waiting = self._open | {int(row[0]) for row in fresh}
        self._open = waiting & self._pending()
        self._seen = max(waiting | {self._seen})
        return [event for op in sorted(waiting - self._open) for event in self._told(op)]

    def _pending(self) -> set[int]:
        rows = self._session.state.rows("SELECT id FROM op WHERE state = 'pending'")
        return {int(row[0]) for row in rows}

    def _told(self, op: int) -> list[dict[str, Any]]:
        within, values = self._only
        items = self._session.history.items(f"op.id = ? AND item.state = ? AND {within}", (op, DONE, *values))
        return [self._event(item) for item in items]

    def _event(self, item: ItemRow) -> dict[str, Any]:
        event = {"event": kind(item), "path": item.path, "file": self._file(item.path), "type": item.type}
        if item.path2 is not None:
            event |= {"to": item.path2, "to_file": self._file(item.path2)}
        return event | {"session": item.session, "agent": item.agent, "tool": item.tool, "call": item.call}

    def _file(self, path: str) -> str | None:
        """Return the path of the file on this machine, if there is one."""
        if self._root is None or path.partition("/")[0] == TASKS:
            return None
        return str(self._root / path)


def kind(item: ItemRow) -> str:
    """Return what happened to the item's path, in one word."""
    if item.kind == "move":
        return MOVED
    if item.kind == "delete":
        return DELETED
    if item.tool in ("undo", "restore"):
        return RESTORED
    return CREATED if item.before is None and not item.lost else UPDATED
