"""Where a project begins: the nearest folder upwards that holds a policy or a VCS folder.

What was found so is used only if nobody else can have put it there.
"""

from __future__ import annotations

import os

from ringfence.toolkit.file_ownership import check_found

POLICY_FILE = "ringfence.yaml"
MARKS = (POLICY_FILE, ".git", ".hg", ".svn", ".jj")


def find_root(start: str) -> tuple[str, str]:
    """The nearest of `start` and the folders above it that holds a mark of a project, else `start`.

    Raises Untrusted where that mark or its folder is another user's, or others can write to it.
    """
    folder = start
    while True:
        for mark in MARKS:
            place = os.path.join(folder, mark)
            if os.path.exists(place):
                check_found(place)
                return folder, mark
        above = os.path.dirname(folder)
        if above == folder:
            return start, "the current folder"
        folder = above


def policy_in(root: str, *, found: bool) -> str | None:
    """The policy file of a root, if it has one; a link that leads nowhere is one that does not load.

    Raises Untrusted where the root was found and the file is another's: it may be new since `find_root`.
    """
    place = os.path.join(root, POLICY_FILE)
    if not os.path.lexists(place):
        return None
    if found:
        check_found(place)
    return place
