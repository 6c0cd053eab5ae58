"""Deletion by rename: quarantine the entry, compare it with the judged version, then delete it name by name.

Never removes a name that was not listed, and never goes through a link or into another mount.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from typing import NamedTuple, Protocol

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Delete, Entry, Stat
from ringfence.toolkit.protected_paths import BEING_REMOVED_PREFIX
from ringfence.toolkit.storage.backend import Missed, Tree, path_changed
from ringfence.toolkit.storage.local.directory import LocalFolder
from ringfence.toolkit.storage.local.entries import before_rename, look, lstat, translated
from ringfence.toolkit.storage.local.resolver import LocalSpot
from ringfence.toolkit.storage.tree_walk import walk

_Find = Callable[[], LocalSpot]


class _Disk(Tree, Protocol):
    fd: int

    @property
    def quarantine_name(self) -> str | None: ...

    def sync(self, fd: int) -> None: ...

    def folder(self, spot: LocalSpot) -> AbstractContextManager[LocalFolder]: ...

    def rename_new(self, source: LocalSpot, destination: LocalSpot) -> None: ...


class _Opened(NamedTuple):
    """A directory that is being emptied: what is left in it, and how to find it when it is empty."""

    held: ExitStack
    folder: LocalFolder
    listed: Iterator[Entry]
    spot: _Find
    entry: Entry


class Removal:
    """The deletion of `change` at `spot`.

    `caught` is its quarantine name, and the entry may stay there (`stays`).
    """

    def __init__(
        self, disk: _Disk, spot: LocalSpot, change: Delete, caught: LocalSpot, stays: bool = False
    ) -> None:
        self._stays = stays
        self._disk = disk
        self._spot = spot
        self._change = change
        self._caught = caught
        self._below: dict[str, list[Entry]] = {}
        for entry in change.entries:
            self._below.setdefault(paths.parent(entry.path), []).append(entry)

    def run(self) -> Iterator[str | Missed]:
        """Yield the path of each removed entry, and a Missed for each that stays.

        CallError `path_changed`, OSError.
        """
        spot, caught = self._spot, self._caught
        os.rename(spot.name, caught.name, src_dir_fd=spot.fd, dst_dir_fd=caught.fd)
        single = self._change.stat.kind != DIRECTORY and not self._stays
        if not single:  # both its names are synced together at the end, at half the cost
            self._disk.sync(spot.fd)
        if self._stays:
            self._disk.sync(caught.fd)
            self._disk.sync(self._disk.fd)  # its quarantine directory may be new
        try:
            differs = self._differs()
        except BaseException:
            self._put_back()
            raise
        if differs is not None:
            self._put_back()
            raise path_changed(differs)
        if self._stays:
            yield from (entry.path for entry in reversed(self._change.entries))
            yield self._change.path
            return
        kept = False
        for step in self.discard(caught, Entry(self._change.path, self._change.stat)):
            kept = kept or isinstance(step, Missed)
            yield step
        if kept:
            # An entry that could not be removed gets its own name back, so that nobody loses sight of it.
            self._put_back()
        # Recovery stops here once the outcome is recorded, so a power cut must not bring the name back.
        if single:
            self._disk.sync(spot.fd)
        self._disk.sync(caught.fd)

    def _differs(self) -> str | None:
        """Return the first path at which the quarantined entry is not the judged one.

        None if it is the same.
        """
        change = self._change
        now = look(self._caught.fd, self._caught.name, lstat(self._caught))
        if now.kind != change.stat.kind:
            return change.path
        if now.kind != DIRECTORY:
            # A rename changes ctime only.
            same = (now.size, now.target, before_rename(now)) == (
                change.stat.size, change.stat.target, before_rename(change.stat)
            )  # fmt: skip
            return None if same else change.path
        expected = {entry.path: entry.stat for entry in change.entries}
        for entry, _ in walk(self._disk, self._caught, change.path):
            judged = expected.pop(entry.path, None)
            if judged is None or not _same(judged, entry.stat):
                return entry.path
        return next(iter(expected), None)

    def discard(self, caught: LocalSpot, top: Entry) -> Iterator[str | Missed]:
        """Remove one entry after everything that was listed below it."""
        opened: list[_Opened] = []
        try:
            step = self._begin(opened, lambda: caught, top)
            while step is not None or opened:
                if step is not None:
                    yield step
                if not opened:
                    return
                inner = next(opened[-1].listed, None)
                if inner is not None:
                    step = self._begin(opened, partial(opened[-1].folder.spot, inner.name), inner)
                    continue
                done = opened.pop()
                done.held.close()
                step = self._removed(done.spot, done.entry)
        finally:
            while opened:
                opened.pop().held.close()

    def _begin(self, opened: list[_Opened], spot: _Find, entry: Entry) -> str | Missed | None:
        """Open a directory with listed entries and return None; remove any other entry at once."""
        below = self._below.get(entry.path, ())
        if not below:
            return self._removed(spot, entry)
        try:
            with ExitStack() as held:
                folder = held.enter_context(self._disk.folder(spot()))
                opened.append(_Opened(held.pop_all(), folder, iter(below), spot, entry))
        except CallError as error:
            return Missed(entry.path, error.message, error.code)
        return None

    def _removed(self, find: _Find, entry: Entry) -> str | Missed:
        try:
            spot = find()
            if entry.stat.kind == DIRECTORY:
                os.rmdir(spot.name, dir_fd=spot.fd)
                return entry.path
            now = look(spot.fd, spot.name, lstat(spot))
            if entry.path != self._change.path and not _same(entry.stat, now):
                raise path_changed(entry.path)
            os.unlink(spot.name, dir_fd=spot.fd)
        except (OSError, CallError) as error:
            told = error if isinstance(error, CallError) else translated(error, entry.path)
            why = error.message if isinstance(error, CallError) else error.strerror
            return Missed(entry.path, why or "not removed", told.code)
        return entry.path

    def _put_back(self) -> None:
        try:
            self._disk.rename_new(self._caught, self._spot)
        except FileExistsError:
            self._disk.sync(self._spot.fd)
            where = self._disk.quarantine_name or "beside the state"
            message = (
                f"'{self._spot.path}' was created again meanwhile; its former content is in {where},"
                f" as '{self._caught.name}'"
            )
            raise CallError(
                "path_changed", message, where=self._spot.path, data={"caught": self._caught.name}
            ) from None
        self._disk.sync(self._spot.fd)


def _same(judged: Stat, now: Stat) -> bool:
    # A directory's mtime follows its entries, which are compared one by one.
    return judged.kind == now.kind and (judged.kind == DIRECTORY or judged.identity == now.identity)


def remove_catch(disk: _Disk, folder: int, name: str) -> None:
    """Delete the quarantined entry `name` in the open directory `folder`, or what is left of it.

    The entry is renamed first: an undo that moves it back at the same time finds it complete or not at all.
    CallError or OSError.
    """
    going = LocalSpot(folder, (BEING_REMOVED_PREFIX + name,))
    with suppress(FileNotFoundError):
        os.rename(name, going.name, src_dir_fd=folder, dst_dir_fd=folder)
    remove_all(disk, going)


def remove_all(disk: _Disk, spot: LocalSpot) -> None:
    """Delete the entry at `spot` with everything below it; never through a link. CallError or OSError."""
    try:
        top = Entry(spot.path, look(spot.fd, spot.name, lstat(spot)))
    except FileNotFoundError:
        return
    below = walk(disk, spot, spot.path) if top.stat.kind == DIRECTORY else ()
    change = Delete(spot.path, top.stat, tuple(entry for entry, _ in below))
    for step in Removal(disk, spot, change, spot).discard(spot, top):
        if isinstance(step, Missed):
            raise CallError(step.code, step.why, where=step.path)
