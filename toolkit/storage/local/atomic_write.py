"""Atomic write: a complete new file beside its place, then a rename to a free name or over the judged file.

Never leaves a partial file under a name that anybody else uses.
"""

from __future__ import annotations

import errno
import os
import stat as S

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.content import StreamedContent, pieces
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage import sparse_files as holes
from ringfence.toolkit.storage.local import attributes
from ringfence.toolkit.storage.local import syscalls as kernel
from ringfence.toolkit.storage.local.entries import LIST, NEW, lstat, open_regular, unlink_quietly
from ringfence.toolkit.storage.local.resolver import LocalSpot

# Errors of a file system without hard links, and of a kernel without the call.
_CANNOT = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)


def opened(spot: LocalSpot, *, needed: bool) -> tuple[int, os.stat_result]:
    """Return a descriptor of the file at `spot` (-1 where it need not and cannot be opened), and its stat."""
    try:
        return open_regular(spot)
    except (OSError, CallError):
        if needed:
            raise
        return -1, lstat(spot)


def write(  # noqa: PLR0913  a new file and its place
    folder: int,
    name: str,
    data: bytes | StreamedContent,
    mode: int | None,
    *,
    durable: bool,
    metadata: Metadata,
) -> NotKept:
    """Create the file `name` in the directory `folder`, or nothing.

    `mode` None leaves the mode to the umask.

    Returns the fields of `metadata` that could not be kept. OSError.
    """
    fd = os.open(name, NEW, 0o666 if mode is None else 0o600, dir_fd=folder)
    try:
        holes.write_all(fd, pieces(data))
        lost = attributes.put_on(fd, metadata, mode)
        if durable:
            os.fsync(fd)
    except BaseException:
        unlink_quietly(name, folder)
        raise
    finally:
        os.close(fd)
    return lost


def name_new(able: kernel.Kernel, temporary: LocalSpot, spot: LocalSpot) -> None:
    """Rename the file at `temporary` to its name, if that is free. OSError."""
    try:
        rename_new(able, temporary, spot, checked=True)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
        # Neither: create the name exclusively, then rename over our own empty file.
        os.close(os.open(spot.name, NEW, 0o600, dir_fd=spot.fd))
        os.rename(temporary.name, spot.name, src_dir_fd=spot.fd, dst_dir_fd=spot.fd)


def rename_new(
    able: kernel.Kernel, source: LocalSpot, destination: LocalSpot, *, checked: bool = False
) -> None:
    """Rename to a free name. OSError.

    Where neither the kernel nor hard links can do so in one step, check first; with `checked`, fail instead.
    """
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
    """Sync the directory to disk."""
    # An O_PATH descriptor cannot be synced, so the directory is opened once more.
    fresh = os.open(".", LIST, dir_fd=folder)
    try:
        os.fsync(fresh)
    finally:
        os.close(fresh)
