"""Metadata of a local entry: reads owner, group, times and extended attributes, and sets them on a new entry.

What the system refuses is reported. Set-id bits and file capabilities are set only with owner and group.
"""

from __future__ import annotations

import binascii
import os
import stat as S
from collections.abc import Iterator
from contextlib import suppress

from ringfence.toolkit.fake_fs import is_faked
from ringfence.toolkit.plan.entries import DIRECTORY, LINK, SET_ID, Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.local.entries import LIST, errors, identity_of, is_own, lstat, open_regular
from ringfence.toolkit.storage.local.spot import LocalSpot

OWNER, TIMES, USER, SYSTEM = "owner", "times", "user", "system"  # the fields of the metadata
Values = dict[str, str | None]  # by name, in base64; None for one that cannot be read
_CAPABILITY = "security.capability"
# Attributes that the kernel derives from content and inode.
_KERNEL_DERIVED = {"security.ima", "security.evm"}


def metadata_of(spot: LocalSpot, stat: Stat, *, copied: bool) -> Metadata:
    """Return the metadata of the entry that was `stat`; `copied`: only the fields that a copy takes along.

    CallError `path_changed` for another file than the judged one, unless `copied`.
    """
    with errors(spot.path):
        fd, info = _open(spot, stat)
        try:
            if stat.kind != DIRECTORY and not copied and identity_of(info) != stat.identity:
                raise path_changed(spot.path)
            extended = _extended(fd)
        finally:
            if fd >= 0:
                os.close(fd)
    if copied:
        return {USER: extended[USER]} if USER in extended else {}
    # The content was read just now, which may have changed the access time.
    read_before = stat.accessed is not None and stat.accessed < info.st_atime
    accessed = round((stat.accessed or 0) * 10**9) if read_before else info.st_atime_ns
    return {OWNER: [info.st_uid, info.st_gid], TIMES: [accessed, info.st_mtime_ns], **extended}


def _open(spot: LocalSpot, stat: Stat) -> tuple[int, os.stat_result]:
    """Return a descriptor of the entry (-1 where it cannot be opened), and its stat."""
    if stat.kind != LINK:
        with suppress(PermissionError):
            if stat.kind != DIRECTORY:
                return open_regular(spot)
            fd = os.open(spot.name, LIST, dir_fd=spot.fd)
            return fd, os.fstat(fd)
    return -1, lstat(spot)


def for_replacement(
    fd: int, info: os.stat_result, mode: int | None, given: Metadata | None
) -> tuple[Metadata, int, NotKept]:
    """Return fields and mode for a file that replaces the one at `fd`, and the fields that are lost.

    `fd` is -1 where the old file could not be opened. Given fields win over the old file's.
    """
    given = given or {}
    extended = _extended(fd)
    # The kernel removes capabilities from a file whose content changes.
    refused = extended.get(SYSTEM, {}).pop(_CAPABILITY, None) is not None and SYSTEM not in given
    if mode is None:
        mode = S.S_IMODE(info.st_mode)
    elif OWNER not in given:  # never set-id bits that the old file does not have
        mode &= ~SET_ID | info.st_mode
    fields = {OWNER: [info.st_uid, info.st_gid], **extended, **given}
    return fields, mode, (_field_name(_CAPABILITY),) if refused else ()


def set_on(fd: int, metadata: Metadata, mode: int | None) -> NotKept:
    """Set fields and mode of the new file or directory open as `fd`; returns the fields that were refused.

    OSError only for the mode.
    """
    refused: list[str] = []
    # First, because changing the owner removes set-id bits and capabilities.
    owned = _set_owner(fd, metadata.get(OWNER), refused)
    for kind in (USER, SYSTEM):
        if kind in metadata:
            _set_extended(fd, kind, metadata[kind], refused, owned=owned)
    if mode is not None:
        # Records of versions without metadata have a mode, whoever the owner was.
        if mode & SET_ID and not owned and (OWNER in metadata or not S.S_ISDIR(os.fstat(fd).st_mode)):
            refused.append("set-id bits")
            mode &= ~SET_ID
        os.fchmod(fd, mode)
    if TIMES in metadata:
        try:
            os.utime(fd, ns=tuple(metadata[TIMES]))
        except OSError:
            refused.append("times")
    return tuple(refused)


def set_on_link(spot: LocalSpot, metadata: Metadata) -> NotKept:
    """Set owner and times of a link that was made again; returns the fields that were refused."""
    refused = []
    owner, (accessed, modified) = metadata[OWNER], metadata[TIMES]
    found = lstat(spot)
    try:
        if owner != [found.st_uid, found.st_gid]:
            os.chown(spot.name, *owner, dir_fd=spot.fd, follow_symlinks=False)
    except OSError:
        refused.append("owner")
    try:
        os.utime(spot.name, ns=(accessed, modified), dir_fd=spot.fd, follow_symlinks=False)
    except (OSError, NotImplementedError):
        refused.append("times")
    return tuple(refused)


# --------------------------------------------------------------------- owner


def _set_owner(fd: int, wanted: list[int] | None, refused: list[str]) -> bool:
    """Whether owner and group are the wanted ones, or this process's own where none are known."""
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
    refused += [
        word for word, same in (("owner", new.st_uid == uid), ("group", new.st_gid == gid)) if not same
    ]
    return False


# ------------------------------------------------------- extended attributes


def _extended(fd: int) -> dict[str, Values]:
    """Return the extended attributes, users' and others; no fields on a file system without them."""
    if fd < 0 or not hasattr(os, "listxattr") or is_faked():
        return {}
    try:
        names = os.listxattr(fd)
    except OSError:
        return {}  # a file system without them
    found: dict[str, Values] = {USER: {}, SYSTEM: {}}
    for name in names:
        if name not in _KERNEL_DERIVED:
            found[_field_of(name)][name] = _value(fd, name)
    return found


def _value(fd: int, name: str) -> str | None:
    try:
        return binascii.b2a_base64(os.getxattr(fd, name), newline=False).decode()
    except OSError:
        return None  # one that is listed for everybody and not read by everybody


def _set_extended(fd: int, kind: str, wanted: Values, refused: list[str], *, owned: bool) -> None:
    """Set exactly these attributes of one kind, and remove those that the directory gave to the new file."""
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
            os.setxattr(fd, name, binascii.a2b_base64(value))
        except (OSError, AttributeError):
            refused.append(_field_name(name))


def _unwanted(now: Values, wanted: Values) -> Iterator[str]:
    """Return the attributes to remove; the kernel's own labels stay as the directory gives them."""
    return (name for name in now if name not in wanted and not name.startswith("security."))


def _field_of(name: str) -> str:
    return USER if name.startswith("user.") else SYSTEM


def _field_name(name: str) -> str:
    return f"xattr {name}"
