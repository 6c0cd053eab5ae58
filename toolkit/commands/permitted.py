"""Permitted part of a command's changes: what stays when the denied ones are left out. Pure.

A deletion of a tree with a denied entry becomes the deletions of what may go; a new directory that is denied
takes everything below it along.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from ringfence.toolkit import paths
from ringfence.toolkit.plan.changes import (
    Change,
    Delete,
    Entry,
    MakeDirectory,
    Move,
    path_of,
)


def permitted(
    changes: tuple[Change, ...], is_denied: Callable[[Change], bool]
) -> tuple[tuple[Change, ...], tuple[str, ...]]:
    """Return the changes without the denied ones, and the paths of those that are left out."""
    kept: list[Change] = []
    denied: dict[str, None] = {}  # in order, each once
    for change in changes:
        target = _target(change)
        if not isinstance(change, Delete) and _is_in(target, denied):
            denied[target] = None
        elif not is_denied(change):
            kept.append(change)
        elif isinstance(change, Delete) and change.entries:
            kept += _deletions(change, is_denied, denied)
        else:
            denied |= dict.fromkeys((path_of(change), target))
    return tuple(_without_hindered(kept, denied)), tuple(denied)


def _target(change: Change) -> str:
    return change.destination if isinstance(change, Move) else path_of(change)


def _is_in(path: str, places: Collection[str]) -> bool:
    """Whether a path is one of the places or below one."""
    while path not in places:
        if path == paths.ROOT:
            return False
        path = paths.parent(path)
    return True


def _deletions(
    change: Delete, is_denied: Callable[[Change], bool], denied: dict[str, None]
) -> Iterator[Change]:
    """Yield the deletions that remain of a tree's: the largest parts with no denied entry."""
    every = (Entry(change.path, change.stat), *change.entries)
    own: set[str] = set()
    stay: set[str] = set()  # what is denied, and every directory above it
    for entry in every:
        if is_denied(Delete(entry.path, entry.stat)):
            own.add(entry.path)
            denied[entry.path] = None
            at = entry.path
            while at != change.path and at not in stay:
                stay.add(at)
                at = paths.parent(at)
            stay.add(change.path)
    # A directory that is denied itself keeps its content: a deletion of what is in it was not asked for.
    going = [entry for entry in every if entry.path not in stay and not _is_in(entry.path, own)]
    tops: list[tuple[Entry, list[Entry]]] = []
    for entry in going:
        if tops and paths.is_below(entry.path, tops[-1][0].path):
            tops[-1][1].append(entry)
        else:
            tops.append((entry, []))
    for top, below in tops:
        yield Delete(top.path, top.stat, tuple(below))


def _without_hindered(changes: list[Change], denied: Collection[str]) -> Iterator[Change]:
    """Leave out what would be made where a denied deletion leaves something."""
    above = {part for path in denied for part in _upwards(path)}
    for change in changes:
        # A directory with something in it that stays does not go, so it is not made anew.
        there = above if isinstance(change, MakeDirectory) else denied
        if isinstance(change, Delete) or _target(change) not in there:
            yield change


def _upwards(path: str) -> Iterator[str]:
    while path != paths.ROOT:
        yield path
        path = paths.parent(path)
