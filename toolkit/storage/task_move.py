"""Moves within a task store that has no rename: copy, verify, delete."""

from __future__ import annotations

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Delete, Entry, Move
from ringfence.toolkit.plan.content import sha256
from ringfence.toolkit.plan.metadata import NotKept
from ringfence.toolkit.storage.backend import (
    Missed,
    Spot,
    WritableTree,
    spot_at,
)
from ringfence.toolkit.storage.move_by_copy import move_by_copy
from ringfence.toolkit.storage.task_spots import TaskSpot, in_joined_tree, in_store


def move_between(  # noqa: C901  the steps of a move by copy share its state
    there: WritableTree, here: WritableTree, source: TaskSpot, destination: TaskSpot, change: Move
) -> NotKept:
    """Copy, verify, then delete, between two places of a store without a rename."""
    if here.stat(destination.inner) is not None:
        raise CallError("already_exists", f"'{destination.path}' already exists", where=destination.path)
    old, new = source.inner.path, destination.inner.path
    lost: dict[str, None] = {}

    def at(side: WritableTree, top: str, entry: Entry) -> Spot:
        return spot_at(
            side, top + entry.path[len(change.source) :]
        )  # spots of these stores hold nothing open

    def put(entry: Entry, giver: WritableTree, original: Spot, taker: WritableTree, target: Spot) -> None:
        if entry.stat.kind == DIRECTORY:
            taker.make_directory(target)
            return
        data = giver.read(original, None)
        metadata = giver.metadata(original, entry.stat)
        lost.update(dict.fromkeys(taker.create(target, data, None, "", metadata)))
        if sha256(taker.read(target, None)) != sha256(data):
            raise CallError("io_error", f"'{entry.path}' was not copied whole", where=entry.path)

    def restore(entry: Entry) -> None:
        original = at(there, old, entry)
        if there.stat(original) is None:
            copy = at(here, new, entry)
            found = here.stat(copy)
            put(entry if found is None else Entry(entry.path, found), here, copy, there, original)

    def delete_copy(entry: Entry) -> None:
        spot = at(here, new, entry)
        if entry.stat.kind == DIRECTORY:
            here.remove_directory(spot)
            return
        found = here.stat(spot)
        if found is not None:
            for step in here.remove(spot, Delete(spot.path, found), ""):
                if isinstance(step, Missed):
                    raise CallError(step.code, step.why, where=step.path)

    doomed = in_store(Delete(change.source, change.stat, change.entries), f"{source.prefix}/")
    move_by_copy(
        (Entry(change.source, change.stat), *change.entries),
        copy=lambda entry: put(entry, there, at(there, old, entry), here, at(here, new, entry)),
        remove=lambda: (
            in_joined_tree(step, f"{source.prefix}/") for step in there.remove(source.inner, doomed, "")
        ),
        restore=restore,
        delete_copy=delete_copy,
    )
    return tuple(lost)
