"""An open directory of the workspace, and what is in it.

Of a very deep walk only the innermost directories stay open. One further out is opened again when it is
needed, from the outermost, and only if it is still the same directory in the same place.
"""

from __future__ import annotations

import os
from stat import S_ISLNK

from ringfence.policy.byte_names import from_disk, to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.plan.changes import Stat
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.local import syscalls as kernel
from ringfence.toolkit.storage.local.entries import LIST, errors, look, stat_of
from ringfence.toolkit.storage.local.resolver import LocalSpot

KEPT_OPEN = 64  # a process has 1,024 descriptors by default, and may walk in several threads


class LocalFolder:
    """The directory open as `fd`, which it closes; `above` is the open one it was listed in, if any."""

    def __init__(self, fd: int, names: tuple[str, ...], able: kernel.Kernel, above: object = None) -> None:
        self._fd = fd
        self._names = names
        self._able = able
        self._above = above if isinstance(above, LocalFolder) else None
        self._top: LocalFolder = self if self._above is None else self._above._top
        self._identity: tuple[int, int] | None = None
        far = self
        for _ in range(KEPT_OPEN):
            if far._above is None:
                return
            far = far._above
        far._set_aside()

    def scan(self) -> list[tuple[str, Stat]]:
        """The names in it with what they are, by name; entries that vanish meanwhile are left out."""
        found = []
        with errors(paths.join(self._names)), os.scandir(self._open()) as entries:
            for entry in entries:
                try:
                    info = entry.stat(follow_symlinks=False)
                    stat = look(self._fd, entry.name, info) if S_ISLNK(info.st_mode) else stat_of(info)
                except FileNotFoundError:
                    continue
                found.append((from_disk(entry.name), stat))
        found.sort(key=_name)
        return found

    def spot(self, name: str) -> LocalSpot:
        return LocalSpot(self._open(), (*self._names, name), folder=self)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _set_aside(self) -> None:
        if self._fd >= 0 and self is not self._top:
            info = os.fstat(self._fd)
            self._identity = info.st_dev, info.st_ino
            self.close()

    def _open(self) -> int:
        """The descriptor; of a directory that was set aside a new one. Raises CallError `path_changed`."""
        if self._fd >= 0:
            return self._fd
        changed = path_changed(paths.join(self._names))
        below = [to_disk(name) for name in self._names[len(self._top._names) :]]
        try:
            way = kernel.descend(self._able, self._top._fd, below)
        except OSError:
            raise changed from None
        try:
            info = os.fstat(way)
            if (info.st_dev, info.st_ino) != self._identity:
                raise changed
            with errors(paths.join(self._names)):
                self._fd = os.open(".", LIST, dir_fd=way)
        finally:
            os.close(way)
        return self._fd


def _name(row: tuple[str, Stat]) -> str:
    return row[0]
