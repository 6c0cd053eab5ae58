"""Whether a directory of this machine takes `A` and `a` for one name; asked by looking, never by writing."""

from __future__ import annotations

import os


def folds_case(fd: int, path: str) -> bool:
    """Look at the open directory `fd`, or where nothing in it tells, at its own name `path`."""
    name = next((n for n in sorted(os.listdir(fd)) if n.swapcase() != n), None)
    if name is None:
        head, tail = os.path.split(path)
        other = tail.swapcase()
        return bool(tail) and other != tail and os.path.lexists(os.path.join(head, other))
    try:
        twin = os.stat(name.swapcase(), dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return os.path.samestat(twin, os.stat(name, dir_fd=fd, follow_symlinks=False))
