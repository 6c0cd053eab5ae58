"""Guarantees that a store cannot give for a plan: files that cannot be restored, unconditional changes.

Pure: computed from the plan and the backend's traits; nothing is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ringfence.toolkit.plan.changes import FILE, Change, Delete, Entry, Move, SetMode, Stat, Write, path_of
from ringfence.toolkit.protected_paths import TASKS
from ringfence.toolkit.storage.backend import Traits

MAX_FILE = 64 << 20  # bytes that are read at once, at most


def is_restorable(path: str, stat: Stat, traits: Traits) -> bool:
    """Whether a removed file can be restored: of any size with a quarantine, else up to MAX_FILE bytes."""
    return stat.kind != FILE or (stat.size or 0) <= MAX_FILE or is_streamed(path, traits)


def is_streamed(path: str, traits: Traits) -> bool:
    """Whether a file of any size is read and stored in pieces."""
    return traits.quarantines and path.partition("/")[0] != TASKS


def unrestorable(changes: tuple[Change, ...], traits: Traits) -> tuple[str, ...]:
    """Return the paths of the files that these changes would remove for good."""
    return tuple(
        entry.path for entry in _removed_entries(changes) if not is_restorable(entry.path, entry.stat, traits)
    )


def unconditional(changes: tuple[Change, ...], traits_at: Callable[[str], Traits]) -> tuple[str, ...]:
    """Return the kinds of change (create, replace, delete, move) that the store makes without a condition.

    The judged version is compared right before such a change; a later change by somebody else is overwritten.
    """
    kinds = (_kind(change) for change in changes if not _is_conditional(change, traits_at(path_of(change))))
    return tuple(dict.fromkeys(kinds))


def _is_conditional(change: Change, traits: Traits) -> bool:
    conditions = {
        "create": traits.exclusive_create,
        "replace": traits.conditional,
        "delete": traits.conditional_delete,
        "move": traits.conditional_move,
    }
    return conditions[_kind(change)]


def _kind(change: Change) -> str:
    match change:
        case Write(stat=stat) if stat is not None:
            return "replace"
        case SetMode():
            return "replace"
        case Delete():
            return "delete"
        case Move():
            return "move"
    return "create"


def _removed_entries(changes: tuple[Change, ...]) -> Iterator[Entry]:
    for change in changes:
        if isinstance(change, Delete):
            yield Entry(change.path, change.stat)
            yield from change.entries
        elif isinstance(change, Move) and change.over is not None:
            yield Entry(change.destination, change.over)
        elif isinstance(change, Write) and change.stat is not None and change.before is None:
            yield Entry(change.path, change.stat)
