"""Permissions: whether the system would certainly refuse a change, by the rights of its directory.

Changes nothing. A change that passes may still be refused; then the change itself fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Change, Delete, Move, SetMode
from ringfence.toolkit.storage.backend import Spot, Tree, spot_at


def refused(backend: Tree, changes: tuple[Change, ...], spots: Mapping[str, Spot]) -> CallError | None:
    """Return the first refusal (`permission_denied`) among changes; `spots` are the judged places' handles by
    path.
    """
    for change in changes:
        for path, leaves in _ends(change):
            spot = spots[path] if path in spots else spot_at(backend, path)
            try:
                if not backend.changeable(spot, leaves=leaves):
                    return CallError("permission_denied", f"Permission denied: '{path}'", where=path)
            finally:
                if path not in spots:
                    backend.release(spot)
    return None


def _ends(change: Change) -> Iterator[tuple[str, bool]]:
    """Yield the paths at which names are created or removed, and whether it is a move between directories."""
    match change:
        case Delete():
            yield change.path, True
        case Move():
            yield change.source, paths.parent(change.source) != paths.parent(change.destination)
            yield change.destination, False
        case SetMode():
            return  # changes no name; the file's owner decides
        case _:
            yield change.path, False
