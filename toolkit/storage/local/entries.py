"""One entry at a time in an open directory: its stat, its bytes, and the kernel's errors as CallError.

Never follows a link and never blocks on a device.
"""

from __future__ import annotations

import errno
import os
import stat as S
from collections.abc import Iterator

from ringfence.policy.byte_names import from_disk
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.fake_fs import is_faked
from ringfence.toolkit.plan.entries import DIRECTORY, FILE, LINK, OTHER, Stat
from ringfence.toolkit.storage import sparse_files
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.local.spot import LocalSpot

READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC
LIST = os.O_RDONLY | os.O_CLOEXEC | sum(getattr(os, flag, 0) for flag in ("O_DIRECTORY", "O_NOFOLLOW"))
_REGULAR = READ | getattr(os, "O_NOCTTY", 0)
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
_KINDS = {S.S_IFREG: FILE, S.S_IFDIR: DIRECTORY, S.S_IFLNK: LINK}
_KIND_BITS, _PERMISSION_BITS = 0o170000, 0o7777  # the parts of a mode
_MAX_TRIES = 8
_CHUNK, _MAX_READ = 1 << 20, 1 << 26  # bytes of one read, at least and at most


def stat_of(info: os.stat_result, target: str | None = None) -> Stat:
    """Return the stat of an entry; `target` is the text of a link."""
    mode = info.st_mode
    # pyfakefs sets the time of change when a file is only read.
    changed = 0 if is_faked() else info.st_ctime_ns
    # By position, and with `identity_of` written out, for speed: a large tree makes one for every entry.
    return Stat(
        _KINDS.get(mode & _KIND_BITS, OTHER),
        info.st_size,
        info.st_mtime,
        info.st_atime,
        mode & _PERMISSION_BITS,
        info.st_nlink,
        target,
        f"{info.st_ino}:{info.st_mtime_ns}:{changed}",
    )


def identity_of(info: os.stat_result) -> str:
    """Return the identity that `stat_of` gives the entry."""
    changed = 0 if is_faked() else info.st_ctime_ns
    return f"{info.st_ino}:{info.st_mtime_ns}:{changed}"


def version_of(stat: Stat) -> str:
    """Return the text that differs if an entry was replaced or has other content. A directory's is the same
    for all: its times follow its entries, which are compared one by one.
    """
    return stat.kind if stat.kind == DIRECTORY else f"{stat.kind} {stat.identity}"


def version_in(info: os.stat_result) -> str:
    """Return the version of the entry with this status."""
    kind = _KINDS.get(info.st_mode & _KIND_BITS, OTHER)
    return kind if kind == DIRECTORY else f"{kind} {identity_of(info)}"


def is_own(info: os.stat_result) -> bool:
    """Whether owner and group are those of a file that this process creates."""
    return (info.st_uid, info.st_gid) == (os.geteuid(), os.getegid())


def before_rename(stat: Stat) -> str:
    """Return the part of the identity that a rename keeps: inode and modification time."""
    return stat.identity.rpartition(":")[0]


def lstat(spot: LocalSpot) -> os.stat_result:
    """Return the entry's status without following a link. OSError."""
    if spot.rest:
        raise FileNotFoundError(errno.ENOENT, "nothing there")
    if spot.name == ".":
        return os.fstat(spot.fd)
    return os.stat(spot.name, dir_fd=spot.fd, follow_symlinks=False)


def stat_with_target(fd: int, name: str, info: os.stat_result) -> Stat:
    """Return the stat of an entry, with the text of a link; `info` is its status just now.

    Tries again if the entry was swapped meanwhile. CallError `path_changed`, OSError.
    """
    for _ in range(_MAX_TRIES):
        if not S.S_ISLNK(info.st_mode):
            return stat_of(info)
        try:
            return stat_of(info, from_disk(os.readlink(name, dir_fd=fd)))
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
    raise path_changed(from_disk(name))


def open_regular(spot: LocalSpot) -> tuple[int, os.stat_result]:
    """Open a regular file without following a link; returns descriptor and status. OSError."""
    if spot.rest:
        raise FileNotFoundError(errno.ENOENT, "nothing there")
    return open_regular_in(spot.fd, spot.name, spot.path)


def open_regular_in(folder: int, name: str, path: str) -> tuple[int, os.stat_result]:
    """Open the regular file `name`, displayed as `path`, in the open directory `folder`. OSError."""
    fd = os.open(name, _REGULAR, dir_fd=folder)
    info = os.fstat(fd)
    if S.S_ISREG(info.st_mode):
        return fd, info
    os.close(fd)
    if S.S_ISDIR(info.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory")
    raise CallError("not_regular_file", f"'{path}' is not a regular file", where=path)


def chunks(spot: LocalSpot, judged: Stat | None = None) -> Iterator[bytes]:
    """Yield the content of a regular file in pieces. CallError `path_changed` if it is not `judged`."""
    with errors(spot.path):
        fd, info = open_regular(spot)
        try:
            if judged is not None and identity_of(info) != judged.identity:
                raise path_changed(spot.path)
            yield from sparse_files.pieces_of(fd, info)
        finally:
            os.close(fd)


def read_all(
    fd: int, info: os.stat_result, limit: int | None, path: str, judged: Stat | None = None
) -> bytes:
    """Return the bytes of the file that is open as `fd` and was `info` just now.

    CallError `too_large` beyond `limit` bytes, `path_changed` if it is not the `judged` one; OSError.
    """
    if judged is not None and identity_of(info) != judged.identity:
        raise path_changed(path)
    size = info.st_size
    if limit is not None and size > limit:
        raise _too_large(path, limit)
    # One byte more than expected shows that the file has grown; a file of /proc has no size.
    data = os.read(fd, min(size + 1, _MAX_READ) if size else _CHUNK)
    if not data or len(data) == size:
        return data
    pieces, total = [data], len(data)
    while limit is None or total <= limit:
        piece = os.read(fd, min(max(size + 1 - total, _CHUNK), _MAX_READ))
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        total += len(piece)
    raise _too_large(path, limit)


def unlink_quietly(name: str, fd: int) -> None:
    """Remove a name in the open directory `fd`, if it exists. OSError."""
    try:
        os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        pass


def _too_large(path: str, limit: int) -> CallError:
    return CallError("too_large", f"'{path}' is larger than {limit} bytes", where=path)


class errors:
    """Context manager that translates an OSError of its block into a CallError about `path`."""

    # A class, because a generator of contextlib would cost as much as the block.
    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, OSError):
            raise translated(error, self._path) from None


_BY_ERRNO = {
    errno.ENOENT: ("not_found", "'{}' does not exist"),
    errno.EEXIST: ("already_exists", "'{}' already exists"),
    errno.EISDIR: ("is_directory", "'{}' is a directory"),
    errno.ENOTDIR: ("not_a_directory", "'{}' is not a directory"),
    errno.ENOTEMPTY: ("directory_not_empty", "'{}' is not empty"),
    errno.EACCES: ("permission_denied", "Permission denied: '{}'"),
    errno.EPERM: ("permission_denied", "Permission denied: '{}'"),
    errno.EROFS: ("permission_denied", "The file system is read-only: '{}'"),
    errno.ENXIO: ("not_regular_file", "'{}' is not a regular file"),
    errno.ELOOP: ("path_changed", "'{}' changed after it was judged"),
    errno.ENAMETOOLONG: ("path_invalid", "The name is too long: '{}'"),
}


def translated(error: OSError, path: str) -> CallError:
    """Return the CallError for an OSError; other errors than the known ones are `io_error`."""
    code, message = _BY_ERRNO.get(
        error.errno or 0, ("io_error", "The file system failed on '{}': " + _reason(error))
    )
    return CallError(code, message.format(path), where=path)


def _reason(error: OSError) -> str:
    # strerror alone: str(error) would show the host's path. Braces would be taken as a format.
    return (error.strerror or type(error).__name__).replace("{", "(").replace("}", ")")
