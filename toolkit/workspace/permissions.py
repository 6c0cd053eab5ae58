"""Whether the system would refuse a change for sure, by the rights of the directory that it is made in.

Looks and changes nothing. What passes may still be refused: then the change itself says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Change, Delete, Move
from ringfence.toolkit.storage.backend import Spot, Tree, spot_at


def refused(backend: Tree, changes: tuple[Change, ...], spots: Mapping[str, Spot]) -> CallError | None:
    """The first refusal (`permission_denied`) among changes; `spots` are the places judged, by path."""
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
    """The paths at which names come or go, and whether what is there goes to another directory."""
    match change:
        case Delete():
            yield change.path, True
        case Move():
            yield change.source, paths.parent(change.source) != paths.parent(change.destination)
            yield change.destination, False
        case _:
            yield change.path, False
