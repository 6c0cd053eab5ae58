"""Path locks: the paths that other calls are changing, or have changed since a plan was made.

Read inside the transaction that commits an intent; only one process at a time can be in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY
from ringfence.toolkit.protected_paths import QUARANTINED_PREFIX

if TYPE_CHECKING:
    from ringfence.toolkit.history.records import Item, Position
    from ringfence.toolkit.state.protocol import Database

_PENDING = "SELECT id FROM op WHERE state = 'pending'"
# Not a number of an operation: there are changes in the redo log.
_UNSYNCED = -1
# The same text each time, because SQLite compiles another one anew.
_TO_LOOK_AT = f"{_PENDING} UNION SELECT id FROM op WHERE id > ? UNION SELECT {_UNSYNCED} FROM unsynced"
_NEVER = (1 << 63) - 1  # a number after every operation's
_COLUMNS = "SELECT path, path2, kind, type, temporary FROM item"


class Busy(CallError):
    """Another call has an open intent at the same path; it may finish soon."""


class PathLocks:
    """The paths that a call may not change now.

    Those in open intents are locked, with everything below a directory that is deleted, moved or restored
    whole. Those that were changed after the position `planned` are stale: the intent would record another
    state than the present one, so recovery could not tell from the files what became of it.
    """

    def __init__(self, db: Database, planned: Position | None = None) -> None:
        self._locked, self._stale = _Paths(), _Paths()
        # Usually there is no such operation; the table of operations alone shows that.
        since = _NEVER if planned is None else planned.last
        found = {int(row[0]) for row in db.execute(_TO_LOOK_AT, (since,)).fetchall()}
        self.any_unsynced = _UNSYNCED in found
        found.discard(_UNSYNCED)
        self._free = not found and (planned is None or not planned.pending)
        if self._free:
            return
        open_items = f"{_COLUMNS} WHERE op IN ({_PENDING}) AND state = 'pending'"
        for row in db.execute(open_items).fetchall():
            self._locked.add(*row)
        if planned is not None:
            before = ",".join(str(op) for op in sorted(planned.pending)) or "0"
            late = f"{_COLUMNS} WHERE (op > ? OR op IN ({before})) AND state NOT IN ('pending', 'aborted')"
            for row in db.execute(late, (planned.last,)).fetchall():
                self._stale.add(*row)

    def check(self, item: Item) -> None:
        """Raise Busy if the item's path equals a locked path, lies below one, or (for a tree) above one.

        Raises CallError `path_changed` if it is so with a stale path.
        """
        if self._free:
            return
        if self._locked.concern(item, made=True):
            raise Busy(
                "path_changed",
                "Another call is changing the same path",
                hint="send the call again in a moment",
            )
        # A directory that both only make may be made by either.
        if self._stale.concern(item, made=not _only_makes(item.kind, item.temporary)):
            raise CallError(
                "path_changed",
                f"Another call changed '{item.path}' meanwhile",
                where=item.path,
                hint="look at the path, and send the call again",
            )


class _Paths:
    """Paths of changes, and whether another change concerns them."""

    def __init__(self) -> None:
        self._paths: set[str] = set()
        self._made: set[str] = set()  # directories
        self._trees: set[str] = set()
        self._above: set[str] = set()

    def add(self, path: str, path2: str | None, kind: str, of: str, temporary: str | None) -> None:
        for end in (path, path2):
            if end is not None:
                (self._made if _only_makes(kind, temporary) else self._paths).add(end)
                self._above.update(_above(end))
                if _is_tree(kind, of, temporary):
                    self._trees.add(end)

    def concern(self, item: Item, *, made: bool) -> bool:
        """Whether one of the paths is the item's, or above it, or (for a tree) below it; with `made`, also
        one of a directory that was only made.
        """
        if not (self._paths or self._made):
            return False
        tree = _is_tree(item.kind, item.type, item.temporary)
        return any(
            end in self._paths
            or (made and end in self._made)
            or (tree and end in self._above)
            or any(above in self._trees for above in _above(end))
            for end in (item.path, item.path2)
            if end is not None
        )


def _is_returned(kind: str, temporary: str | None) -> bool:
    """Whether an item restores a quarantined entry with one rename."""
    return kind != "delete" and (temporary or "").startswith(QUARANTINED_PREFIX)


def _is_tree(kind: str, of: str, temporary: str | None) -> bool:
    return of == DIRECTORY and (kind in ("delete", "move") or _is_returned(kind, temporary))


def _only_makes(kind: str, temporary: str | None) -> bool:
    return kind == "directory" and not _is_returned(kind, temporary)


def _above(path: str) -> Iterator[str]:
    while (path := paths.parent(path)) != paths.ROOT:
        yield path
