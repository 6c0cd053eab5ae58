"""Linux system calls beyond `os`: open without links, rename to a free name, distinguish mounts.

Each is used only where `probe` found that it sees the same files as `os` does; under a fake file system, in
some sandboxes and on other systems it does not. Never the only way to do something.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ringfence.policy.value_classes import dataclass
from ringfence.toolkit.fake_fs import is_faked

_OPENAT2 = 437  # the same number on every architecture that Python supports
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 2, 4, 8
_EMPTY_PATH, _MOUNT_ID = 0x1000, 0x1000
_INODE, _BIRTH = 0x100, 0x800
_NOREPLACE = 1
_START_WRITING = 2  # SYNC_FILE_RANGE_WRITE
_TRIES = 4
_MAX_PATH = 4000  # bytes; the kernel takes 4,096 with the NUL
# Not O_NOFOLLOW: with it a link at the end is "not a directory", and without it NO_SYMLINKS says ELOOP.
_FLAGS = os.O_CLOEXEC | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0)
# A new file without a name, to be opened with its directory; 0 where the system has none.
UNNAMED = os.O_WRONLY | os.O_CLOEXEC | os.O_TMPFILE if hasattr(os, "O_TMPFILE") else 0
_STEP = _FLAGS | getattr(os, "O_NOFOLLOW", 0)


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@dataclass(frozen=True, slots=True)
class Kernel:
    """Which of the calls below may be used."""

    beneath: bool = False
    rename_new: bool = False
    mounts: bool = False
    unnamed: bool = False


def probe(root: int) -> Kernel:
    """Return the calls that can be used for the directory open as `root`."""
    if sys.platform != "linux" or is_faked():
        return Kernel()
    rename_new, mounts = hasattr(_libc(), "renameat2"), _statx_mount(root) is not None
    return Kernel(_same_directory(root), rename_new, mounts, bool(UNNAMED))


def _same_directory(root: int) -> bool:
    try:
        fd = open_beneath(root, ".")
    except OSError:
        return False  # an old kernel (ENOSYS) or a sandbox that does not know the call (EPERM)
    try:
        return os.path.samestat(os.fstat(fd), os.fstat(root))
    finally:
        os.close(fd)


def open_beneath(fd: int, path: str | bytes) -> int:
    """Open a directory below `fd`, and refuse every link on the way (openat2(2)). OSError."""
    name = os.fsencode(path)
    call, number, how, size = _openat2()
    for _ in range(_TRIES):
        found: int = call(number, fd, name, how, size)
        if found >= 0:
            return found
        code = ctypes.get_errno()
        if code not in (errno.EAGAIN, errno.EINTR):
            break
    raise OSError(code, os.strerror(code))


def descend(kernel: Kernel, fd: int, names: Sequence[str]) -> int:
    """Open the directory below `fd` that `names` lead to, through no link; names are the disk's own.

    Neither the length of the path nor its depth is bounded. OSError.
    """
    at = fd
    steps: Iterable[str | bytes] = _pieces(names) if kernel.beneath else names
    try:
        for step in steps:
            below = open_beneath(at, step) if kernel.beneath else os.open(step, _STEP, dir_fd=at)
            if at != fd:
                os.close(at)
            at = below
    except BaseException:
        if at != fd:
            os.close(at)
        raise
    return at if at != fd else os.open(".", _STEP, dir_fd=fd)


def _pieces(names: Sequence[str]) -> Iterator[bytes]:
    """Yield paths that the kernel accepts in one call; together they are all the names."""
    path = os.fsencode("/".join(names))
    while len(path) > _MAX_PATH:
        end = path.rindex(b"/", 0, _MAX_PATH)
        yield path[:end]
        path = path[end + 1 :]
    if path:
        yield path


def rename_new(source: int, name: str, destination: int, new: str) -> None:
    """Rename, or raise FileExistsError where the new name is taken (renameat2(2)). OSError."""
    if _libc().renameat2(source, os.fsencode(name), destination, os.fsencode(new), _NOREPLACE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def sync_file_system(fd: int) -> bool:
    """Sync the file system that `fd` is on (syncfs(2)); False where that is not possible."""
    if sys.platform != "linux" or is_faked() or not hasattr(_libc(), "syncfs"):
        return False
    if _libc().syncfs(fd) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return True


def start_writing(fd: int) -> None:
    """Begin to write the file's content to the disk, and wait for nothing (sync_file_range(2)).

    A hint: without the call, or after its error, the content is written later.
    """
    if sys.platform == "linux" and not is_faked() and hasattr(_libc(), "sync_file_range"):
        _libc().sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(0), _START_WRITING)


def file_system_of(fd: int) -> int | None:
    """Return the number that Linux gives the kind of file system (statfs(2)); None where it is unknown."""
    if sys.platform != "linux" or is_faked() or not hasattr(_libc(), "fstatfs"):
        return None
    answer = ctypes.create_string_buffer(256)
    if _libc().fstatfs(fd, answer) != 0:
        return None
    return int.from_bytes(answer.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder)


def birth_of(fd: int) -> str | None:
    """Return the inode and the time of creation, which no other directory of the file system ever has; None
    where the time is not kept.
    """
    if sys.platform != "linux" or is_faked() or not hasattr(_libc(), "statx"):
        return None
    answer = ctypes.create_string_buffer(256)
    if _libc().statx(fd, b"", _EMPTY_PATH, _INODE | _BIRTH, answer) != 0:
        return None
    mask, inode, seconds, nanoseconds = (
        int.from_bytes(answer.raw[start:end], sys.byteorder)
        for start, end in ((0, 4), (32, 40), (80, 88), (88, 92))
    )
    return f"{inode}:{seconds}:{nanoseconds}" if mask & _BIRTH else None


def mount_of(fd: int, kernel: Kernel) -> int:
    """Return an identity of the mount.

    Without statx(2) the device, which does not distinguish bind mounts.
    """
    found = _statx_mount(fd) if kernel.mounts else None
    return os.fstat(fd).st_dev if found is None else found


def _statx_mount(fd: int) -> int | None:
    if not hasattr(_libc(), "statx"):
        return None
    answer = ctypes.create_string_buffer(256)
    if _libc().statx(fd, b"", _EMPTY_PATH, _MOUNT_ID, answer) != 0:
        return None
    found = answer.raw
    mask = int.from_bytes(found[0:4], sys.byteorder)
    return int.from_bytes(found[144:152], sys.byteorder) if mask & _MOUNT_ID else None


@functools.cache
def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


@functools.cache
def _openat2() -> tuple[Any, ctypes.c_long, Any, ctypes.c_size_t]:
    """Return the call and its constant arguments, converted once: conversion is half of the call's cost."""
    how = _How(_FLAGS, 0, _NO_MAGICLINKS | _NO_SYMLINKS | _BENEATH)
    return _libc().syscall, ctypes.c_long(_OPENAT2), ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how))
