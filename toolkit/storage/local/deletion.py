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
from ringfence.toolkit.storage.backend import FailedEntry, Folder, Tree, complete, path_changed
from ringfence.toolkit.storage.local.directory import LocalFolder
from ringfence.toolkit.storage.local.entries import (
    before_rename,
    lstat,
    stat_with_target,
    translated,
    version_of,
)
from ringfence.toolkit.storage.local.spot import LocalSpot
from ringfence.toolkit.storage.tree_walk import walk

_Resolve = Callable[[], LocalSpot]


class _Disk(Tree, Protocol):
    fd: int

    @property
    def quarantine_name(self) -> str | None: ...

    def sync(self, fd: int) -> None: ...

    def folder(self, spot: LocalSpot) -> AbstractContextManager[LocalFolder]: ...

    def rename_new(self, source: LocalSpot, destination: LocalSpot) -> None: ...


class _Opened(NamedTuple):
    """A directory that is being emptied: the entries left in it, and how to resolve it when it is empty."""

    handles: ExitStack
    folder: LocalFolder
    left: Iterator[Entry]
    resolve: _Resolve
    entry: Entry


class Removal:
    """The deletion of `change` at `spot`.

    `quarantined` is the spot of the entry in the quarantine; with `keep` the entry stays there.
    """

    def __init__(
        self, disk: _Disk, spot: LocalSpot, change: Delete, quarantined: LocalSpot, keep: bool = False
    ) -> None:
        self._keep = keep
        self._disk = disk
        self._spot = spot
        self._change = change
        self._quarantined = quarantined
        self._below: dict[str, list[Entry]] = {}
        if not keep:
            for entry in change.entries:
                self._below.setdefault(paths.parent(entry.path), []).append(entry)

    def run(self) -> Iterator[str | FailedEntry]:
        """Yield the path of each removed entry, and a FailedEntry for each that stays.

        CallError `path_changed`, OSError.
        """
        spot, quarantined = self._spot, self._quarantined
        os.rename(spot.name, quarantined.name, src_dir_fd=spot.fd, dst_dir_fd=quarantined.fd)
        single = self._change.stat.kind != DIRECTORY and not self._keep
        if not single:  # else both names are synced together at the end, at half the cost
            self._disk.sync(spot.fd)
        if self._keep:
            self._disk.sync(quarantined.fd)
            self._disk.sync(self._disk.fd)  # the quarantine directory may be new
        try:
            differs = self._differs()
        except BaseException:
            self._put_back()
            raise
        if differs is not None:
            self._put_back()
            raise path_changed(differs)
        if self._keep:
            yield from (entry.path for entry in reversed(self._change.entries))
            yield self._change.path
            return
        incomplete = False
        for step in self.discard(quarantined, Entry(self._change.path, self._change.stat)):
            incomplete = incomplete or isinstance(step, FailedEntry)
            yield step
        if incomplete:
            # An entry that could not be removed gets its own name back, where people will see it.
            self._put_back()
        # Recovery does not look again once the outcome is recorded: a power cut must not bring the name back.
        if single:
            self._disk.sync(spot.fd)
        self._disk.sync(quarantined.fd)

    def _differs(self) -> str | None:
        """Return the first path at which the entry is not the judged one; None if it is the same."""
        change = self._change
        now = stat_with_target(self._quarantined.fd, self._quarantined.name, lstat(self._quarantined))
        if now.kind != change.stat.kind:
            return change.path
        if now.kind != DIRECTORY:
            # A rename changes ctime only.
            same = (now.size, now.target, before_rename(now)) == (
                change.stat.size, change.stat.target, before_rename(change.stat)
            )  # fmt: skip
            return None if same else change.path
        return self._differs_below(now)

    def _differs_below(self, directory: Stat) -> str | None:
        """Return the first path below at which something differs; each directory is compared at once."""
        judged: dict[str, dict[str, str]] = {}
        for path, stat in self._change.entries:
            above, _, name = path.rpartition("/")
            judged.setdefault(above, {})[name] = version_of(stat)
        differing: list[str] = []

        def compare(path: str, folder: Folder) -> Iterator[Entry]:
            assert isinstance(folder, LocalFolder), "the quarantine is on this disk"
            found, expected = folder.versions(), judged.pop(path, {})
            if found != expected:
                changed = {name for name, _ in found.items() ^ expected.items()}
                differing.append(paths.child(path, min(changed)))
                return iter(())
            below = sorted(name for name, version in found.items() if version == DIRECTORY)
            return (Entry(paths.child(path, name), directory) for name in below)

        for _ in walk(self._disk, self._quarantined, self._change.path, compare):
            if differing:
                break
        return next(iter(differing or judged), None)

    def discard(self, quarantined: LocalSpot, top: Entry) -> Iterator[str | FailedEntry]:
        """Remove one entry after everything that was listed below it."""
        opened: list[_Opened] = []
        try:
            step = self._open_or_remove(opened, lambda: quarantined, top)
            while step is not None or opened:
                if step is not None:
                    yield step
                if not opened:
                    return
                inner = next(opened[-1].left, None)
                if inner is not None:
                    step = self._open_or_remove(opened, partial(opened[-1].folder.spot, inner.name), inner)
                    continue
                done = opened.pop()
                done.handles.close()
                step = self._remove_entry(done.resolve, done.entry)
        finally:
            while opened:
                opened.pop().handles.close()

    def _open_or_remove(
        self, opened: list[_Opened], resolve: _Resolve, entry: Entry
    ) -> str | FailedEntry | None:
        """Open a directory with listed entries and return None; remove any other entry at once."""
        below = self._below.get(entry.path, ())
        if not below:
            return self._remove_entry(resolve, entry)
        try:
            with ExitStack() as handles:
                folder = handles.enter_context(self._disk.folder(resolve()))
                opened.append(_Opened(handles.pop_all(), folder, iter(below), resolve, entry))
        except CallError as error:
            return FailedEntry(entry.path, error.message, error.code)
        return None

    def _remove_entry(self, resolve: _Resolve, entry: Entry) -> str | FailedEntry:
        try:
            spot = resolve()
            if entry.stat.kind == DIRECTORY:
                os.rmdir(spot.name, dir_fd=spot.fd)
                return entry.path
            now = stat_with_target(spot.fd, spot.name, lstat(spot))
            if entry.path != self._change.path and not _is_same(entry.stat, now):
                raise path_changed(entry.path)
            os.unlink(spot.name, dir_fd=spot.fd)
        except (OSError, CallError) as error:
            call_error = error if isinstance(error, CallError) else translated(error, entry.path)
            why = error.message if isinstance(error, CallError) else error.strerror
            return FailedEntry(entry.path, why or "not removed", call_error.code)
        return entry.path

    def _put_back(self) -> None:
        try:
            self._disk.rename_new(self._quarantined, self._spot)
        except FileExistsError:
            self._disk.sync(self._spot.fd)
            where = self._disk.quarantine_name or "beside the state"
            message = (
                f"'{self._spot.path}' was created again meanwhile; its former content is in {where},"
                f" as '{self._quarantined.name}'"
            )
            raise CallError(
                "path_changed", message, where=self._spot.path, data={"caught": self._quarantined.name}
            ) from None
        self._disk.sync(self._spot.fd)


def _is_same(judged: Stat, now: Stat) -> bool:
    return version_of(judged) == version_of(now)


def remove_quarantined(disk: _Disk, folder: int, name: str) -> None:
    """Delete the quarantined entry `name` in the open directory `folder`, or the remains of it.

    The entry is renamed first, so that a concurrent undo finds it complete or not at all. CallError, OSError.
    """
    renamed = LocalSpot(folder, (BEING_REMOVED_PREFIX + name,))
    with suppress(FileNotFoundError):
        os.rename(name, renamed.name, src_dir_fd=folder, dst_dir_fd=folder)
    remove_all(disk, renamed)


def remove_all(disk: _Disk, spot: LocalSpot) -> None:
    """Delete the entry at `spot` with everything below it; never through a link. CallError or OSError."""
    try:
        top = Entry(spot.path, stat_with_target(spot.fd, spot.name, lstat(spot)))
    except FileNotFoundError:
        return
    below = walk(disk, spot, spot.path) if top.stat.kind == DIRECTORY else ()
    change = Delete(spot.path, top.stat, tuple(entry for entry, _ in below))
    complete(Removal(disk, spot, change, spot).discard(spot, top))
