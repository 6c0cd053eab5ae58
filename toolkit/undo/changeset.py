"""Changeset of an overlay: planned entries become changes in an order in which they can be made, each written
once.

First come deletions and moves, by the paths on the disk now; then new content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from ringfence.toolkit import paths
from ringfence.toolkit.plan.changes import (
    DIRECTORY,
    EXECUTABLE,
    FILE,
    LINK,
    SET_ID,
    Change,
    Delete,
    Entry,
    MakeDirectory,
    MakeLink,
    Move,
    SetMode,
    Stat,
    Write,
    octal,
)
from ringfence.toolkit.plan.content import StreamedContent, length, whole
from ringfence.toolkit.text import MAX_DIFF, diff, escape, size
from ringfence.toolkit.undo.overlay import Node, Overlay, is_file

Content = Callable[[str], bytes | StreamedContent]


@dataclass(frozen=True, slots=True)
class Shown:
    """One path's diff for the preview, made only on demand."""

    path: str
    draw: Callable[[], str]


def net(overlay: Overlay, content: Content) -> tuple[list[Change], list[Shown]]:
    """Compute the changes from the disk to the overlay. `content` returns the content of a digest."""
    found = _Net(overlay, content)
    while True:
        found.compare()
        try:
            order = found.order()
        except CycleError as error:
            # Two directories swap places: one of them is made anew from its content.
            found.copy_one(error.args[1])
            continue
        return [*order, *found.written()], sorted(found.shown(), key=lambda one: one.path)


class _Net:
    def __init__(self, overlay: Overlay, content: Content) -> None:
        self._overlay = overlay
        self._content = content
        self._moved: dict[str, str] = {}
        self._gone: dict[str, Entry] = {}
        self._made: list[str] = []
        self._new: list[str] = []
        self._modes: list[str] = []

    # --------------------------------------------------------------- comparison

    def compare(self) -> None:
        """Find out which entries stay, move, are deleted and are new."""
        overlay = self._overlay
        self._adopt()
        origins = {node.origin: path for path, node in overlay.over.items() if node and node.origin}
        self._moved = {o: path for o, path in origins.items() if o != path}
        self._gone, self._made, self._new, self._modes = {}, [], [], []
        listed: set[str] = set()  # directories whose entries are all known
        for path, node in sorted(overlay.over.items()):
            here = overlay.disk(path)
            if here is not None and path not in origins and here.stat is not None:
                self._gone[path] = Entry(path, here.stat)
            if here is not None and here.kind == DIRECTORY and overlay.is_planned_whole(path):
                if paths.parent(path) not in listed:
                    self._gone |= {e.path: e for e in overlay.tree(path) if e.path not in origins}
                listed.add(path)
            if node is not None and node.origin is None:
                (self._made if node.kind == DIRECTORY else self._new).append(path)
            elif node is not None and node.origin == path and self._rewritten(node):
                self._new.append(path)
            elif node is not None and self._differs_in_mode(node):
                self._modes.append(path)

    def _adopt(self) -> None:
        """Match a new entry with an entry of the same kind at its path; a moved file with other content
        counts as new.
        """
        overlay = self._overlay
        used = {node.origin for node in overlay.over.values() if node is not None}
        self._hold(used)
        for path, node in overlay.over.items():
            if node is None:
                continue
            if node.origin not in (None, path) and self._rewritten(node):
                node.origin = None
            here = overlay.disk(path)
            if node.origin is None and here is not None and here.kind == node.kind and path not in used:
                same_mode = node.mode in (None, here.mode)
                if node.kind == FILE or (node.kind == DIRECTORY and same_mode):
                    node.origin = path

    def _hold(self, used: set[str | None]) -> None:
        """Keep the directories of entries that stay; if such a directory is deleted or moved, the entry is
        made anew.
        """
        overlay = self._overlay
        for path in [path for path, node in overlay.over.items() if node is not None and node.origin == path]:
            for above in paths.above(path):
                holds = overlay.over.get(above)
                if holds is None or holds.origin == above:
                    continue
                if above not in used:
                    overlay.hold(above)
                else:
                    self._copy(path)
                    break

    def _rewritten(self, node: Node) -> bool:
        now = self._on_disk(node)
        if now is None or node.digest is None:
            return False
        by_mode = _another_mode(node, now) and not _only_executable(node, now)
        return by_mode or self._overlay.digest(now) != node.digest

    def _differs_in_mode(self, node: Node) -> bool:
        now = self._on_disk(node)
        return now is not None and _another_mode(node, now) and _only_executable(node, now)

    def _on_disk(self, node: Node) -> Node | None:
        """Return what is now at the place that a planned file comes from, if it is not the same node."""
        if node.kind != FILE or node.origin is None:
            return None
        now = self._overlay.disk(node.origin)
        return None if now is node else now

    def copy_one(self, cycle: list[tuple[str, str]]) -> None:
        """Break a cycle of moves: one of its entries is made anew from its content."""
        source = next(path for kind, path in cycle if kind == "from" and path in self._moved)
        target = self._moved[source]
        for path in [target, *(path for path, _ in self._overlay.below(target))]:
            self._copy(path)

    def _copy(self, path: str) -> None:
        node = self._overlay.get(path)
        if node is not None and node.origin is not None:
            data = self._overlay.read(node) if node.kind == FILE else None
            mode, metadata = self._overlay.attached(node)
            made = Node(node.kind, node.digest, node.target, mode, data=data, metadata=metadata)
            self._overlay.put(path, made)

    # -------------------------------------------------------------------- order

    def order(self) -> list[Change]:
        """Return deletions, moves and new directories in an order in which each path is free and its parent
        exists.

        Raises CycleError.
        """
        changes = {**self._deletions(), **self._moves()}
        changes |= {("to", path): self._directory(path) for path in self._made}
        sorter: TopologicalSorter[tuple[str, str]] = TopologicalSorter()
        targets = {c.destination: key for key, c in changes.items() if isinstance(c, Move)}
        targets |= {path: ("to", path) for path in self._made}
        for key in changes:
            sorter.add(key)
        for key, change in changes.items():
            if key[0] == "from":
                # Moves out of a directory come before the directory's deletion.
                around = next((above for above in paths.above(key[1]) if ("from", above) in changes), None)
                if around is not None:
                    sorter.add(("from", around), key)
            target = change.destination if isinstance(change, Move) else key[1] if key[0] == "to" else None
            if target is None:
                continue
            if ("from", target) in changes and ("from", target) != key:
                sorter.add(key, ("from", target))
            inside = next((above for above in paths.above(target) if above in targets), None)
            if inside is not None:
                sorter.add(key, targets[inside])
        return [changes[key] for key in sorter.static_order()]

    def _deletions(self) -> dict[tuple[str, str], Change]:
        inside: dict[str, list[Entry]] = {}
        tops: dict[str, str] = {}  # by each deleted path, the outermost path of its deletion
        for path in sorted(self._gone, key=paths.parts):
            around = self._gone.get(paths.parent(path))
            if around is not None and around.stat.kind == DIRECTORY:
                tops[path] = tops[around.path]
                inside[tops[path]].append(self._gone[path])
            else:
                tops[path], inside[path] = path, []
        return {
            ("from", path): Delete(path, self._gone[path].stat, tuple(below))
            for path, below in inside.items()
        }

    def _moves(self) -> dict[tuple[str, str], Change]:
        found: dict[tuple[str, str], Change] = {}
        for source, target in self._moved.items():
            above = paths.parent(source)
            name = source.rpartition("/")[2]
            if above in self._moved and paths.child(self._moved[above], name) == target:
                continue  # deleted with its directory
            node = self._overlay.disk(source)
            assert node is not None and node.stat is not None, "what moves is on the disk"
            entries = self._overlay.tree(source) if node.kind == DIRECTORY else ()
            along = tuple(e for e in entries if self._moved.get(e.path) == target + e.path[len(source) :])
            found["from", source] = Move(source, target, node.stat, entries=along)
        return found

    def _directory(self, path: str) -> Change:
        node = self._overlay.over[path]
        if node is None:
            return MakeDirectory(path, incidental=True)
        return MakeDirectory(path, incidental=node.mode is None, mode=node.mode, metadata=node.metadata)

    # ------------------------------------------------------------------ content

    def written(self) -> Iterator[Change]:
        """Yield the new content, and after it the modes of files whose content stays."""
        for path in self._new:
            node = self._overlay.over[path]
            assert node is not None, "what is new is planned"
            if node.kind == LINK:
                yield MakeLink(path, node.target or "", node.metadata)
                continue
            now = self._overlay.disk(path) if node.origin == path else None
            before = self._overlay.content(now) if now is not None else None
            stat = now.stat if now else None
            yield Write(path, self._bytes(node), before, stat, node.mode, node.metadata)
        for path in self._modes:
            stat, mode = self._of_mode(path)
            yield SetMode(path, stat, mode)

    def _of_mode(self, path: str) -> tuple[Stat, int]:
        node = self._overlay.over[path]
        now = None if node is None else self._on_disk(node)
        assert node is not None and now is not None and now.stat is not None, "it differs from what is there"
        return now.stat, node.mode or 0

    def shown(self) -> Iterator[Shown]:
        overlay = self._overlay
        for path, entry in self._gone.items():
            if entry.stat.kind == FILE and path not in self._new:
                yield Shown(path, lambda path=path: self._difference(path, None))  # type: ignore[misc]
        for path in self._new:
            node = overlay.over[path]
            if node is not None and is_file(node):
                yield Shown(path, lambda path=path, node=node: self._difference(path, node))  # type: ignore[misc]
        for key, change in self._moves().items():
            text = f"rename from {escape(key[1])}\nrename to {escape(self._moved[key[1]])}\n"
            yield Shown(self._moved[key[1]], lambda text=text: text)  # type: ignore[misc]
            del change
        for path in self._modes:
            stat, mode = self._of_mode(path)
            text = f"Mode {escape(path)} {octal(stat.mode or 0)} -> {octal(mode)}\n"
            yield Shown(path, lambda text=text: text)  # type: ignore[misc]

    def _difference(self, path: str, node: Node | None) -> str:
        replaced = path in self._gone or (node is not None and node.origin == path)
        now = self._overlay.disk(path) if replaced else None
        new = self._bytes(node) if node is not None else None
        old = (now.stat.size or 0) if now is not None and now.stat is not None else 0
        if max(old, length(new or b"")) > MAX_DIFF:
            before = size(old) if now is not None else "nothing"
            after = size(length(new)) if new is not None else "nothing"
            return f"Large file {escape(path)}, {before} before, {after} after\n"
        data = whole(new) if new is not None else None
        return diff(path, self._disk_bytes(path) if replaced else None, data)

    def _disk_bytes(self, path: str) -> bytes | None:
        node = self._overlay.disk(path)
        return self._overlay.read(node) if node is not None and node.kind == FILE else None

    def _bytes(self, node: Node) -> bytes | StreamedContent:
        if node.data is not None:
            return node.data
        assert node.digest is not None, "a new file has content"
        return self._content(node.digest)


def _only_executable(node: Node, now: Node) -> bool:
    """Whether the mode alone can be set: other fields stay, and no other name of the file changes with it."""
    stat = now.stat
    if node.mode is None or stat is None or stat.mode is None or node.metadata is not None:
        return False
    return not (node.mode ^ stat.mode) & ~EXECUTABLE and stat.links == 1


def _another_mode(node: Node, now: Node) -> bool:
    """Whether the mode has to be set; set-id bits depend on the owner and are no reason to write."""
    if node.mode is None or now.mode is None:
        return False
    return bool((node.mode ^ now.mode) & ~SET_ID)
