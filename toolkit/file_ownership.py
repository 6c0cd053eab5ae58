"""Whether what was found may be trusted: it belongs to this user or to root, and nobody else can write to it.

One check for policies and VCS folders on the way up, states, and the trash of tasks. It changes nothing.
What a person names is that person's choice and is not asked about here.
"""

from __future__ import annotations

import os
import stat as S

ANOTHERS = "belongs to another user"
OPEN = "can be written to by other users"
_ACCESS_LIST = "system.posix_acl_access"


class Untrusted(Exception):
    """What was found is not trusted: `name` is what it is called, `why` says whose it is or who can write."""

    def __init__(self, place: str, why: str) -> None:
        self.name = os.path.basename(place) or place
        self.why = why
        super().__init__(
            f"{place} {why}, and it was found and not named, so it is not used; give --root if you trust"
            f" this workspace, else make it yours (chown, chmod go-w) or remove it"
        )


def check_found(place: str) -> None:
    """Raise Untrusted unless `place`, the folder that it lies in, and what it leads to are to be trusted.

    In a folder with the sticky bit, such as /tmp, everybody can make a name and only its owner replace it.
    """
    for path in dict.fromkeys((place, os.path.realpath(place))):
        if not os.path.lexists(path):
            continue  # where a link leads that leads nowhere
        folder = os.path.dirname(path)
        for at, info in ((path, os.lstat(path)), (folder, os.stat(folder))):
            why = doubt(at, info, shared=at == folder and bool(info.st_mode & S.S_ISVTX))
            if why is not None:
                raise Untrusted(at, why)


def doubt(
    place: str, info: os.stat_result, owners: frozenset[int] | None = None, *, shared: bool = False
) -> str | None:
    """Why a file or folder is not to be trusted; None where it is.

    Its owner is one of `owners` (this user and root), and nobody else can write to it, unless it is `shared`
    or a link.
    """
    if not hasattr(os, "geteuid"):
        return None  # no owner is told
    if info.st_uid not in (trusted_owners() if owners is None else owners):
        return ANOTHERS
    if shared or S.S_ISLNK(info.st_mode):
        return None
    if info.st_mode & S.S_IWOTH or (info.st_mode & S.S_IWGRP and not _is_alone(place, info)):
        return OPEN
    return None


def trusted_owners() -> frozenset[int]:
    """This user and root; for root by way of sudo the user who called it, too."""
    me = os.geteuid()
    caller = os.environ.get("SUDO_UID", "") if me == 0 else ""
    return frozenset((0, me, *([int(caller)] if caller.isascii() and caller.isdecimal() else ())))


def _is_alone(place: str, info: os.stat_result) -> bool:
    """Whether the group of a file is its owner's own, as where every user has a group of that name."""
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
