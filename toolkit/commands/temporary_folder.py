"""A folder for the scratches of a state that has no directory on this machine. Ends with its process.

A killed process leaves its folder; the next process that makes one removes it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ringfence.toolkit.commands.scratches import locked_file, remove_tree

_PREFIX, _OWNER = "ringfence-commands-", "owner"


def temporary_folder() -> tuple[str, int]:
    """Make an empty folder; return its path and a descriptor that keeps other processes from removing it."""
    _remove_left()
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        held = locked_file(os.path.join(folder, _OWNER))
        if held is not None:
            return folder, held  # else another process took it for a left one before it was locked


def remove_folder(folder: str, held: int) -> None:
    """Remove a folder that this process made."""
    remove_tree(folder)
    os.close(held)


def _remove_left() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        info = os.lstat(folder) if os.path.lexists(folder) else None
        if info is None or info.st_uid != os.geteuid() or not (folder / _OWNER).exists():
            continue  # gone, another user's, or being made
        held = locked_file(str(folder / _OWNER))
        if held is not None:
            remove_folder(str(folder), held)
