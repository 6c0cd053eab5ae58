"""Spots in the task store, with their paths in the workspace's tree."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ringfence.toolkit import paths
from ringfence.toolkit.plan.changes import Delete, Entry, Stat
from ringfence.toolkit.storage.backend import (
    FailedEntry,
    Folder,
    Spot,
    WritableTree,
)


@dataclass(slots=True)
class TaskSpot:
    """A spot in the task store or its trash.

    `side` is the tree of the one or the other, None for a trash that does not exist yet. `inner` is its spot
    there, and `prefix` the path of that tree in the workspace's.
    """

    side: WritableTree | None
    inner: Spot
    prefix: str

    @property
    def path(self) -> str:
        inner = self.inner.path
        return self.prefix if inner == paths.ROOT else f"{self.prefix}/{inner}" if self.prefix else inner


@dataclass(frozen=True, slots=True)
class UncreatedSpot:
    """The spot of a path in a trash that does not exist yet."""

    path: str


class TaskFolder:
    """An open directory of the task store."""

    def __init__(self, folder: Folder, spot: TaskSpot) -> None:
        self._folder = folder
        self._spot = spot

    def scan(self) -> list[tuple[str, Stat]]:
        return self._folder.scan()

    def spot(self, name: str) -> TaskSpot:
        return TaskSpot(self._spot.side, self._folder.spot(name), self._spot.prefix)


def in_workspace_tree(step: str | FailedEntry, head: str) -> str | FailedEntry:
    """Return a step of a deletion on one side with its path in the workspace's tree: with `head`."""
    return replace(step, path=head + step.path) if isinstance(step, FailedEntry) else head + step


def in_store(change: Delete, head: str) -> Delete:
    """Return a deletion with the paths of one side: without `head`, the start of each path."""
    cut = len(head)
    entries = tuple(Entry(entry.path[cut:], entry.stat) for entry in change.entries)
    return Delete(change.path[cut:], change.stat, entries)
