"""Atomic write: a complete new file beside its place, then a rename to a free name or over the judged file.

Never leaves a partial file under a name that anybody else uses.
"""

from __future__ import annotations

import errno
import os
import stat as S
from collections.abc import Callable

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage import sparse_files
from ringfence.toolkit.storage.local import syscalls
from ringfence.toolkit.storage.local.entries import LIST, NEW, lstat, open_regular, unlink_quietly
from ringfence.toolkit.storage.local.metadata import set_on
from ringfence.toolkit.storage.local.spot import LocalSpot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ringfence.toolkit.plan.content import StreamedContent

# Errors of a file system without hard links, and of a kernel without the call.
_UNSUPPORTED = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL)


def open_to_replace(spot: LocalSpot, *, needed: bool) -> tuple[int, os.stat_result]:
    """Return a descriptor of the file to replace, and its status; the caller closes the descriptor.

    The descriptor is -1 for a file that cannot be opened, unless `needed`. CallError, OSError.
    """
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
    sync: Callable[[int], None],
    metadata: Metadata,
) -> NotKept:
    """Create the file `name` in the open directory `folder`, completely or not at all.

    `sync` gets the open file once it is written. `mode` None leaves the mode to the umask. Returns the
    fields of `metadata` that were not kept. OSError.
    """
    from ringfence.toolkit.plan.content import pieces  # a tree that is only read needs no content

    fd = os.open(name, NEW, 0o666 if mode is None else 0o600, dir_fd=folder)
    try:
        sparse_files.write_all(fd, pieces(data))
        not_kept = set_on(fd, metadata, mode)
        sync(fd)
    except BaseException:
        unlink_quietly(name, folder)
        raise
    finally:
        os.close(fd)
    return not_kept


def create(  # noqa: PLR0913  a new file and its place
    kernel: syscalls.Kernel,
    spot: LocalSpot,
    data: bytes | StreamedContent,
    mode: int | None,
    temporary: str,
    *,
    sync: Callable[[int], None],
    metadata: Metadata,
) -> NotKept:
    """Write a file as `temporary` and rename it to the free name of `spot`. As `write`; OSError."""
    not_kept = write(spot.fd, temporary, data, mode, sync=sync, metadata=metadata)
    try:
        rename_temporary(kernel, LocalSpot(spot.fd, (temporary,)), spot)
    except BaseException:
        unlink_quietly(temporary, spot.fd)
        raise
    return not_kept


def rename_temporary(kernel: syscalls.Kernel, temporary: LocalSpot, spot: LocalSpot) -> None:
    """Rename the file at `temporary` to the name of `spot`, if that is free. OSError."""
    try:
        rename_new(kernel, temporary, spot, atomic=True)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        # Neither call exists: create the name exclusively, then rename over that empty file.
        os.close(os.open(spot.name, NEW, 0o600, dir_fd=spot.fd))
        os.rename(temporary.name, spot.name, src_dir_fd=spot.fd, dst_dir_fd=spot.fd)


def rename_new(
    kernel: syscalls.Kernel, source: LocalSpot, destination: LocalSpot, *, atomic: bool = False
) -> None:
    """Rename to a free name. OSError.

    Where neither the kernel nor a hard link does that in one step, the name is checked before; with `atomic`
    the rename fails instead.
    """
    ends = {"src_dir_fd": source.fd, "dst_dir_fd": destination.fd}
    if kernel.rename_new:
        try:
            syscalls.rename_new(source.fd, source.name, destination.fd, destination.name)
            return
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
    if atomic or not S.S_ISDIR(lstat(source).st_mode):
        try:
            os.link(source.name, destination.name, **ends, follow_symlinks=False)
        except OSError as error:
            if atomic or error.errno not in _UNSUPPORTED:
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
    readable = os.open(".", LIST, dir_fd=folder)
    try:
        os.fsync(readable)
    finally:
        os.close(readable)
