"""S3, and servers with its protocol, as a confined tree: exact keys and few, conditional requests.

Every answer comes from a request made for it. Keys go to the store unchanged, past any rewriting by a client
library. A directory is a prefix of keys, or a marker: an empty object `name/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Delete, Entry, Move, Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.backend import BACKENDS, Missed, Traits, check_content, path_changed
from ringfence.toolkit.storage.fsspec_store.view import in_parts
from ringfence.toolkit.storage.move_by_copy import move_by_copy
from ringfence.toolkit.storage.s3.deletion import ConditionalDeletion, KeyToDelete
from ringfence.toolkit.storage.s3.keys import (
    Rows,
    errors,
    is_same,
    left_out_of,
    level_of,
    nameless,
    two_of_one_name,
)
from ringfence.toolkit.storage.s3.requests import PAGE
from ringfence.toolkit.storage.store_base import NewContent

_PAGES = 10  # keys in a flat listing; beyond that a directory is listed by itself
_KEPT = 32 << 20  # bytes of content kept between planning and applying


@dataclass(slots=True)
class S3Spot:
    """A key by its path in the workspace, with what the request that found it has also shown."""

    path: str
    parent: bool | None = None  # whether its directory has any entry
    alone: bool | None = None  # whether it is the only entry of its directory
    marked: bool = False  # whether its directory has a marker
    below: Rows | None = None  # everything below it, if a larger listing has shown it


class S3Folder:
    """A directory. One flat listing also serves the directories below it, unless it is too long.

    After a scan `left_out` holds the keys in the directory that no path names, relative to it.
    """

    def __init__(self, store: S3, spot: S3Spot) -> None:
        self._store = store
        self._path = spot.path
        self._flat = spot.below
        self.left_out: list[str] = []

    def scan(self) -> list[tuple[str, Stat]]:
        if self._flat is None:
            self._flat = self._store.flat(self._path)
        rows = self._store.level(self._path) if self._flat is None else self._flat
        self.left_out = left_out_of(rows)
        return level_of(rows)

    def spot(self, name: str) -> S3Spot:
        below = None
        if self._flat is not None:
            start = name + "/"
            below = {key[len(start) :]: stat for key, stat in self._flat.items() if key.startswith(start)}
        return S3Spot(paths.child(self._path, name), below=below)


class S3(ConditionalDeletion):
    """The keys below `root` (`bucket` or `bucket/prefix`) of an s3fs file system."""

    fold = False

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root)
        self._large: set[str] = set()
        self._kept: dict[tuple[str, str], bytes] = {}

    @property
    def traits(self) -> Traits:
        """The guarantees, as far as the server was probed.

        Conditions that were not needed yet count as kept.
        """
        deletes = self.known("delete") or self._answers.get("delete many", False)
        return replace(
            BACKENDS["s3"],
            exclusive_create=self.known("create"),
            conditional=self.known("replace"),
            conditional_delete=deletes,
            conditional_move=deletes
            and (self.known("copy from", "copy to", "copy over") or self.known("create", "replace")),
        )

    def close(self) -> None:
        """Do nothing: the client belongs to the file system."""

    # ------------------------------------------------------------------ reading

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> S3Spot:
        path = paths.lexical(names)
        self._key(path)
        return S3Spot(path)

    def is_link(self, names: tuple[str, ...]) -> bool:
        return False

    def release(self, spot: S3Spot) -> None:
        """Do nothing: no handle is open."""

    def stat(self, spot: S3Spot) -> Stat | None:
        """Return the stat from a listing of the parent directory, which also shows if the parent exists."""
        path = spot.path
        if path == paths.ROOT:
            return Stat(DIRECTORY, 0)
        parent, name = paths.parent(path), path.rpartition("/")[2]
        if parent not in self._large:
            rows, more = self._page(parent, "", level=True)
            found = dict(level_of(rows))
            if not more or name in found or any(other > name + "0" for other in found):
                spot.parent = bool(rows) or parent == paths.ROOT
                spot.alone = not (set(found) - {name}) and not more
                spot.marked = "" in rows
                return self._really(path, found.get(name))
            self._large.add(parent)  # a hint for next time; it answers nothing by itself
        spot.parent, spot.alone = True, False
        return self._exact(path)

    def read(self, spot: S3Spot, limit: int | None = None, known: Stat | None = None) -> bytes:
        """Return the bytes of an object.

        Of exactly the `known` version perhaps those that were read before.
        """
        kept = self._kept.pop((spot.path, known.identity), None) if known else None
        if kept is not None:
            return kept
        with errors(spot.path):
            try:
                answer = self._get(spot.path, known)
            except FileNotFoundError:
                self._no_file(spot.path)
                raise
            if limit is not None and answer["ContentLength"] > limit:
                answer["Body"].close()
                message = f"'{spot.path}' is larger than {limit} bytes"
                raise CallError("too_large", message, where=spot.path)
            data = self._body(answer["Body"])
        self.note_attached(spot.path, answer)
        self._keep(spot.path, str(answer["ETag"]), data)
        return data

    def chunks(self, spot: S3Spot, known: Stat | None = None) -> Iterator[bytes]:
        key = self._key(spot.path)

        def part(start: int, end: int) -> bytes:
            return self._body(self._call("get_object", Key=key, Range=f"bytes={start}-{end - 1}")["Body"])

        return in_parts(self, spot, part)

    def metadata(self, spot: S3Spot, stat: Stat, *, copied: bool = False) -> Metadata | None:
        if stat.kind == DIRECTORY:
            return None
        with errors(spot.path):
            return self.metadata_of(spot.path, stat)

    @contextmanager
    def folder(self, spot: S3Spot) -> Iterator[S3Folder]:
        yield S3Folder(self, spot)

    def flat(self, path: str) -> Rows | None:
        """Return all keys below a directory, or None when there are too many for a single directory."""
        rows: Rows = {}
        after = ""
        for _ in range(_PAGES):
            found, after = self._page(path, "", start=after)
            rows |= found
            if not after:
                return rows
        return None

    def level(self, path: str) -> Rows:
        """Return the keys directly in a directory, and the names of its directories, each with a slash."""
        found, more = self._page(path, "", level=True)
        while more:
            rows, more = self._page(path, "", start=more, level=True)
            found |= rows
        return found

    def rights(self, spot: S3Spot, stat: Stat) -> tuple[bool, bool]:
        return True, True

    def changeable(self, spot: S3Spot, *, leaves: bool) -> bool:
        return True  # only an attempt shows it

    def missing(self, spot: S3Spot) -> tuple[str, ...]:
        """Return the parent directories without any key. CallError `not_a_directory` for a file there."""
        if spot.parent or paths.parent(spot.path) == paths.ROOT:
            return ()
        absent: list[str] = []
        path = paths.parent(spot.path)
        while path != paths.ROOT:
            found = self.stat(S3Spot(path))
            if found is not None and found.kind != DIRECTORY:
                raise CallError("not_a_directory", f"'{path}' is not a directory", where=path)
            if found is not None:
                break
            absent.append(path)
            path = paths.parent(path)
        return tuple(reversed(absent))

    # ----------------------------------------------------------------- changing

    def check(self, spot: S3Spot) -> None:
        """Do nothing: a key stays the same key."""

    def _put_new(self, spot: S3Spot, new: NewContent) -> NotKept:
        """Create an object on condition that the key is free.

        Checked before, on a server without conditions.
        """
        with errors(spot.path):
            return self.put(spot.path, new.data, None, new.metadata).not_kept

    def _put_over(self, spot: S3Spot, new: NewContent, stat: Stat, before: bytes | None) -> NotKept:
        check_content(self, spot, before)
        with errors(spot.path, taken="path_changed"):
            attached = {**self.metadata_of(spot.path, stat), **new.metadata}
            return self.put(spot.path, new.data, stat, attached).not_kept

    def remove(self, spot: S3Spot, change: Delete, temporary: str) -> Iterator[str | Missed]:
        """Delete exactly the listed keys, each in its judged version."""
        if change.stat.kind == DIRECTORY:
            markers = self._as_judged(change.path, change.entries)
            self._keep_parent(spot)
            yield from self._delete_keys(change.path, change.entries, markers)
            return
        self._keep_parent(spot)
        for step in self.delete([KeyToDelete(change.path, change.stat.identity, change.path)]):
            if isinstance(step, Missed):
                raise CallError(step.code, step.why, where=step.path)
            yield step

    def _delete_keys(self, top: str, entries: tuple[Entry, ...], markers: Rows) -> Iterator[str | Missed]:
        """Delete the objects of a tree, then the markers of its directories that are empty."""
        files = [e for e in reversed(entries) if e.stat.kind != DIRECTORY]
        holding: set[str] = set()  # directories with remaining entries
        for step in self.delete([KeyToDelete(e.path, e.stat.identity, e.path) for e in files]):
            if isinstance(step, Missed):
                above = paths.parent(step.path)
                while above not in holding and above != paths.parent(top):
                    holding.add(above)
                    above = paths.parent(above)
            yield step
        directories = [*(e.path for e in reversed(entries) if e.stat.kind == DIRECTORY), top]
        for path in directories:
            if path in holding:
                yield Missed(path, "it still has an entry", "directory_not_empty")
            elif path not in markers:
                yield path
        marked = [path for path in directories if path in markers and path not in holding]
        yield from self.delete([KeyToDelete(path + "/", markers[path].identity, path) for path in marked])

    def move(self, source: S3Spot, destination: S3Spot, change: Move) -> NotKept:  # noqa: C901  the steps of a move by copy share its state
        """Copy each object on condition that it is the judged one and its new key free, then delete.

        Where either is refused, everything is restored.
        """
        tree = change.stat.kind == DIRECTORY
        markers = self._as_judged(change.source, change.entries) if tree else {}
        copies: dict[str, Stat] = {}
        lost: set[str] = set()

        def at(entry: Entry) -> str:
            return destination.path + entry.path[len(change.source) :]

        def copy(entry: Entry) -> None:
            target = at(entry)
            over = change.over if entry.path == change.source else None
            with errors(target, taken="path_changed" if over else "already_exists"):
                if entry.stat.kind == DIRECTORY:
                    if not self.mark(target):
                        raise FileExistsError
                else:
                    made = self.copy(entry.path, entry.stat, target, over)
                    copies[target] = entry.stat._replace(identity=made.tag)
                    lost.update(made.not_kept)

        def remove() -> Iterator[str | Missed]:
            self._keep_parent(source)
            if tree:
                yield from self._delete_keys(change.source, change.entries, markers)
            else:
                yield from self.delete([KeyToDelete(change.source, change.stat.identity, change.source)])

        def give_back(entry: Entry) -> None:
            with errors(entry.path):
                if entry.stat.kind != DIRECTORY:
                    now = self._exact(entry.path)
                    if now is None or now.kind == DIRECTORY:
                        self.copy(at(entry), copies[at(entry)], entry.path, None)
                elif entry.path in markers:
                    self.mark(entry.path)

        def uncopy(entry: Entry) -> None:
            target = at(entry)
            if change.over is not None:  # its old content is gone
                raise CallError("io_error", f"'{target}' was replaced", where=target)
            if entry.stat.kind != DIRECTORY:
                doomed = [KeyToDelete(target, copies[target].identity, target)]
            else:  # the marker stays if somebody put something into the directory
                marker = self._marker(target)
                doomed = (
                    [KeyToDelete(target + "/", marker.identity, target)] if marker and not marker.size else []
                )
            for step in self.delete(doomed):
                if isinstance(step, Missed):
                    raise CallError(step.code, step.why, where=step.path)

        move_by_copy(
            (Entry(change.source, change.stat), *change.entries),
            copy=copy,
            remove=remove,
            give_back=give_back,
            uncopy=uncopy,
        )
        return tuple(sorted(lost))

    def make_directory(self, spot: S3Spot) -> None:
        with errors(spot.path):
            if self._exact(spot.path) is not None or not self.mark(spot.path):
                raise FileExistsError

    def remove_directory(self, spot: S3Spot) -> None:
        with errors(spot.path):
            rows = self.level(spot.path)
            left_out = left_out_of(rows)
            if left_out:
                raise nameless(spot.path, left_out[0])
            if level_of(rows):
                message = f"'{spot.path}' is not empty"
                raise CallError("directory_not_empty", message, where=spot.path)
        self._keep_parent(spot)
        for step in self._delete_keys(spot.path, (), {spot.path: rows[""]} if "" in rows else {}):
            if isinstance(step, Missed):
                raise CallError(step.code, step.why, where=step.path)

    def make_link(self, spot: S3Spot, target: str) -> None:
        raise CallError("io_error", "This store has no links")

    def sweep(self, spot: S3Spot, temporary: str) -> None:
        """Do nothing: a store writes one object at a time and leaves no temporary."""

    # ------------------------------------------------------------------- inside

    def _keep(self, path: str, tag: str, data: bytes) -> None:
        """Keep content from planning to applying, because the history stores it soon.

        The tag proves it is the same.
        """
        self._kept[path, tag] = data
        while sum(map(len, self._kept.values())) > _KEPT or len(self._kept) > 10 * PAGE:
            del self._kept[next(iter(self._kept))]

    def forget_content(self) -> None:
        """Drop content that an earlier call read."""
        self._kept.clear()

    def _no_file(self, path: str) -> None:
        found = self._exact(path)
        if found is not None and found.kind == DIRECTORY:
            raise IsADirectoryError

    def _as_judged(self, path: str, entries: tuple[Entry, ...]) -> Rows:
        """Return the markers of a tree.

        CallError for a changed tree, or one with keys that no path names.
        """
        now, markers, left_out = self._tree(path)
        if left_out:
            raise nameless(path, left_out[0])
        judged = {entry.path: entry.stat for entry in entries}
        for each in (*judged, *now):
            if each not in now or each not in judged or not is_same(judged[each], now[each]):
                above = now.get(paths.parent(each))
                if above is not None and above.kind == FILE:
                    raise two_of_one_name(paths.parent(each))
                raise path_changed(each)
        return markers

    def _keep_parent(self, spot: S3Spot) -> None:
        """Create a marker for a directory that is about to lose its last key, so that it stays as on disk."""
        parent = paths.parent(spot.path)
        if parent == paths.ROOT or spot.alone is False or spot.marked:
            return
        with errors(parent):
            self.mark(parent)
