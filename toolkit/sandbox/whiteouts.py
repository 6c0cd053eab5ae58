"""Layer of whiteouts: the top lower layer of an overlay, in which the hidden names are marked as deleted."""

from __future__ import annotations

import os
import stat

from ringfence.toolkit.sandbox.descriptors import ANYTHING, open_beneath, path_of


def hide_names(place: str, below: int, names: tuple[str, ...]) -> int:
    """Make a layer of the new directory `place`, on a tmpfs, and return its descriptor.

    `below` is a descriptor of the tree under it. A directory of the layer replaces the one below in every
    listing, so it gets the same mode and times. A name without a real directory above it is left out: it
    cannot be reached either.
    """
    os.mkdir(place, 0o700)
    layer = os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    root = path_of(layer)
    made: dict[str, os.stat_result] = {"": os.fstat(below)}
    for name in sorted(names):
        parent, _, _ = name.rpartition("/")
        if _has_parents(root, below, parent, made):
            try:
                os.mknod(f"{root}/{name}", stat.S_IFCHR, 0)
            except (FileExistsError, NotADirectoryError):
                pass  # the directory above it is hidden as a whole
    for name in sorted(made, reverse=True):
        found = made[name]
        place = f"{root}/{name}" if name else root
        os.chmod(place, stat.S_IMODE(found.st_mode))
        os.utime(place, ns=(found.st_atime_ns, found.st_mtime_ns))
    return layer


def _has_parents(root: str, below: int, parent: str, made: dict[str, os.stat_result]) -> bool:
    """Make the directory `parent` in the layer, if the tree below has it as one."""
    if parent in made:
        return True
    above, _, _ = parent.rpartition("/")
    if not _has_parents(root, below, above, made):
        return False
    try:
        parent_fd = open_beneath(below, parent, ANYTHING)
    except OSError:
        return False
    try:
        found = os.fstat(parent_fd)
    finally:
        os.close(parent_fd)
    if not stat.S_ISDIR(found.st_mode):
        return False
    try:
        os.mkdir(f"{root}/{parent}", 0o700)
    except (FileExistsError, NotADirectoryError):
        return False
    made[parent] = found
    return True
