"""Late sync: what changes would sync is synced after the call was answered, or once for many changes.

Only for changes that can be made again from the history, where their content is on the disk already.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from ringfence.toolkit.storage.local import syscalls
from ringfence.toolkit.storage.local.entries import LIST, errors

_FEW = 8  # files and directories that are synced one by one; more are synced with their file system


class LateSync:
    """Files and directories to sync: held open, so that they are found wherever they are renamed to."""

    def __init__(self) -> None:
        self._held: list[int] = []
        self._directories: set[int] = set()  # the inodes of this change's directories, noted once each
        self.is_whole = False  # whether the whole file system is to be synced instead

    def add_file(self, fd: int) -> None:
        """Begin to write the open file to the disk, and note it.

        A new name may reach the disk before the content that it leads to; then others would find an empty
        file after a power cut.
        """
        syscalls.start_writing(fd)
        self._hold(lambda: os.dup(fd))

    def add_directory(self, fd: int) -> None:
        """Note the open directory."""
        inode = os.fstat(fd).st_ino  # a descriptor's number may be another directory's by now
        if inode not in self._directories:
            self._directories.add(inode)
            self._hold(lambda: os.open(".", LIST, dir_fd=fd))

    def _hold(self, opened: _Open) -> None:
        if self.is_whole:
            return
        try:
            self._held.append(opened())
        except OSError:
            self.sync_whole()  # no descriptor is left

    def join(self, other: LateSync) -> None:
        """Take over what another change noted."""
        self._held += other._held
        other._held = []
        if other.is_whole or self.is_whole or len(self._held) > _FEW:
            self.sync_whole()

    def sync_whole(self) -> None:
        """Sync the whole file system when the time comes."""
        self.close()
        self.is_whole = True

    def sync(self, root: int) -> None:
        """Sync everything noted, of the file system that the directory `root` is on. OSError."""
        if self.is_whole:
            sync_all(root)
            return
        for fd in self._held:
            os.fsync(fd)

    def close(self) -> None:
        """Close the descriptors."""
        while self._held:
            os.close(self._held.pop())


class _Open(Protocol):
    def __call__(self) -> int: ...


class _Disk(Protocol):
    late: LateSync | None
    durable: bool
    fd: int


@contextmanager
def later(disk: _Disk, noted: LateSync) -> Iterator[None]:
    """Note in `noted` what the changes of the block would sync. One change at a time."""
    disk.late = noted
    try:
        yield
    finally:
        disk.late = None


@contextmanager
def sync_once(disk: _Disk) -> Iterator[None]:
    """Sync nothing during the block, and the file system at its end, also after an error."""
    if not disk.durable:
        yield
        return
    disk.durable = False
    try:
        yield
    finally:
        disk.durable = True
        with errors("."):
            sync_all(disk.fd)


def sync_all(root: int) -> None:
    """Sync the file system that the open directory is on. OSError."""
    if not syscalls.sync_file_system(root):
        os.sync()
