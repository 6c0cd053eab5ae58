"""Overlay of planned changes over the workspace's files: the tree as it would be.

Only reads. Knows where each planned entry's bytes are on the disk now, so that they can be moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, Entry, Stat, kept_mode, restored_mode
from ringfence.toolkit.plan.content import StreamedContent, hashed, sha256
from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.storage.backend import Spot, Tree, at
from ringfence.toolkit.storage.tree_walk import walk

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Node:
    """One entry. `origin` is its path on the disk now, None for an entry that has to be made, with
    `metadata`.

    `digest` is that of a file's planned content, `data` the content itself if the history does not have it.
    """

    kind: str
    digest: str | None = None
    target: str | None = None
    mode: int | None = None
    origin: str | None = None
    stat: Stat | None = None
    data: bytes | StreamedContent | None = None
    metadata: Metadata | None = None


class Overlay:
    """A backend's tree with planned entries over it."""

    def __init__(self, backend: Tree) -> None:
        self._backend = backend
        self.over: dict[str, Node | None] = {}
        self._names: dict[str, set[str]] = {}
        self._disk: dict[str, Node | None] = {}
        self._whole: set[str] = set()
        self._missing: set[str] = set()  # missing directories, so nothing exists below them

    def get(self, path: str) -> Node | None:
        """Return the entry that would be at `path`."""
        if path in self.over:
            return self.over[path]
        above = paths.parent(path) if self.over else paths.ROOT
        while above != paths.ROOT:
            if above in self.over:
                node = self.over[above]
                return self.disk(path) if node is not None and self._as_on_disk(above, node) else None
            above = paths.parent(above)
        return self.disk(path)

    def put(self, path: str, node: Node | None) -> None:
        """Plan `node` at `path`; None plans a deletion."""
        self.over[path] = node
        self._names.setdefault(paths.parent(path), set()).add(path)

    def below(self, path: str) -> Iterator[tuple[str, Node]]:
        """Yield the paths that would be below the directory at `path`, parents before children."""
        # A stack: a tree may be deeper than Python's recursion limit.
        todo = list(reversed(self.children(path)))
        while todo:
            child = todo.pop()
            node = self.get(child)
            if node is None:
                raise CallError("path_changed", f"'{child}' went away while it was read", where=child)
            yield child, node
            if node.kind == DIRECTORY:
                todo += reversed(self.children(child))

    def children(self, path: str) -> list[str]:
        """Return the sorted paths directly below a directory after the planned changes."""
        node = self.get(path)
        if node is None or node.kind != DIRECTORY:
            return []
        found = {child for child in self._names.get(path, ()) if self.over.get(child) is not None}
        if self._as_on_disk(path, node):
            listed = (paths.child(path, name) for name, _ in self._scan(path))
            found.update(child for child in listed if child not in self.over)
        return sorted(found)

    def carry(self, source: str, destination: str) -> None:
        """Plan a move of the entry at `source`, with everything below it, to `destination`."""
        top = self.get(source)
        assert top is not None, "what is carried is there"
        carried = [(destination, top)]
        carried += [(destination + path[len(source) :], node) for path, node in self.below(source)]
        for path in [path for path in self.over if paths.is_below(path, source)]:
            del self.over[path]
            self._names[paths.parent(path)].discard(path)
        self.put(source, None)
        for path, node in carried:
            self.put(path, node)
            self._whole.add(path)

    def hold(self, path: str) -> None:
        """Plan the directory that is at `path` now in place of the new one planned there."""
        node = self.over[path]
        mode, metadata = (None, None) if node is None else (node.mode, node.metadata)
        self.put(path, Node(DIRECTORY, mode=mode, origin=path, metadata=metadata))
        self._whole.add(path)

    def is_planned_whole(self, path: str) -> bool:
        """Whether the entries of the directory at `path` stay only if they are planned."""
        node = self.over.get(path)
        return node is None or not self._as_on_disk(path, node)

    def _as_on_disk(self, path: str, node: Node) -> bool:
        """Whether unplanned entries of a directory are those on the disk; not for a moved directory."""
        return node.origin == path and path not in self._whole

    # ----------------------------------------------------------------- the disk

    def disk(self, path: str) -> Node | None:
        """Return the entry that is at `path` on the disk now."""
        if path not in self._disk:
            gone = paths.parent(path) in self._missing
            stat = None if gone else self._stat(path)
            self._disk[path] = None if stat is None else _on_disk(path, stat)
        return self._disk[path]

    def _stat(self, path: str) -> Stat | None:
        try:
            return self._at(path, self._find_stat)
        except CallError as error:
            # A link took the place of a directory: nothing has this path now.
            if error.code != "path_changed" or not self._is_behind_link(path):
                raise
            self._missing.add(paths.parent(path))
            return None

    def _is_behind_link(self, path: str) -> bool:
        for above in reversed(list(paths.above(path))):
            found = self.disk(above)
            if found is None or found.kind != DIRECTORY:
                return found is not None and found.kind == LINK
        return False

    def _find_stat(self, spot: Spot) -> Stat | None:
        found = self._backend.stat(spot)
        if (
            found is None and self._backend.traits.quarantines
        ):  # a disk's error already shows that the parent is missing
            with suppress(CallError):  # a file in place of a directory
                self._missing.update(self._backend.missing(spot))
        return found

    def digest(self, node: Node) -> str:
        """Return the digest of a file's content; read from the disk if the plan does not have it."""
        if node.digest is None:
            assert node.origin is not None, "only what is on the disk can be read there"
            node.digest = self._at(node.origin, lambda spot: self._hashed(spot, node.stat))
        return node.digest

    def read(self, node: Node) -> bytes:
        """Return a file's content from the disk. Only for a node that exists there."""
        assert node.origin is not None, "only what is on the disk can be read there"
        return self._at(node.origin, lambda spot: self._backend.read(spot, None, node.stat))

    def attached(self, node: Node) -> tuple[int | None, Metadata | None]:
        """Return the mode and the metadata of an entry, read from the disk."""
        stat = node.stat
        if node.origin is None or stat is None:
            return node.mode, node.metadata
        metadata = self._at(node.origin, lambda spot: self._backend.metadata(spot, stat))
        return restored_mode(kept_mode(stat, metadata)), metadata

    def content(self, node: Node) -> bytes | StreamedContent:
        """Return a file's content from the disk, as a stream if it is large and the backend supports that."""
        if not self._backend.traits.quarantines or node.stat is None or (node.stat.size or 0) <= LARGE:
            return self.read(node)
        return StreamedContent(self.digest(node), node.stat.size or 0, lambda: self._chunks(node))

    def _chunks(self, node: Node) -> Iterator[bytes]:
        with at(self._backend, str(node.origin)) as spot:
            yield from self._backend.chunks(spot, node.stat)

    def _hashed(self, spot: Spot, stat: Stat | None) -> str:
        """Return the digest of exactly the file with this `stat`; a cache could return an older one."""
        if self._backend.traits.quarantines:
            return hashed(self._backend.chunks(spot))[0]
        return sha256(self._backend.read(spot, None, stat))

    def tree(self, path: str) -> tuple[Entry, ...]:
        """Yield the entries below `path` on the disk now, parents before children."""
        found = self._at(path, lambda spot: tuple(entry for entry, _ in walk(self._backend, spot, path)))
        for entry in found:
            self._disk.setdefault(entry.path, _on_disk(entry.path, entry.stat))
        return found

    def _scan(self, path: str) -> list[tuple[str, Stat]]:
        def list_folder(spot: Spot) -> list[tuple[str, Stat]]:
            with self._backend.folder(spot) as folder:
                return folder.scan()

        return self._at(path, list_folder)

    def _at(self, path: str, act: Callable[[Spot], T]) -> T:
        with at(self._backend, path) as spot:
            return act(spot)


def _on_disk(path: str, stat: Stat) -> Node:
    target = stat.target if stat.kind == LINK else None
    mode = stat.mode if stat.kind == DIRECTORY else restored_mode(kept_mode(stat, None))
    return Node(stat.kind, target=target, mode=mode, origin=path, stat=stat)


def is_file(node: Node | None) -> bool:
    """Whether a node exists and is a regular file."""
    return node is not None and node.kind == FILE
