"""Files without a name: a new file is written first, and then gets its name.

Nobody sees the file before the change gives it its name. If the process ends or the power fails before that,
the kernel frees it, so a change without an intent leaves nothing. An early one is written and synced in a
thread while the intent is committed.
"""

from __future__ import annotations

import _thread
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from ringfence.policy.value_classes import replace
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage import sparse_files
from ringfence.toolkit.storage.local import atomic_write, syscalls
from ringfence.toolkit.storage.local.entries import identity_of
from ringfence.toolkit.storage.local.metadata import for_replacement, set_on
from ringfence.toolkit.storage.local.spot import LocalSpot

if TYPE_CHECKING:
    from ringfence.toolkit.plan.changes import Write
    from ringfence.toolkit.plan.content import StreamedContent


_FULL = (errno.ENOSPC, errno.EDQUOT)  # they say nothing of the next file


class EarlyFile:
    """A file without a name in the directory of its later name: made, written and synced in another thread.

    In that thread also because making it may wait for the file system's journal.
    """

    def __init__(self, disk: _Disk, folder: int, data: bytes, mode: int | None, metadata: Metadata) -> None:
        self._disk, self._folder, self._data, self._given = disk, folder, data, (mode, metadata)
        self._fd = -1
        self._not_kept: NotKept = ()
        self._error: OSError | None = None
        # Locks and a bare thread, because `threading.Thread` costs as much as a statement or two.
        self._begun, self._done = _thread.allocate_lock(), _thread.allocate_lock()
        self._done.acquire()
        with suppress(RuntimeError):  # no thread could be started
            _thread.start_new_thread(self._write, ())

    def _write(self) -> None:
        """Make, write and sync the file, unless that was begun."""
        if not self._begun.acquire(blocking=False):
            return
        mode, metadata = self._given
        try:
            self._fd, self._not_kept = _write_unnamed(self._folder, self._data, mode, metadata)
            os.fsync(self._fd)
        except OSError as error:
            self._error = error
        finally:
            self._done.release()

    def link(self, folder: int, name: str, mode: int | None, metadata: Metadata) -> NotKept | None:
        """Give the synced file a free name in the open directory `folder`; return the fields that were not
        kept.

        None if it has other fields than these, or if it could not be made or linked here. OSError if it could
        not be synced, FileExistsError if the name is taken.
        """
        self._write()  # on a busy machine the thread may not have begun yet
        self._wait()
        if self._fd < 0:
            return None  # the write that follows meets the same error, and reports it
        if self._error is not None:
            raise self._error
        if (mode, metadata) != self._given:
            return None
        return self._not_kept if _link(self._disk, self._fd, folder, name) else None

    def close(self) -> None:
        """Close the file, which is gone then if it has no name."""
        if not self._begun.acquire(blocking=False):
            self._wait()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _wait(self) -> None:
        with self._done:
            pass


class _Disk(Protocol):
    durable: bool
    kernel: syscalls.Kernel
    early_files: dict[str, EarlyFile]

    def sync_file(self, fd: int) -> None: ...


@contextmanager
def early(disk: _Disk, spot: LocalSpot, change: Write, temporary: str) -> Iterator[None]:
    """Begin to write the content of `change`; `create` and `replace` take the file by `temporary`."""
    file = _begun(disk, spot, change)
    if file is None:
        yield
        return
    disk.early_files[temporary] = file
    try:
        yield
    finally:
        del disk.early_files[temporary]
        file.close()


def create(  # noqa: PLR0913  a new file and its place
    disk: _Disk,
    spot: LocalSpot,
    temporary: str,
    data: bytes | StreamedContent,
    mode: int | None,
    metadata: Metadata,
) -> NotKept:
    """Create the file at `spot`, from the early one if there is one. As `atomic_write.create`; OSError."""
    not_kept = _linked(disk, spot, temporary, spot.name, mode, metadata)
    if not_kept is None and disk.kernel.unnamed and isinstance(data, bytes):
        not_kept = _create_unnamed(disk, spot, data, mode, metadata)
    if not_kept is not None:
        return not_kept
    return atomic_write.create(
        disk.kernel, spot, data, mode, temporary, sync=disk.sync_file, metadata=metadata
    )


def write(  # noqa: PLR0913  a new file and its place
    disk: _Disk,
    spot: LocalSpot,
    temporary: str,
    data: bytes | StreamedContent,
    mode: int | None,
    metadata: Metadata,
) -> NotKept:
    """Write the file `temporary` beside `spot`, from the early one if there is one. OSError."""
    not_kept = _linked(disk, spot, temporary, temporary, mode, metadata)
    if not_kept is not None:
        return not_kept
    return atomic_write.write(spot.fd, temporary, data, mode, sync=disk.sync_file, metadata=metadata)


def _linked(  # noqa: PLR0913  a file, its name, and what it must have
    disk: _Disk, spot: LocalSpot, temporary: str, name: str, mode: int | None, metadata: Metadata
) -> NotKept | None:
    """Give the early file of `temporary` a name beside `spot`, as `EarlyFile.link`; None without one."""
    file = disk.early_files.get(temporary)
    return None if file is None else file.link(spot.fd, name, mode, metadata)


def _create_unnamed(
    disk: _Disk, spot: LocalSpot, data: bytes, mode: int | None, metadata: Metadata
) -> NotKept | None:
    """Create the file at `spot` without a temporary name, which takes less time than a rename; None where
    that cannot be done. OSError.
    """
    try:
        fd, not_kept = _write_unnamed(spot.fd, data, mode, metadata)
    except OSError:
        return None  # the write that follows meets the same error, and reports it
    try:
        disk.sync_file(fd)
        return not_kept if _link(disk, fd, spot.fd, spot.name) else None
    finally:
        os.close(fd)


def _write_unnamed(folder: int, data: bytes, mode: int | None, metadata: Metadata) -> tuple[int, NotKept]:
    """Return a new open file without a name, and the fields of `metadata` that were not kept. OSError."""
    fd = os.open(".", syscalls.UNNAMED, 0o666 if mode is None else 0o600, dir_fd=folder)
    try:
        sparse_files.write_all(fd, (data,))
        return fd, set_on(fd, metadata, mode)
    except BaseException:
        os.close(fd)
        raise


def _link(disk: _Disk, fd: int, folder: int, name: str) -> bool:
    """Give the open file a free name in the open directory `folder`; return whether that can be done here.

    FileExistsError if the name is taken.
    """
    try:
        os.link(f"/proc/self/fd/{fd}", name, dst_dir_fd=folder, follow_symlinks=True)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in _FULL:
            # No /proc, a sandbox, or a file system that refuses it: no file is written in vain again.
            disk.kernel = replace(disk.kernel, unnamed=False)
        return False
    return True


def _begun(disk: _Disk, spot: LocalSpot, change: Write) -> EarlyFile | None:
    if not disk.durable or not disk.kernel.unnamed or spot.rest or not isinstance(change.data, bytes):
        return None
    try:
        fields, mode = change.metadata or {}, change.mode
        if change.stat is not None:
            old, info = atomic_write.open_to_replace(spot, needed=False)
            try:
                if identity_of(info) != change.stat.identity:
                    return None
                fields, mode, _ = for_replacement(old, info, mode, change.metadata)
            finally:
                if old >= 0:
                    os.close(old)
        return EarlyFile(disk, spot.fd, change.data, mode, fields)
    except (OSError, CallError):
        return None  # the change itself meets the same error, and reports it
