"""Permitted part of a command's changes: what stays when the denied ones are left out. Pure.

A deletion of a tree with a denied entry becomes the deletions of what may go; a new directory that is denied
takes everything below it along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
    denied: list[str] = []
    for change in changes:
        target = change.destination if isinstance(change, Move) else path_of(change)
        if any(target == path or paths.is_below(target, path) for path in denied) and not isinstance(
            change, Delete
        ):
            denied.append(target)
        elif not is_denied(change):
            kept.append(change)
        elif isinstance(change, Delete) and change.entries:
            kept += _deletions(change, is_denied, denied)
        else:
            denied += dict.fromkeys((path_of(change), target))
    return tuple(_without_hindered(kept, denied)), tuple(dict.fromkeys(denied))


def _deletions(change: Delete, is_denied: Callable[[Change], bool], denied: list[str]) -> Iterator[Change]:
    """Yield the deletions that remain of a tree's: the largest parts with no denied entry."""
    every = (Entry(change.path, change.stat), *change.entries)
    stay: set[str] = set()  # what is denied, and every directory above it
    for entry in every:
        if is_denied(Delete(entry.path, entry.stat)):
            denied.append(entry.path)
            at = entry.path
            while at != change.path and at not in stay:
                stay.add(at)
                at = paths.parent(at)
            stay.add(change.path)
    # A directory that is denied itself keeps its content: a deletion of what is in it was not asked for.
    whole = {path for path in denied if any(each.path == path for each in every)}
    going: list[Entry] = []
    for entry in every:
        if entry.path in stay or any(paths.is_below(entry.path, path) for path in whole):
            continue
        going.append(entry)
    tops: list[tuple[Entry, list[Entry]]] = []
    for entry in going:
        if tops and paths.is_below(entry.path, tops[-1][0].path):
            tops[-1][1].append(entry)
        else:
            tops.append((entry, []))
    for top, below in tops:
        yield Delete(top.path, top.stat, tuple(below))


def _without_hindered(changes: list[Change], denied: list[str]) -> Iterator[Change]:
    """Leave out what would be made where a denied deletion leaves something, or below a missing directory."""
    for change in changes:
        if isinstance(change, Delete):
            yield change
            continue
        target = change.destination if isinstance(change, Move) else path_of(change)
        if isinstance(change, MakeDirectory) and any(
            path == target or paths.is_below(path, target) for path in denied
        ):
            continue  # the directory stays, because something in it does
        if target in denied:
            continue
        yield change
