"""Folders that ripgrep does not enter, because the root's `.gitignore` names them.

Only plain names count, and only where no other file can bring a folder back: in doubt a folder is entered.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator

# These have their own say on what is ignored in their folder and below; a repository does not inherit.
_OTHERS = frozenset({".gitignore", ".ignore", ".rgignore", ".git", ".jj"})
_OVERRULES = (".ignore", ".rgignore")  # they come before `.gitignore`, also from above the root
_MOST = 1 << 20  # bytes
_NAME = re.compile(r"(/?)([A-Za-z0-9._-]+)/?")


class Ignored:
    """The names of ignored folders: `anywhere` below the root, and `top` directly in it."""

    def __init__(self, anywhere: frozenset[str], top: frozenset[str]) -> None:
        self._anywhere = anywhere
        self._top = top

    def has(self, path: str) -> bool:
        """Whether a folder, by its path from the root, is ignored."""
        return path in self._top or path.rpartition("/")[2] in self._anywhere


def is_changed_by(names: Iterator[str]) -> bool:
    """Whether a folder below the root with these names has its own say on what is ignored."""
    return not _OTHERS.isdisjoint(names)


def ignored_in(root: str, start: str) -> Ignored | None:
    """Return what a search from a folder (by its path from the root) does not enter; None for nothing."""
    lines = _lines(os.path.join(root, ".gitignore"))
    if not lines or not os.path.isdir(os.path.join(root, ".git")):
        return None
    above = root
    while not any(os.path.lexists(os.path.join(above, name)) for name in _OVERRULES):
        if above == os.path.dirname(above):
            break
        above = os.path.dirname(above)
    else:
        return None
    parts = [] if start == "." else start.split("/")
    folders = (os.path.join(root, *parts[: n + 1]) for n in range(len(parts)))
    if any(os.path.lexists(os.path.join(folder, name)) for folder in folders for name in _OTHERS):
        return None
    found = [match for match in map(_NAME.fullmatch, lines) if match]
    return Ignored(
        frozenset(match[2] for match in found if not match[1]),
        frozenset(match[2] for match in found if match[1]),
    )


def _lines(file: str) -> list[str]:
    """Return the lines of a `.gitignore`; nothing if it takes a name back, or cannot be read as it is."""
    try:
        seen = os.lstat(file)
        if not stat.S_ISREG(seen.st_mode) or seen.st_size > _MOST:
            return []
        with open(file, encoding="utf-8", newline="\n") as opened:
            lines = [line.rstrip() for line in opened.read(_MOST).split("\n")]
    except (OSError, ValueError):
        return []
    return [] if any(line.startswith("!") for line in lines) else lines
