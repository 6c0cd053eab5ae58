"""Listing of the names below a directory that a host's tool would visit, up to a bound. Opens no file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from ringfence.policy.byte_names import from_disk, to_disk
from ringfence.toolkit import paths

MAX_NAMES = 20_000


class TooMany(Exception):
    """More names than one call may list."""


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

    def below(self, folder: str, *, deep: bool = True) -> Iterator[Name]:
        """Yield every entry below a directory; links to directories are not followed. TooMany."""
        todo = self._entries(folder)[::-1]  # no recursion: directories may be deeper than Python's stack
        while todo:
            name = todo.pop()
            yield name
            if name.directory and deep:
                todo += reversed(self._entries(name.path))

    def _entries(self, folder: str) -> list[Name]:
        found: list[Name] = []
        try:
            with os.scandir(os.path.join(self._root, to_disk(folder))) as entries:
                for entry in entries:
                    if not self._left:
                        raise TooMany(f"more than {MAX_NAMES:,} names")
                    self._left -= 1
                    path = paths.child(folder, from_disk(entry.name))
                    found.append(Name(path, entry.is_dir(follow_symlinks=False), entry.is_symlink()))
        except (FileNotFoundError, PermissionError):
            return []  # this user's searches show nothing below an unreadable directory
        return found
