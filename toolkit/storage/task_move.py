"""Moves within a task store that has no rename: copy, verify, delete."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Delete, Entry, Move
from ringfence.toolkit.plan.content import sha256
from ringfence.toolkit.plan.metadata import NotKept
from ringfence.toolkit.storage.backend import FailedEntry, Spot, WritableTree, complete, spot_at
from ringfence.toolkit.storage.move_by_copy import move_by_copy
from ringfence.toolkit.storage.task_spots import TaskSpot, in_store, in_workspace_tree


def move_between(
    origin: WritableTree, target: WritableTree, source: TaskSpot, destination: TaskSpot, change: Move
) -> NotKept:
    """Copy, verify, then delete, from the store or its trash (`origin`) to the other one (`target`).

    Returns the metadata fields that were not kept. CallError `already_exists`, and as `move_by_copy`.
    """
    if target.stat(destination.inner) is not None:
        raise CallError("already_exists", f"'{destination.path}' already exists", where=destination.path)
    move = _Move(origin, target, source, destination, change)
    move_by_copy(
        (Entry(change.source, change.stat), *change.entries),
        copy=move.copy,
        remove=move.remove,
        restore=move.restore,
        delete_copy=move.delete_copy,
    )
    return tuple(move.not_kept)


@dataclass(frozen=True, slots=True)
class _Move:
    """The steps of one move. Spots of these stores hold nothing open, so none is released."""

    origin: WritableTree
    target: WritableTree
    source: TaskSpot
    destination: TaskSpot
    change: Move
    not_kept: dict[str, None] = field(default_factory=dict)

    def copy(self, entry: Entry) -> None:
        """Copy one entry, and verify the copy."""
        self._transfer(entry, self.origin, self._original(entry), self.target, self._copied(entry))

    def remove(self) -> Iterator[str | FailedEntry]:
        """Delete the originals."""
        head = f"{self.source.prefix}/"
        deletion = in_store(Delete(self.change.source, self.change.stat, self.change.entries), head)
        for step in self.origin.remove(self.source.inner, deletion, ""):
            yield in_workspace_tree(step, head)

    def restore(self, entry: Entry) -> None:
        """Make one original again from its copy, if it is missing."""
        original = self._original(entry)
        if self.origin.stat(original) is None:
            copied = self._copied(entry)
            found = self.target.stat(copied)
            present = entry if found is None else Entry(entry.path, found)
            self._transfer(present, self.target, copied, self.origin, original)

    def delete_copy(self, entry: Entry) -> None:
        """Delete one copy."""
        spot = self._copied(entry)
        if entry.stat.kind == DIRECTORY:
            self.target.remove_directory(spot)
            return
        found = self.target.stat(spot)
        if found is not None:
            complete(self.target.remove(spot, Delete(spot.path, found), ""))

    def _original(self, entry: Entry) -> Spot:
        return spot_at(self.origin, self.source.inner.path + entry.path[len(self.change.source) :])

    def _copied(self, entry: Entry) -> Spot:
        return spot_at(self.target, self.destination.inner.path + entry.path[len(self.change.source) :])

    def _transfer(
        self, entry: Entry, origin: WritableTree, original: Spot, target: WritableTree, copied: Spot
    ) -> None:
        if entry.stat.kind == DIRECTORY:
            target.make_directory(copied)
            return
        data = origin.read(original, None)
        metadata = origin.metadata(original, entry.stat)
        self.not_kept.update(dict.fromkeys(target.create(copied, data, None, "", metadata)))
        if sha256(target.read(copied, None)) != sha256(data):
            raise CallError("io_error", f"'{entry.path}' was not copied whole", where=entry.path)
