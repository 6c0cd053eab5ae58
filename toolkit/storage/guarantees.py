"""Guarantees that a store cannot give for a plan: files that cannot be restored, unconditional changes.

Pure: computed from the plan and the backend's traits; nothing is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ringfence.toolkit.plan.changes import FILE, Change, Delete, Entry, Move, SetMode, Stat, Write, path_of
from ringfence.toolkit.protected_paths import TASKS
from ringfence.toolkit.storage.backend import Traits

MAX_FILE = 64 << 20  # the most bytes that are read at once


def is_kept(path: str, stat: Stat, traits: Traits) -> bool:
    """Whether a removed file can be kept: of any size where there is a quarantine, else up to a bound."""
    return in_pieces(path, traits) or stat.kind != FILE or (stat.size or 0) <= MAX_FILE


def in_pieces(path: str, traits: Traits) -> bool:
    """Whether a file is read and kept in pieces, whatever its size."""
    return traits.catches and path.partition("/")[0] != TASKS


def unkept(changes: tuple[Change, ...], traits: Traits) -> tuple[str, ...]:
    """Return the files that these changes would remove for good."""
    return tuple(entry.path for entry in _going(changes) if not is_kept(entry.path, entry.stat, traits))


def unconditional(changes: tuple[Change, ...], traits_at: Callable[[str], Traits]) -> tuple[str, ...]:
    """Return the kinds of change (create, replace, delete, move) that the store makes without a condition.

    The judged version is compared right before; a change by somebody else after that is not noticed.
    """
    kinds = (_kind(change) for change in changes if not _promised(change, traits_at(path_of(change))))
    return tuple(dict.fromkeys(kinds))


def _promised(change: Change, traits: Traits) -> bool:
    promised = {
        "create": traits.exclusive_create,
        "replace": traits.conditional,
        "delete": traits.conditional_delete,
        "move": traits.conditional_move,
    }
    return promised[_kind(change)]


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


def _going(changes: tuple[Change, ...]) -> Iterator[Entry]:
    for change in changes:
        if isinstance(change, Delete):
            yield Entry(change.path, change.stat)
            yield from change.entries
        elif isinstance(change, Move) and change.over is not None:
            yield Entry(change.destination, change.over)
        elif isinstance(change, Write) and change.stat is not None and change.before is None:
            yield Entry(change.path, change.stat)
