"""Where a project begins: the nearest folder upwards that holds a policy or a VCS folder."""

from __future__ import annotations

import os

POLICY_FILE = "ringfence.yaml"
_MARKS = (POLICY_FILE, ".git", ".hg", ".svn", ".jj")


def find_root(start: str) -> tuple[str, str]:
    """The nearest of `start` and the folders above it that holds a mark of a project, else `start`."""
    folder = start
    while True:
        for mark in _MARKS:
            if os.path.exists(os.path.join(folder, mark)):
                return folder, mark
        above = os.path.dirname(folder)
        if above == folder:
            return start, "the current folder"
        folder = above
