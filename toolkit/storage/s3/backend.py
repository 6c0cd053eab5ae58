"""S3, and servers with its protocol, as a confined tree that can be changed, by few, conditional requests.

Every answer comes from a request made for it. Keys go to the store unchanged: no client library rewrites
them. A directory is a prefix of keys, or a marker: an empty object `name/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Delete, Entry, Move, Stat
from ringfence.toolkit.plan.entries import LooksFor
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.backend import (
    BACKENDS,
    FailedEntry,
    Traits,
    check_content,
    complete,
    path_changed,
)
from ringfence.toolkit.storage.first_look import MAX_CONTENT, Look
from ringfence.toolkit.storage.fsspec_store.view import in_ranges
from ringfence.toolkit.storage.move_by_copy import move_by_copy
from ringfence.toolkit.storage.s3.deletion import ConditionalDeletion, KeyToDelete
from ringfence.toolkit.storage.s3.keys import (
    Rows,
    children_of,
    errors,
    is_same,
    left_out_of,
    name_conflict,
    stat_in,
    unaddressable,
)
from ringfence.toolkit.storage.s3.view import S3Spot, S3View
from ringfence.toolkit.storage.store_base import NewContent


class S3(S3View, ConditionalDeletion):
    """The keys below `root` (`bucket` or `bucket/prefix`) of an s3fs file system."""

    @property
    def traits(self) -> Traits:
        """The guarantees, as far as the server was probed; conditions not needed yet count as supported."""
        deletes = self.may_support("delete") or self._support.get("delete many", False)
        copies = self.may_support("copy from", "copy to", "copy over") or self.may_support(
            "create", "replace"
        )
        return replace(
            BACKENDS["s3"],
            exclusive_create=self.may_support("create"),
            conditional=self.may_support("replace"),
            conditional_delete=deletes,
            conditional_move=deletes and copies,
        )

    # ------------------------------------------------------------------ reading

    def read(self, spot: S3Spot, limit: int | None = None, judged: Stat | None = None) -> bytes:
        """Return the bytes of an object; of the `judged` version perhaps those that were read before."""
        content = self.known.get(spot.path, judged) if judged else None
        if judged is not None and content is not None:
            if limit is not None and len(content) > limit:
                raise _too_large(spot.path, limit)
            if self.needs_metadata:
                with errors(spot.path):
                    self.metadata_of(spot.path, judged)  # here, where several files are read at once
            return content
        with errors(spot.path):
            try:
                reply = self._get(spot.path, judged)
            except FileNotFoundError:
                self._refuse_directory(spot.path)
                raise
            if limit is not None and reply["ContentLength"] > limit:
                reply["Body"].close()
                raise _too_large(spot.path, limit)
            return self._content_in(spot.path, reply)

    def look(self, spot: S3Spot, wanted: LooksFor, beside: Sequence[S3Spot]) -> Look:
        """Look at a path; at a file that the call reads by the request that brings its content."""
        read = self._read_first(spot.path) if wanted == "content" and spot.path != paths.ROOT else None
        return super().look(spot, wanted, beside) if read is None else read

    def _read_first(self, path: str) -> Look | None:
        """Return stat and content of an object by one request; None if there is none, or no right to it."""
        with errors(path):
            try:
                reply = self._call("get_object", Key=self._key(path))
            except (FileNotFoundError, PermissionError):
                return None
            stat = stat_in(reply)
            if (stat.size or 0) > MAX_CONTENT:
                reply["Body"].close()
                self.remember_metadata(path, reply)
                return Look(stat)
            return Look(stat, self._content_in(path, reply))

    def _content_in(self, path: str, reply: Any) -> bytes:
        """Return the content in the reply to a GET, and remember that version with its metadata."""
        data = self._read_body(reply["Body"])
        self.remember_metadata(path, reply)
        self.known.put(path, stat_in(reply), data)
        return data

    def chunks(self, spot: S3Spot, judged: Stat | None = None) -> Iterator[bytes]:
        key = self._key(spot.path)

        def part(start: int, end: int) -> bytes:
            reply = self._call("get_object", Key=key, Range=f"bytes={start}-{end - 1}")
            return self._read_body(reply["Body"])

        return in_ranges(self, spot, part)

    def metadata(self, spot: S3Spot, stat: Stat, *, copied: bool = False) -> Metadata | None:
        if stat.kind == DIRECTORY:
            return None
        with errors(spot.path):
            return self.metadata_of(spot.path, stat)

    # ----------------------------------------------------------------- changing

    def _put_new(self, spot: S3Spot, new: NewContent) -> NotKept:
        """Create an object on condition that the key is free; without conditions that is checked before."""
        with errors(spot.path):
            return self.put(spot.path, new.data, None, new.metadata).not_kept

    def _put_over(self, spot: S3Spot, new: NewContent, stat: Stat, before: bytes | None) -> NotKept:
        if not self._is_proved_by_tag(spot.path, stat, before):
            check_content(self, spot, before)
        with errors(spot.path, taken="path_changed"):
            metadata = {**self.metadata_of(spot.path, stat), **new.metadata}
            return self.put(spot.path, new.data, stat, metadata).not_kept

    def remove(self, spot: S3Spot, change: Delete, temporary: str) -> Iterator[str | FailedEntry]:
        """Delete exactly the listed keys, each in its judged version."""
        if change.stat.kind == DIRECTORY:
            markers = self._check_tree(change.path, change.entries)
            self._keep_parent(spot)
            yield from self._delete_keys(change.path, change.entries, markers)
            return
        self._keep_parent(spot)
        for step in self.delete([KeyToDelete(change.path, change.stat.identity, change.path)]):
            if isinstance(step, FailedEntry):
                raise step.error()
            yield step

    def _delete_keys(
        self, top: str, entries: tuple[Entry, ...], markers: Rows
    ) -> Iterator[str | FailedEntry]:
        """Delete the objects of a tree, then the markers of its directories that are empty."""
        files = [e for e in reversed(entries) if e.stat.kind != DIRECTORY]
        not_empty: set[str] = set()  # directories with remaining entries
        for step in self.delete([KeyToDelete(e.path, e.stat.identity, e.path) for e in files]):
            if isinstance(step, FailedEntry):
                above = paths.parent(step.path)
                while above not in not_empty and above != paths.parent(top):
                    not_empty.add(above)
                    above = paths.parent(above)
            yield step
        directories = [*(e.path for e in reversed(entries) if e.stat.kind == DIRECTORY), top]
        for path in directories:
            if path in not_empty:
                yield FailedEntry(path, "it still has an entry", "directory_not_empty")
            elif path not in markers:
                yield path
        marked = [path for path in directories if path in markers and path not in not_empty]
        yield from self.delete([KeyToDelete(path + "/", markers[path].identity, path) for path in marked])

    def move(self, source: S3Spot, destination: S3Spot, change: Move) -> NotKept:  # noqa: C901  the steps of a move by copy share its state
        """Copy each object on condition that it is the judged one and the new key is free, then delete.

        Where either condition fails, everything is restored.
        """
        tree = change.stat.kind == DIRECTORY
        markers = self._check_tree(change.source, change.entries) if tree else {}
        copies: dict[str, Stat] = {}
        not_kept: set[str] = set()

        def target_of(entry: Entry) -> str:
            return destination.path + entry.path[len(change.source) :]

        def copy(entry: Entry) -> None:
            target = target_of(entry)
            over = change.over if entry.path == change.source else None
            with errors(target, taken="path_changed" if over else "already_exists"):
                if entry.stat.kind == DIRECTORY:
                    if not self.create_marker(target):
                        raise FileExistsError
                else:
                    new = self.copy(entry.path, entry.stat, target, over)
                    copies[target] = entry.stat._replace(identity=new.tag)
                    not_kept.update(new.not_kept)

        def remove() -> Iterator[str | FailedEntry]:
            self._keep_parent(source)
            if tree:
                yield from self._delete_keys(change.source, change.entries, markers)
            else:
                yield from self.delete([KeyToDelete(change.source, change.stat.identity, change.source)])

        def restore(entry: Entry) -> None:
            with errors(entry.path):
                if entry.stat.kind != DIRECTORY:
                    now = self._exact(entry.path)
                    if now is None or now.kind == DIRECTORY:
                        self.copy(target_of(entry), copies[target_of(entry)], entry.path, None)
                elif entry.path in markers:
                    self.create_marker(entry.path)

        def delete_copy(entry: Entry) -> None:
            target = target_of(entry)
            if change.over is not None:  # the replaced content cannot be restored
                raise CallError("io_error", f"'{target}' was replaced", where=target)
            self._delete_copy(target, copies.get(target))

        move_by_copy(
            (Entry(change.source, change.stat), *change.entries),
            copy=copy,
            remove=remove,
            restore=restore,
            delete_copy=delete_copy,
        )
        return tuple(sorted(not_kept))

    def _delete_copy(self, path: str, copied: Stat | None) -> None:
        """Delete an object that a move made, or a directory's marker (None) without content."""
        if copied is not None:
            complete(self.delete([KeyToDelete(path, copied.identity, path)]))
            return
        marker = self._marker(path)
        if marker is not None and not marker.size:
            complete(self.delete([KeyToDelete(path + "/", marker.identity, path)]))

    def make_directory(self, spot: S3Spot) -> None:
        with errors(spot.path):
            if self._exact(spot.path) is not None or not self.create_marker(spot.path):
                raise FileExistsError

    def remove_directory(self, spot: S3Spot) -> None:
        with errors(spot.path):
            rows = self.children(spot.path)
            left_out = left_out_of(rows)
            if left_out:
                raise unaddressable(spot.path, left_out[0])
            if children_of(rows):
                message = f"'{spot.path}' is not empty"
                raise CallError("directory_not_empty", message, where=spot.path)
        self._keep_parent(spot)
        complete(self._delete_keys(spot.path, (), {spot.path: rows[""]} if "" in rows else {}))

    def make_link(self, spot: S3Spot, target: str) -> None:
        raise CallError("io_error", "This store has no links")

    def sweep(self, spot: S3Spot, temporary: str) -> None:
        """Do nothing: a store writes one object at a time and leaves no temporary."""

    # ------------------------------------------------------------------- inside

    def _is_proved_by_tag(self, path: str, stat: Stat, before: bytes | None) -> bool:
        """Whether the condition of a PUT proves that the content is still `before`: the reply that brought
        that content had the judged tag, and the server supports the condition.
        """
        if before is None or self.known.get(path, stat) != before:
            return False
        with errors(path):
            return self.supports("content", "replace")

    def forget_content(self) -> None:
        """Drop content that an earlier call read."""
        self.known.clear()

    def _refuse_directory(self, path: str) -> None:
        found = self._exact(path)
        if found is not None and found.kind == DIRECTORY:
            raise IsADirectoryError

    def _check_tree(self, path: str, entries: tuple[Entry, ...]) -> Rows:
        """Return the markers of a tree. CallError for a changed tree, or one with keys that no path names."""
        now, markers, left_out = self._tree(path)
        if left_out:
            raise unaddressable(path, left_out[0])
        judged = {entry.path: entry.stat for entry in entries}
        for each in (*judged, *now):
            if each not in now or each not in judged or not is_same(judged[each], now[each]):
                above = now.get(paths.parent(each))
                if above is not None and above.kind == FILE:
                    raise name_conflict(paths.parent(each))
                raise path_changed(each)
        return markers

    def _keep_parent(self, spot: S3Spot) -> None:
        """Create a marker for a directory that is about to lose its last key, so that it stays as on disk."""
        parent = paths.parent(spot.path)
        if parent == paths.ROOT or spot.only_entry is False or spot.has_marker:
            return
        with errors(parent):
            self.create_marker(parent)


def _too_large(path: str, limit: int) -> CallError:
    return CallError("too_large", f"'{path}' is larger than {limit} bytes", where=path)
