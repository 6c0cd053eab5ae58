"""Ownership checks of found files: they belong to this user or to root, and nobody else can write to them.

One check for policies and VCS folders in the folders above, states, and the trash of tasks. Changes nothing.
A file that a person names explicitly is not checked here.
"""

from __future__ import annotations

import os
import stat as S

ANOTHERS = "belongs to another user"
OPEN = "can be written to by other users"
_ACCESS_LIST = "system.posix_acl_access"


class Untrusted(Exception):
    """A found file is not trusted: `name` is its name, `why` is who owns it or who can write to it."""

    def __init__(self, place: str, why: str) -> None:
        self.name = os.path.basename(place) or place
        self.why = why
        super().__init__(
            f"{place} {why}, and it was found and not named, so it is not used; give --root if you trust"
            f" this workspace, else make it yours (chown, chmod go-w) or remove it"
        )


def check_found(place: str) -> None:
    """Raise Untrusted unless `place`, its folder and, for a link, its target are trusted.

    In a folder with the sticky bit, such as /tmp, everybody can create a name, and only its owner can replace
    it.
    """
    for path in dict.fromkeys((place, os.path.realpath(place))):
        if not os.path.lexists(path):
            continue  # the missing target of a link
        folder = os.path.dirname(path)
        for at, info in ((path, os.lstat(path)), (folder, os.stat(folder))):
            why = doubt(at, info, shared=at == folder and bool(info.st_mode & S.S_ISVTX))
            if why is not None:
                raise Untrusted(at, why)


def doubt(
    place: str, info: os.stat_result, owners: frozenset[int] | None = None, *, shared: bool = False
) -> str | None:
    """Return why a file or folder is not trusted; None if it is.

    A trusted one is owned by one of `owners` (this user and root), and nobody else can write to it, unless it
    is `shared` or a link.
    """
    if not hasattr(os, "geteuid"):
        return None  # this system reports no owner
    if info.st_uid not in (trusted_owners() if owners is None else owners):
        return ANOTHERS
    if shared or S.S_ISLNK(info.st_mode):
        return None
    if info.st_mode & S.S_IWOTH or (info.st_mode & S.S_IWGRP and not _is_alone(place, info)):
        return OPEN
    return None


def trusted_owners() -> frozenset[int]:
    """Return the ids of this user and root; under sudo also the id of the calling user."""
    me = os.geteuid()
    caller = os.environ.get("SUDO_UID", "") if me == 0 else ""
    return frozenset((0, me, *([int(caller)] if caller.isascii() and caller.isdecimal() else ())))


def _is_alone(place: str, info: os.stat_result) -> bool:
    """Whether a file's group is its owner's private group, as on systems where every user has one."""
    import grp
    import pwd

    try:
        group, owner = grp.getgrgid(info.st_gid), pwd.getpwuid(info.st_uid)
    except KeyError:
        return False
    if group.gr_name != owner.pw_name or set(group.gr_mem) - {owner.pw_name}:
        return False
    try:
        return not hasattr(os, "listxattr") or _ACCESS_LIST not in os.listxattr(place, follow_symlinks=False)
    except OSError:
        return False
