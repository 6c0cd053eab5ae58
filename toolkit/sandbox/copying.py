"""Copy of the workspace for level `copy`: clones files where the file system can, within bounds otherwise.

Reads by descriptors without following links. Hidden names are left out; `through` directories are empty,
since the real ones are shown in their place.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from dataclasses import dataclass

from ringfence.toolkit.sandbox.errors import SandboxError

_CLONE_FILE = 0x40049409  # FICLONE
_CANNOT_CLONE = (errno.EOPNOTSUPP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM)
MOST_ENTRIES = 100_000
MOST_BYTES = 2 << 30  # of files that are copied and not cloned
_MOST_LEVELS = 200
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1 << 24


def copy_tree(workspace: str, target: str, hidden: tuple[str, ...], through: tuple[str, ...]) -> None:
    """Make the directory `target`, a copy of `workspace`; SandboxError `too_large` at a bound."""
    os.mkdir(target, 0o700)
    source, copy = os.open(workspace, _DIRECTORY), os.open(target, _DIRECTORY)
    try:
        _Copy(frozenset(hidden), frozenset(through)).directory(source, copy, "", 0)
    finally:
        os.close(source)
        os.close(copy)


@dataclass(slots=True)
class _Copy:
    """One copy in progress, and what it has taken."""

    hidden: frozenset[str]
    through: frozenset[str]
    entries: int = 0
    copied: int = 0
    clones: bool = True

    def directory(self, source: int, target: int, path: str, level: int) -> None:
        """Copy what a directory holds, and then its mode and times."""
        if level > _MOST_LEVELS:
            raise _too_large(f"{path!r} lies more than {_MOST_LEVELS} directories deep", path)
        with os.scandir(source) as entries:
            found = list(entries)
        for entry in found:
            name = f"{path}/{entry.name}" if path else entry.name
            if name not in self.hidden:
                self._entry(source, target, entry, name, level)
        status = os.fstat(source)
        os.fchmod(target, stat.S_IMODE(status.st_mode))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))

    def _entry(self, source: int, target: int, entry: os.DirEntry[str], name: str, level: int) -> None:
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise _too_large(f"the workspace has more than {MOST_ENTRIES} entries", name)
        if entry.is_symlink():
            os.symlink(os.readlink(entry.name, dir_fd=source), entry.name, dir_fd=target)
        elif entry.is_dir(follow_symlinks=False):
            os.mkdir(entry.name, 0o700, dir_fd=target)
            if name in self.through:
                return
            below = os.open(entry.name, _DIRECTORY, dir_fd=source)
            copy = os.open(entry.name, _DIRECTORY, dir_fd=target)
            try:
                self.directory(below, copy, name, level + 1)
            finally:
                os.close(below)
                os.close(copy)
        elif entry.is_file(follow_symlinks=False):
            self._file(source, target, entry.name, name)

    def _file(self, source: int, target: int, entry: str, name: str) -> None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        read = os.open(entry, flags, dir_fd=source)
        write = os.open(entry, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=target)
        try:
            status = os.fstat(read)
            if not self._cloned(read, write):
                self.copied += status.st_size
                if self.copied > MOST_BYTES:
                    raise _too_large(f"the workspace has more than {MOST_BYTES} bytes", name)
                _copy_bytes(read, write, status.st_size)
            os.fchmod(write, stat.S_IMODE(status.st_mode))
            os.utime(write, ns=(status.st_atime_ns, status.st_mtime_ns))
        finally:
            os.close(read)
            os.close(write)

    def _cloned(self, read: int, write: int) -> bool:
        if not self.clones:
            return False
        try:
            fcntl.ioctl(write, _CLONE_FILE, read)
        except OSError as error:
            if error.errno not in _CANNOT_CLONE:
                raise
            self.clones = False
        return self.clones


def _copy_bytes(read: int, write: int, size: int) -> None:
    while size > 0:
        done = os.sendfile(write, read, None, min(size, _PIECE))
        if not done:
            return  # it was shortened meanwhile
        size -= done


def _too_large(text: str, place: str) -> SandboxError:
    return SandboxError("too_large", text, place=place)
