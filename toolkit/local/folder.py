"""An open directory of the workspace, and what is in it."""

from __future__ import annotations

import os
from stat import S_ISLNK

from toolkit import paths
from toolkit.local.files import errors, look, stat_of
from toolkit.local.walk import LocalSpot
from toolkit.plan import Stat


class LocalFolder:
    """An open directory of the workspace."""

    def __init__(self, fd: int, names: tuple[str, ...]) -> None:
        self._fd = fd
        self._names = names

    def scan(self) -> list[tuple[str, Stat]]:
        """The names in it with what they are, by name; entries that vanish meanwhile are left out."""
        found = []
        with errors(paths.join(self._names)), os.scandir(self._fd) as entries:
            for entry in entries:
                try:
                    info = entry.stat(follow_symlinks=False)
                    stat = look(self._fd, entry.name, info) if S_ISLNK(info.st_mode) else stat_of(info)
                except FileNotFoundError:
                    continue
                found.append((entry.name, stat))
        found.sort(key=_name)
        return found

    def spot(self, name: str) -> LocalSpot:
        return LocalSpot(self._fd, (*self._names, name))


def _name(row: tuple[str, Stat]) -> str:
    return row[0]
