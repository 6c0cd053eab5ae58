"""Sparse files: holes are read as shared zeros without I/O, and written as holes again.

Only a hole that the file system reports is a hole; zeros in the content are read and written as they are.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator

from ringfence.toolkit.fake_fs import is_faked

CHUNK = 1 << 20
ZEROS = bytes(CHUNK)  # a piece is a hole if it is this very object
_NO_HOLES = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTTY)  # errors of a file system that reports no holes


def pieces_of(fd: int, info: os.stat_result) -> Iterator[bytes]:
    """Yield the content of the regular file open as `fd`, from its start, in pieces. OSError."""
    offset = 0
    if hasattr(os, "SEEK_DATA") and info.st_size - info.st_blocks * 512 > CHUNK and not is_faked():
        while (start := _next_data(fd, offset)) is not None:
            yield from _zeros(start - offset)
            end = os.lseek(fd, start, os.SEEK_HOLE)
            os.lseek(fd, start, os.SEEK_SET)
            while start < end and (data := os.read(fd, min(CHUNK, end - start))):
                start += len(data)
                yield data
            if start < end:
                return  # the file was truncated meanwhile
            offset = end
        size = os.fstat(fd).st_size
        if offset < size and _is_hole(fd, offset):
            yield from _zeros(size - offset)
            offset = size
        os.lseek(fd, offset, os.SEEK_SET)
    while data := os.read(fd, CHUNK):
        yield data


def write_all(fd: int, pieces: Iterable[bytes]) -> None:
    """Write pieces at the start of a new file; zeros of a hole are skipped. OSError."""
    ends_in_hole = False
    for piece in pieces:
        ends_in_hole = piece is ZEROS
        if ends_in_hole:
            os.lseek(fd, len(piece), os.SEEK_CUR)
            continue
        view = memoryview(piece)
        while view:
            view = view[os.write(fd, view) :]
    if ends_in_hole:
        os.ftruncate(fd, os.lseek(fd, 0, os.SEEK_CUR))


def _next_data(fd: int, offset: int) -> int | None:
    """Return the offset of the next data; None if there are none, or if the file system reports no holes."""
    try:
        return os.lseek(fd, offset, os.SEEK_DATA)
    except OSError as error:
        if error.errno not in (errno.ENXIO, *_NO_HOLES):
            raise
        return None


def _is_hole(fd: int, offset: int) -> bool:
    try:
        return os.lseek(fd, offset, os.SEEK_HOLE) == offset
    except OSError:
        return False


def _zeros(size: int) -> Iterator[bytes]:
    for _ in range(size // CHUNK):
        yield ZEROS
    if size % CHUNK:
        yield ZEROS[: size % CHUNK]
