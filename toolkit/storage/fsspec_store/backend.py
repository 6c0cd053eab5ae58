"""Any fsspec file system as a confined tree that can be changed, one object per operation.

Never calls an fsspec method that expands globs in its argument. Never trusts a reported success unless the
store is known to keep every accepted write.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Delete, Entry, Move, Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.backend import FailedEntry, check_content, read_only_store
from ringfence.toolkit.storage.fsspec_store.abilities import supports_create_mode
from ringfence.toolkit.storage.fsspec_store.errors import changing, errors
from ringfence.toolkit.storage.fsspec_store.metadata import fields_in, not_kept
from ringfence.toolkit.storage.fsspec_store.rows import stat_of
from ringfence.toolkit.storage.fsspec_store.view import StoreSpot, StoreView
from ringfence.toolkit.storage.move_by_copy import move_by_copy
from ringfence.toolkit.storage.store_base import NewContent


class Store(StoreView):
    """A writable tree below `root` of the fsspec file system `fs`."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root)
        self._supports_create_mode = self.traits.exclusive_create or supports_create_mode(fs)
        self._not_kept: dict[str, NotKept] = {}  # by the destination of a move

    # ----------------------------------------------------------------- changing

    def _put_new(self, spot: StoreSpot, new: NewContent) -> NotKept:
        self._check_writable(spot.path)
        with changing(spot.path):
            self._create(spot.path, new.data)
        self._check_content(spot.path, new.data)
        return self._missing_fields(spot.path, new.metadata)

    def _put_over(self, spot: StoreSpot, new: NewContent, stat: Stat, before: bytes | None) -> NotKept:
        self._check_writable(spot.path)
        check_content(self, spot, before)
        with changing(spot.path):
            metadata = self._replace(spot.path, new.data, stat)
        self._check_content(spot.path, new.data)
        return self._missing_fields(spot.path, {**metadata, **new.metadata})

    def remove(self, spot: StoreSpot, change: Delete, temporary: str) -> Iterator[str | FailedEntry]:
        """Delete exactly the listed entries, files first; an entry that differs by now is kept."""
        self._check_writable(spot.path)
        for entry in (*reversed(change.entries), Entry(change.path, change.stat)):
            try:
                if entry.stat.kind == DIRECTORY:
                    self._remove_directory(entry.path)
                else:
                    with changing(entry.path):
                        self._remove(entry.path, entry.stat)
                    self._check_removed(entry.path)
            except CallError as error:
                if not change.entries:
                    raise
                yield FailedEntry(entry.path, error.message, error.code)
            else:
                yield entry.path
        self._keep_parent(spot)

    def _remove_directory(self, path: str) -> None:
        try:
            self.remove_directory(StoreSpot(path))
        except CallError as error:
            # Where directories are only key prefixes, the directory disappeared with its last key.
            if error.code != "not_found":
                raise

    def _keep_parent(self, spot: StoreSpot) -> None:
        """Keep a directory whose last entry was removed, as on disk, where the store can."""
        parent = paths.parent(spot.path)
        if parent != paths.ROOT and self._info(parent) is None:
            with errors(parent):
                self._fs.makedirs(self._key(parent), exist_ok=True)
            self._create_marker(parent)

    def _create_marker(self, path: str) -> None:
        """Create an empty object `name/`, which keeps a directory where directories are only key prefixes.

        Never overwrites an object that somebody else has written meanwhile.
        """
        if self._info(path) is None:
            with errors(path), suppress(FileExistsError):
                self._create(path + "/", b"")

    def move(self, source: StoreSpot, destination: StoreSpot, change: Move) -> NotKept:  # noqa: C901  the steps of a move by copy share its state
        """Copy, verify, then delete: no rename of a store is reliable."""
        self._check_writable(source.path)
        if change.over is not None:
            self._check_same(destination.path, change.over)
        else:
            self._check_free(destination.path)

        copies: dict[str, Stat] = {}

        def target_of(entry: Entry) -> str:
            return destination.path + entry.path[len(change.source) :]

        def copy(entry: Entry) -> None:
            if entry.stat.kind == DIRECTORY:
                self.make_directory(StoreSpot(target_of(entry)))
            else:
                over = change.over if entry.path == change.source else None
                copies[target_of(entry)] = self._copy(entry.path, entry.stat, target_of(entry), over)

        def restore(entry: Entry) -> None:
            if self._info(entry.path) is not None:
                return
            if entry.stat.kind == DIRECTORY:
                self.make_directory(StoreSpot(entry.path))
            else:
                self._copy(target_of(entry), copies[target_of(entry)], entry.path, None)

        def delete_copy(entry: Entry) -> None:
            if change.over is not None:  # the replaced content cannot be restored
                raise CallError("io_error", f"'{target_of(entry)}' was replaced", where=target_of(entry))
            if entry.stat.kind == DIRECTORY:
                self._remove_copy(target_of(entry))
                return
            with errors(target_of(entry)):
                self._remove(target_of(entry), copies[target_of(entry)])

        move_by_copy(
            (Entry(change.source, change.stat), *change.entries),
            copy=copy,
            remove=lambda: self.remove(source, Delete(change.source, change.stat, change.entries), ""),
            restore=restore,
            delete_copy=delete_copy,
        )
        ends = [path for path in list(self._not_kept) if f"{path}/".startswith(f"{destination.path}/")]
        return tuple(dict.fromkeys(name for path in ends for name in self._not_kept.pop(path)))

    def make_directory(self, spot: StoreSpot) -> None:
        self._check_writable(spot.path)
        with changing(spot.path):
            self._fs.mkdir(self._key(spot.path), create_parents=False)
        self._create_marker(spot.path)
        found = Stat(DIRECTORY) if self.traits.reliable else self._info(spot.path)
        if found is None or found.kind != DIRECTORY:
            raise _dropped(f"the directory '{spot.path}'", spot.path)

    def _remove_copy(self, path: str) -> None:
        """Remove a directory that was made just now, unless somebody else has put something into it."""
        try:
            self.remove_directory(StoreSpot(path))
        except CallError as error:
            if error.code != "directory_not_empty":
                raise

    def remove_directory(self, spot: StoreSpot) -> None:
        self._check_writable(spot.path)
        found, left_out = self.children(spot.path)
        if found or left_out:
            raise CallError("directory_not_empty", f"'{spot.path}' is not empty", where=spot.path)
        with errors(spot.path):
            self._fs.rmdir(self._key(spot.path))
        if not self.traits.directories and self._info(spot.path) is not None:
            with errors(spot.path):
                self._fs.rm_file(self._key(spot.path) + "/")
        self._check_removed(spot.path)

    def make_link(self, spot: StoreSpot, target: str) -> None:
        raise CallError("io_error", "This store has no links")

    def sweep(self, spot: StoreSpot, temporary: str) -> None:
        """Do nothing: a store writes one object at a time and leaves no temporary."""

    # ------------------------------------------------------------------- inside

    def _check_writable(self, path: str) -> None:
        if self.traits.read_only:
            raise read_only_store(path)

    def _check_content(self, path: str, data: bytes) -> None:
        """Raise CallError `io_error` unless the store has the content: some stores drop what they accept."""
        if self.traits.reliable:
            return
        found = self._info(path)
        whole = found is not None and found.kind == FILE and found.size in (None, len(data))
        if not whole or self._content(path) != data:
            raise _dropped(f"what was written to '{path}'", path)

    def _check_free(self, path: str) -> None:
        if self._info(path) is not None:
            raise CallError("already_exists", f"'{path}' already exists", where=path)

    def _check_removed(self, path: str) -> None:
        if not self.traits.reliable and self._info(path) is not None:
            message = f"The store did not remove '{path}', and reported no error"
            raise CallError("io_error", message, where=path, hint=_CHECK_HINT)

    def _missing_fields(self, path: str, wanted: Metadata) -> NotKept:
        """Return the wanted fields that a file does not have; the store cannot set them."""
        if not wanted:
            return ()
        row = self._row(path)
        return not_kept(wanted, {} if row is None else fields_in(row))

    # A store with conditions overrides the methods below, which compare the object right before the change.

    def _create(self, path: str, data: bytes) -> None:
        """Create an object. FileExistsError if the name is taken."""
        if not self.traits.exclusive_create and self._info(path) is not None:
            raise FileExistsError
        if self._supports_create_mode:
            self._fs.pipe_file(self._key(path), data, mode="create")
        else:
            self._fs.pipe_file(self._key(path), data)

    def _replace(self, path: str, data: bytes, judged: Stat) -> Metadata:
        """Replace the judged object; returns its old metadata."""
        metadata = self._judged_metadata(path, judged)
        self._fs.pipe_file(self._key(path), data)
        return metadata

    def _remove(self, path: str, judged: Stat) -> None:
        self._check_same(path, judged)
        self._fs.rm_file(self._key(path))

    def _copy(self, source: str, judged: Stat, target: str, over: Stat | None) -> Stat:
        """Copy the judged object to a free name, or `over` the file judged there; returns the copy's stat."""
        metadata = self._judged_metadata(source, judged)
        with errors(target):
            data = bytes(self._fs.cat_file(self._key(source)))
            if over is None:
                self._create(target, data)
            else:
                self._replace(target, data, over)
            row = self._row(target)
            if row is None or self._content(target) != data:
                raise _dropped(f"the copy '{target}'", target)
        if not_copied := not_kept(metadata, fields_in(row)):
            self._not_kept[target] = not_copied
        return stat_of(row)


_CHECK_HINT = "the store took the change without an error; a person has to check what is there now"


def _dropped(what: str, path: str) -> CallError:
    return CallError("io_error", f"The store did not keep {what}", where=path, hint=_CHECK_HINT)
