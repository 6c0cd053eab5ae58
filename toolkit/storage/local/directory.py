"""Open directory of the workspace: lists its entries, and gives their spots.

In a very deep walk only the innermost directories stay open. An outer one is opened again when needed, from
the outermost down, and only if it is still the same directory in the same place.
"""

from __future__ import annotations

import os
from operator import itemgetter
from stat import S_ISLNK

from ringfence.policy.byte_names import from_disk, to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.plan.entries import DIRECTORY, LINK, OTHER, Stat
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.local.entries import (
    LIST,
    errors,
    open_regular_in,
    read_all,
    stat_of,
    stat_with_target,
    translated,
    version_in,
)
from ringfence.toolkit.storage.local.spot import LocalSpot
from ringfence.toolkit.storage.local.syscalls import Kernel, descend

KEPT_OPEN = 64  # a process has 1,024 descriptors by default, and may walk in several threads


class LocalFolder:
    """The directory open as `fd`, which it closes; `above` is the open directory that lists it, if any."""

    def __init__(self, fd: int, names: tuple[str, ...], kernel: Kernel, above: object = None) -> None:
        self.fd = fd
        self.names = names
        self._above = paths.child(paths.join(names), "")
        self._kernel = kernel
        self.above = above if isinstance(above, LocalFolder) else None
        self.top: LocalFolder = self if self.above is None else self.above.top
        self._identity: tuple[int, int] | None = None
        outer = self
        for _ in range(KEPT_OPEN):
            if outer.above is None:
                return
            outer = outer.above
        outer.set_aside()

    def scan(self) -> list[tuple[str, Stat]]:
        """Return name and stat of each entry, by name; entries that vanish meanwhile are left out."""
        found = []
        with errors(paths.join(self.names)), os.scandir(self._open()) as entries:
            for entry in entries:
                try:
                    info = entry.stat(follow_symlinks=False)
                    stat = (
                        stat_with_target(self.fd, entry.name, info)
                        if S_ISLNK(info.st_mode)
                        else stat_of(info)
                    )
                except FileNotFoundError:
                    continue
                found.append((from_disk(entry.name), stat))
        found.sort(key=itemgetter(0))
        return found

    def kinds(self) -> tuple[list[str], list[tuple[str, Stat]]]:
        """Return the names of the regular files, and name and kind of all other entries, in no order; looks
        at no entry, because the directory has both.
        """
        files: list[str] = []
        kinds: list[tuple[str, Stat]] = []
        with errors(paths.join(self.names)), os.scandir(self._open()) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
                else:
                    kinds.append((from_disk(entry.name), _kind_of(entry)))
        every = "".join(files)
        if not every.isascii() or "\\" in every:
            files = list(map(from_disk, files))
        return files, kinds

    def versions(self) -> dict[str, str]:
        """Return the version of each entry by name; entries that vanish meanwhile are left out."""
        found = {}
        with errors(paths.join(self.names)), os.scandir(self._open()) as entries:
            for entry in entries:
                try:
                    found[from_disk(entry.name)] = version_in(entry.stat(follow_symlinks=False))
                except FileNotFoundError:
                    continue
        return found

    def read(self, name: str, limit: int | None, judged: Stat | None) -> bytes:
        """Return the bytes of a regular file in the directory, as `Local.read` does, without a spot."""
        path = self._above + name
        try:
            fd, info = open_regular_in(self._open(), to_disk(name), path)
            try:
                return read_all(fd, info, limit, path, judged)
            finally:
                os.close(fd)
        except OSError as error:
            raise translated(error, path) from None

    def spot(self, name: str) -> LocalSpot:
        return LocalSpot(self._open(), (*self.names, name), folder=self)

    def close(self) -> None:
        """Close the descriptor; a second call does nothing."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def set_aside(self) -> None:
        """Close the descriptor until the directory is used again."""
        if self.fd >= 0 and self is not self.top:
            info = os.fstat(self.fd)
            self._identity = info.st_dev, info.st_ino
            self.close()

    def _open(self) -> int:
        """Return the descriptor, reopened for a directory that was closed to save descriptors.

        CallError `path_changed` if the directory is not the same any more.
        """
        if self.fd >= 0:
            return self.fd
        changed = path_changed(paths.join(self.names))
        below = [to_disk(name) for name in self.names[len(self.top.names) :]]
        try:
            opened = descend(self._kernel, self.top.fd, below)
        except OSError:
            raise changed from None
        try:
            info = os.fstat(opened)
            if (info.st_dev, info.st_ino) != self._identity:
                raise changed
            with errors(paths.join(self.names)):
                self.fd = os.open(".", LIST, dir_fd=opened)
        finally:
            os.close(opened)
        return self.fd


_DIRECTORY, _LINK, _OTHER = map(Stat, (DIRECTORY, LINK, OTHER))


def _kind_of(entry: os.DirEntry[str]) -> Stat:
    """Return the kind of what is no regular file."""
    if entry.is_dir(follow_symlinks=False):
        return _DIRECTORY
    return _LINK if entry.is_symlink() else _OTHER
