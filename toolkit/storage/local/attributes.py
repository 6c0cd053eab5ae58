"""Metadata of a local entry: owner and group, times, extended attributes; read, and put on a new one.

What the system refuses is named. Set-id bits and file capabilities come only with the owner and the group.
"""

from __future__ import annotations

import base64
import os
import stat as S
from collections.abc import Iterator
from contextlib import suppress

from ringfence.toolkit.fake_fs import is_faked
from ringfence.toolkit.plan.changes import DIRECTORY, LINK, SET_ID, Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.local.entries import LIST, errors, is_own, lstat, open_regular, stat_of
from ringfence.toolkit.storage.local.resolver import LocalSpot

OWNER, TIMES, USER, SYSTEM = "owner", "times", "user", "system"  # the fields
Values = dict[str, str | None]  # by name, in base64; None for one that cannot be read
_CAPABILITY = "security.capability"
# What the kernel itself makes of content and inode.
_MADE = {"security.ima", "security.evm"}


def metadata_of(spot: LocalSpot, stat: Stat, *, copied: bool) -> Metadata:
    """What is attached to the entry that was `stat`; a copy takes along what users attached to a file.

    Raises CallError `path_changed` for another file, unless it is copied.
    """
    with errors(spot.path):
        fd, info = _opened(spot, stat)
        try:
            if stat.kind != DIRECTORY and not copied and stat_of(info).identity != stat.identity:
                raise path_changed(spot.path)
            attached = _extended(fd)
        finally:
            if fd >= 0:
                os.close(fd)
    if copied:
        return {USER: attached[USER]} if USER in attached else {}
    # Reading moves the time of access, and the content was read just now.
    early = stat.accessed is not None and stat.accessed < info.st_atime
    accessed = round((stat.accessed or 0) * 10**9) if early else info.st_atime_ns
    return {OWNER: [info.st_uid, info.st_gid], TIMES: [accessed, info.st_mtime_ns], **attached}


def _opened(spot: LocalSpot, stat: Stat) -> tuple[int, os.stat_result]:
    """The entry, open (-1 where it cannot be), and what it is."""
    if stat.kind != LINK:
        with suppress(PermissionError):
            if stat.kind != DIRECTORY:
                return open_regular(spot)
            fd = os.open(spot.name, LIST, dir_fd=spot.fd)
            return fd, os.fstat(fd)
    return -1, lstat(spot)


def for_replacing(
    fd: int, info: os.stat_result, mode: int | None, given: Metadata | None
) -> tuple[Metadata, int, NotKept]:
    """The fields and the mode of a new file that takes the place of the one at `fd` (-1: it could not be
    opened), and what is lost: the old one's, but for those that are given."""
    given = given or {}
    attached = _extended(fd)
    # The kernel itself takes it from a file whose content is changed.
    lost = attached.get(SYSTEM, {}).pop(_CAPABILITY, None) is not None and SYSTEM not in given
    if mode is None:
        mode = S.S_IMODE(info.st_mode)
    elif OWNER not in given:  # no set-id bits that the old one has not
        mode &= ~SET_ID | info.st_mode
    kept = {OWNER: [info.st_uid, info.st_gid], **attached, **given}
    return kept, mode, (_named(_CAPABILITY),) if lost else ()


def put_on(fd: int, metadata: Metadata, mode: int | None) -> NotKept:
    """Give the new file or directory open as `fd` the fields and the mode; gives what could not be.

    Raises OSError for the mode alone.
    """
    lost: list[str] = []
    # Before all else: changing the owner takes set-id bits and capabilities away.
    owned = _put_owner(fd, metadata.get(OWNER), lost)
    for kind in (USER, SYSTEM):
        if kind in metadata:
            _put_extended(fd, kind, metadata[kind], lost, owned=owned)
    if mode is not None:
        # What was kept of a directory before there was metadata has them, whoever's it was.
        if mode & SET_ID and not owned and (OWNER in metadata or not S.S_ISDIR(os.fstat(fd).st_mode)):
            lost.append("set-id bits")
            mode &= ~SET_ID
        os.fchmod(fd, mode)
    if TIMES in metadata:
        try:
            os.utime(fd, ns=tuple(metadata[TIMES]))
        except OSError:
            lost.append("times")
    return tuple(lost)


def put_on_link(spot: LocalSpot, metadata: Metadata) -> NotKept:
    """The same for a link that was made again, which has an owner and times."""
    lost = []
    owner, (accessed, modified) = metadata[OWNER], metadata[TIMES]
    found = lstat(spot)
    try:
        if owner != [found.st_uid, found.st_gid]:
            os.chown(spot.name, *owner, dir_fd=spot.fd, follow_symlinks=False)
    except OSError:
        lost.append("owner")
    try:
        os.utime(spot.name, ns=(accessed, modified), dir_fd=spot.fd, follow_symlinks=False)
    except (OSError, NotImplementedError):
        lost.append("times")
    return tuple(lost)


# --------------------------------------------------------------------- owner


def _put_owner(fd: int, wanted: list[int] | None, lost: list[str]) -> bool:
    """Whether owner and group are the ones wanted, or this process's own where none are known."""
    new = os.fstat(fd)
    if wanted is None:
        return is_own(new)
    uid, gid = wanted
    if (uid, gid) == (new.st_uid, new.st_gid):
        return True
    try:
        os.fchown(fd, uid, gid)
    except OSError:
        pass  # only root may give a file away
    else:
        return True
    with suppress(OSError):
        os.fchown(fd, -1, gid)
    new = os.fstat(fd)
    lost += [word for word, same in (("owner", new.st_uid == uid), ("group", new.st_gid == gid)) if not same]
    return False


# ------------------------------------------------------- extended attributes


def _extended(fd: int) -> dict[str, Values]:
    """The extended attributes, those that users attach and the others; no fields where there can be none."""
    if fd < 0 or not hasattr(os, "listxattr") or is_faked():
        return {}
    try:
        names = os.listxattr(fd)
    except OSError:
        return {}  # a file system without them
    found: dict[str, Values] = {USER: {}, SYSTEM: {}}
    for name in names:
        if name not in _MADE:
            found[_kind(name)][name] = _value(fd, name)
    return found


def _value(fd: int, name: str) -> str | None:
    try:
        return base64.b64encode(os.getxattr(fd, name)).decode()
    except OSError:
        return None  # one that is listed for everybody and not read by everybody


def _put_extended(fd: int, kind: str, wanted: Values, lost: list[str], *, owned: bool) -> None:
    """Have exactly these attributes of one kind, also where the directory gave a new file some of its own."""
    now = _extended(fd).get(kind, {})
    for name in _unwanted(now, wanted):
        with suppress(OSError):
            os.removexattr(fd, name)
    for name, value in wanted.items():
        if value is not None and now.get(name) == value:
            continue
        try:
            if value is None or (name == _CAPABILITY and not owned):
                raise PermissionError
            os.setxattr(fd, name, base64.b64decode(value))
        except (OSError, AttributeError):
            lost.append(_named(name))


def _unwanted(now: Values, wanted: Values) -> Iterator[str]:
    """What to take away; the kernel's own labels stay as the directory gives them."""
    return (name for name in now if name not in wanted and not name.startswith("security."))


def _kind(name: str) -> str:
    return USER if name.startswith("user.") else SYSTEM


def _named(name: str) -> str:
    return f"xattr {name}"
