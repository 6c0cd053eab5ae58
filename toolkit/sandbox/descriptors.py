"""Descriptors of directories and files, opened name by name without following a link."""

from __future__ import annotations

import os

DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW if hasattr(os, "O_PATH") else 0
ANYTHING = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW if hasattr(os, "O_PATH") else 0


def open_beneath(directory: int, name: str, flags: int = DIRECTORY) -> int:
    """Open `name`, relative to a directory, and return its descriptor; OSError where a part is a link."""
    *above, last = [part for part in name.split("/") if part not in ("", ".")] or ["."]
    folder_fd = os.dup(directory)
    try:
        for part in above:
            below = os.open(part, DIRECTORY, dir_fd=folder_fd)
            os.close(folder_fd)
            folder_fd = below
        return os.open(last, flags, dir_fd=folder_fd)
    finally:
        os.close(folder_fd)


def path_of(descriptor: int) -> str:
    """Return a path that leads to what the descriptor is open on, whatever its name has become."""
    return f"/proc/self/fd/{descriptor}"
