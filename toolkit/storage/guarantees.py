"""What of a plan the store cannot promise: files that could not be brought back, changes without a condition.

Pure: from the plan and what the backend can do; nothing is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ringfence.toolkit.plan.changes import FILE, Change, Delete, Entry, Move, Stat, Write, path_of
from ringfence.toolkit.protected_paths import TASKS
from ringfence.toolkit.storage.backend import Traits

MAX_FILE = 64 << 20  # what is read at once


def is_kept(path: str, stat: Stat, traits: Traits) -> bool:
    """Whether a file that goes can be kept: where it is caught whatever its size, else up to a bound."""
    return in_pieces(path, traits) or stat.kind != FILE or (stat.size or 0) <= MAX_FILE


def in_pieces(path: str, traits: Traits) -> bool:
    """Whether a file there is read and kept piece by piece, whatever its size."""
    return traits.catches and path.partition("/")[0] != TASKS


def unkept(changes: tuple[Change, ...], traits: Traits) -> tuple[str, ...]:
    """The files that these changes would take away for good."""
    return tuple(entry.path for entry in _going(changes) if not is_kept(entry.path, entry.stat, traits))


def unconditional(changes: tuple[Change, ...], traits_at: Callable[[str], Traits]) -> tuple[str, ...]:
    """The kinds of change (create, replace, delete, move) that the store makes whatever is there by now.

    What was judged is looked at right before; a change by somebody else after that look is not noticed.
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
