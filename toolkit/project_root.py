"""Root of a project: the nearest folder upwards with a policy or a VCS folder.

A found root is used only if no other user can have put it there.
"""

from __future__ import annotations

import os

from ringfence.toolkit.file_ownership import check_found

POLICY_FILE = "ringfence.yaml"
MARKS = (POLICY_FILE, ".git", ".hg", ".svn", ".jj")


def find_root(start: str) -> tuple[str, str]:
    """Return the nearest of `start` and the folders above it with a policy or a VCS folder, else `start`.

    Raises Untrusted if that file or its folder is another user's, or others can write to it.
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
    """Return the policy file of a root, or None; a link without a target counts as a policy that does not
    load.

    Raises Untrusted if the root was found and the file is another user's: it may be newer than `find_root`'s
    check.
    """
    place = os.path.join(root, POLICY_FILE)
    if not os.path.lexists(place):
        return None
    if found:
        check_found(place)
    return place
