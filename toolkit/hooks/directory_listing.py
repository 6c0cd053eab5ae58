"""Listing of the names below a directory that a host's tool would visit, up to a bound. Opens no file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from ringfence.policy.byte_names import from_disk, to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.hooks.ignored_folders import Ignored, is_changed_by

MAX_NAMES = 20_000


class TooMany(Exception):
    """More names than one call may list. `folders` are those that hold them, the fullest first."""

    def __init__(self, message: str, folders: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.folders = folders


class Name(NamedTuple):
    """One entry; its path is relative to the root."""

    path: str
    directory: bool
    link: bool


class Walk:
    """Lists below directories of one root; files and directories count towards the bound."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._left = MAX_NAMES
        self._counts: dict[str, int] = {}  # of the folders directly in those that are searched
        self._top = paths.ROOT

    def below(self, folder: str, *, deep: bool = True, ignored: Ignored | None = None) -> Iterator[Name]:
        """Yield every entry below a directory but ignored folders; links are not followed. TooMany."""
        self._top = folder
        todo = self._kept(folder, ignored)[::-1]  # no recursion: deeper than Python's stack
        while todo:
            name, still = todo.pop()
            yield name
            if name.directory and deep:
                below = self._kept(name.path, still, is_below=True)
                todo += reversed(below)

    def _count(self, folder: str) -> None:
        if folder != self._top:
            inner = folder[len(paths.child(self._top, "")) :].partition("/")[0]
            held = paths.child(self._top, inner)
            self._counts[held] = self._counts.get(held, 0) + 1

    def _kept(
        self, folder: str, ignored: Ignored | None, *, is_below: bool = False
    ) -> list[tuple[Name, Ignored | None]]:
        """Return the entries of a folder, each with what is ignored below it."""
        entries = self._entries(folder)
        if is_below and ignored and is_changed_by(name.path.rpartition("/")[2] for name in entries):
            ignored = None
        if ignored is None:
            return [(name, None) for name in entries]
        return [(name, ignored) for name in entries if not (name.directory and ignored.has(name.path))]

    def _entries(self, folder: str) -> list[Name]:
        found: list[Name] = []
        try:
            with os.scandir(os.path.join(self._root, to_disk(folder))) as entries:
                for entry in entries:
                    if not self._left:
                        fullest = sorted(self._counts, key=lambda each: -self._counts[each])
                        raise TooMany(f"more than {MAX_NAMES:,} names", tuple(fullest))
                    self._left -= 1
                    self._count(folder)
                    path = paths.child(folder, from_disk(entry.name))
                    found.append(Name(path, entry.is_dir(follow_symlinks=False), entry.is_symlink()))
        except (FileNotFoundError, PermissionError):
            return []  # this user's searches show nothing below an unreadable directory
        return found
