"""A new file whole beside its place, and what takes a place: only a free one, or the one that was judged.

Never leaves a half-written file under a name that anybody else would look for.
"""

from __future__ import annotations

import errno
import os
import stat as S

from toolkit import holes
from toolkit.errors import CallError
from toolkit.local import kernel
from toolkit.local.files import LIST, NEW, is_own, keep_attributes, lstat, open_regular, unlink_quietly
from toolkit.local.walk import LocalSpot
from toolkit.plan import SET_ID, Held, pieces

# What a file system says that has no hard links, or a kernel that has no such call.
_CANNOT = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)


def opened(spot: LocalSpot, *, needed: bool) -> tuple[int, os.stat_result]:
    """The file at `spot`, open (-1 where it need not be and cannot), and what it is."""
    try:
        return open_regular(spot)
    except (OSError, CallError):
        if needed:
            raise
        return -1, lstat(spot)


def write(
    folder: int,
    name: str,
    data: bytes | Held,
    mode: int | None,
    *,
    durable: bool,
    old: tuple[int, os.stat_result] | None = None,
) -> None:
    """Make the file `name` in the directory `folder`, or nothing; `mode` None leaves it to the umask.

    It gets the owner and the extended attributes of `old`, what `opened` gave, and those set-id bits that
    `old` has too where owner and group could be kept. Raises OSError.
    """
    fd = os.open(name, NEW, 0o666 if mode is None else 0o600, dir_fd=folder)
    kept = 0
    try:
        holes.write_all(fd, pieces(data))
        if old is not None:
            # Before fchmod: changing the owner clears the set-uid and set-gid bits.
            kept = old[1].st_mode & SET_ID if _keep_owner(fd, old[1]) else 0
            if old[0] >= 0:
                keep_attributes(old[0], fd)
        if mode is not None:
            if old is None and mode & SET_ID and is_own(os.fstat(fd)):
                kept = SET_ID  # an undo, of a file that was this account's own
            os.fchmod(fd, mode & ~SET_ID | mode & kept)
        if durable:
            os.fsync(fd)
    except BaseException:
        unlink_quietly(name, folder)
        raise
    finally:
        os.close(fd)


def _keep_owner(fd: int, old: os.stat_result) -> bool:
    """Give the file the owner and group of the old one; whether it has both."""
    new = os.fstat(fd)
    if (old.st_uid, old.st_gid) == (new.st_uid, new.st_gid):
        return True
    try:
        os.fchown(fd, old.st_uid, old.st_gid)
        return True
    except PermissionError:
        pass  # only root may give a file away
    try:
        os.fchown(fd, -1, old.st_gid)
    except PermissionError:
        pass
    return False


def name_new(able: kernel.Kernel, temporary: LocalSpot, spot: LocalSpot) -> None:
    """Give the file at `temporary` its name, if it is free. Raises OSError."""
    try:
        rename_new(able, temporary, spot, checked=True)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        # Neither: claim the name exclusively, then rename over our own claim.
        os.close(os.open(spot.name, NEW, 0o600, dir_fd=spot.fd))
        os.rename(temporary.name, spot.name, src_dir_fd=spot.fd, dst_dir_fd=spot.fd)


def rename_new(
    able: kernel.Kernel, source: LocalSpot, destination: LocalSpot, *, checked: bool = False
) -> None:
    """Rename onto nothing. Where neither kernel nor hard links can do it in one step, look first
    (unless `checked`, which fails instead). Raises OSError."""
    ends = {"src_dir_fd": source.fd, "dst_dir_fd": destination.fd}
    if able.rename_new:
        try:
            kernel.rename_new(source.fd, source.name, destination.fd, destination.name)
            return
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
    if checked or not S.S_ISDIR(lstat(source).st_mode):
        try:
            os.link(source.name, destination.name, **ends, follow_symlinks=False)
        except OSError as error:
            if checked or error.errno not in _CANNOT:
                raise
        else:
            os.unlink(source.name, dir_fd=source.fd)
            return
    try:
        lstat(destination)
    except FileNotFoundError:
        os.rename(source.name, destination.name, **ends)
        return
    raise FileExistsError(errno.EEXIST, "already there")


def sync(folder: int) -> None:
    """Write the directory through."""
    # An O_PATH descriptor cannot be synced, so the directory is opened once more.
    fresh = os.open(".", LIST, dir_fd=folder)
    try:
        os.fsync(fresh)
    finally:
        os.close(fresh)
