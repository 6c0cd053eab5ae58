"""Path locks: the paths that other calls are changing now, by their open intents.

Read inside the transaction that commits an intent; only one process at a time can be in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY

if TYPE_CHECKING:
    from ringfence.toolkit.history.records import Item
    from ringfence.toolkit.state.protocol import Database


class Busy(CallError):
    """Another call has an open intent at the same path; it may finish soon."""


class PathLocks:
    """The paths locked by open intents, with everything below a directory that is deleted or moved."""

    def __init__(self, db: Database) -> None:
        self._paths: set[str] = set()
        self._trees: set[str] = set()
        self._above: set[str] = set()
        # Usually there is no open intent; the table of operations alone shows that.
        if not db.execute("SELECT id FROM op WHERE state = 'pending' LIMIT 1").fetchall():
            return
        for path, path2, kind, of in db.execute(
            "SELECT path, path2, kind, type FROM item"
            " WHERE op IN (SELECT id FROM op WHERE state = 'pending') AND state = 'pending'"
        ).fetchall():
            for end in (path, path2):
                if end is not None:
                    self._paths.add(end)
                    self._above.update(_above(end))
                    if of == DIRECTORY and kind in ("delete", "move"):
                        self._trees.add(end)

    def check(self, item: Item) -> None:
        """Raise Busy if the item's path equals a locked path, lies below one, or (for a tree) above one."""
        if not self._paths:
            return
        tree = item.type == DIRECTORY and item.kind in ("delete", "move")
        for end in (item.path, item.path2):
            if end is None:
                continue
            if (
                end in self._paths
                or (tree and end in self._above)
                or any(above in self._trees for above in _above(end))
            ):
                raise Busy(
                    "path_changed",
                    "Another call is changing the same path",
                    hint="send the call again in a moment",
                )


def _above(path: str) -> Iterator[str]:
    while (path := paths.parent(path)) != paths.ROOT:
        yield path
