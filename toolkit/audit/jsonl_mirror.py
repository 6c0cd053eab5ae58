"""JSON Lines copy of the audit for log collectors: missing records are added after every call.

Only appends: the fragment of a killed process is not removed but followed by the complete record. After a
rotation by others (rename, or copy and truncate) the next file continues where the old one ended. With a
`Rotation` it also rotates a full file itself.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ringfence.policy.loading.values import size_of
from ringfence.toolkit.audit.hash_chain import Record, begins_a_record, line, parsed
from ringfence.toolkit.audit.log import pages, seal_of
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.protected_paths import ASIDE

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import State

_TAIL = 1 << 16
_ASIDE = 1 << 26  # bytes at the end of a rotated file that must contain its last record
_MOST = 999  # the most rotated files that can be kept
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".lz4", ".Z", ".zip")


@dataclass(frozen=True, slots=True)
class Rotation:
    """Rotation of a file of `size` bytes or more to `.1`, of `.1` to `.2` and so on; `keep` files stay."""

    size: int
    keep: int

    @classmethod
    def of(cls, text: str) -> Rotation:
        """Return the rotation that a text like `100MiB:10` describes. ValueError."""
        amount, _, keep = text.partition(":")
        size = size_of(amount)
        if not size or not keep.isascii() or not keep.isdigit() or not 1 <= int(keep) <= _MOST:
            raise ValueError(text)
        return cls(size, int(keep))


class JsonlMirror:
    """The file at `path`, kept up to date with a workspace's audit.

    CallError `history_unavailable` where it cannot be written or holds another workspace's audit.
    """

    def __init__(self, path: str, state: State, rotation: Rotation | None = None) -> None:
        self._path = Path(path).absolute()
        self._rotation = rotation
        self._state = state
        self._last, self._end = 0, b""  # the last record's number, and its line
        self._old: int | None = None  # the rotated file, until its end is known
        try:
            self._fd = self._open()
        except OSError as error:
            raise _unwritable(error) from None
        try:
            self.catch_up()
        except BaseException:
            self.close()
            raise

    def catch_up(self) -> None:
        """Append the records that are not in the file yet, whichever process wrote them."""
        try:
            full = True
            while full:
                # One process at a time: each adds what the others have not.
                with self._turn():
                    with ExitStack() as stack:
                        self._add(stack)
                    if self._end:
                        self._forget_old()
                    full = self._is_full() and self._put_itself_aside()
        except OSError as error:
            raise _unwritable(error) from None

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)
        self._forget_old()

    def _open(self) -> int:
        return os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Open and lock the file that has the name now.

        A file that was renamed is not written to any more.
        """
        while True:
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            if self._has_the_name():
                break
            fcntl.flock(self._fd, fcntl.LOCK_UN)
            self._forget_old()
            fd = self._open()
            self._fd, self._old, self._end = fd, self._fd, b""
        try:
            yield
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _has_the_name(self) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(self._fd))
        except FileNotFoundError:
            return False

    def _forget_old(self) -> None:
        if self._old is not None:
            os.close(self._old)
            self._old = None

    def _add(self, stack: ExitStack) -> None:
        # By the line, not by the size: a truncated file may have grown to the same size.
        if not self._end or self._tail(len(self._end)) != self._end:
            self._find_last(stack)
        for rows in pages(self._state, self._last):
            lines = [line(body, prev, seal).encode() for _, body, prev, seal in rows]
            self._write(b"".join(lines))
            self._last, self._end = int(rows[-1][0]), lines[-1]
            if self._is_full():
                break

    def _tail(self, length: int) -> bytes:
        return os.pread(self._fd, length, max(os.fstat(self._fd).st_size - length, 0))

    def _find_last(self, stack: ExitStack) -> None:
        """Find the last complete record of the file, which has to belong to this audit."""
        last = _last_of(self._fd)
        if last is None and not begins_a_record(os.pread(self._fd, _TAIL, 0).lstrip()):
            raise CallError(
                "history_unavailable",
                "The file for the audit log has other content",
                hint="name a new file, or the log of this workspace and state",
            )
        if last is not None and not self._is_ours(last):
            raise CallError(
                "history_unavailable",
                f"The audit log belongs to another workspace's audit (record {last.seq})",
                hint="give each workspace and state an --audit-log of its own, and verify both",
            )
        self._last = last.seq if last is not None else self._end_of_what_was_put_aside(stack)
        self._end = line(last.body, last.prev, last.hash).encode() if last is not None else b""
        if self._tail(1) not in (b"", b"\n"):
            self._write(b"\n")

    def _is_ours(self, record: Record) -> bool:
        return seal_of(self._state, record.seq) == record.hash

    # ------------------------------------------------------- rotation

    def _is_full(self) -> bool:
        return self._rotation is not None and os.fstat(self._fd).st_size >= self._rotation.size

    def _put_itself_aside(self) -> bool:
        """Rename the full file to `.1`; false where it cannot be renamed, and it keeps growing."""
        assert self._rotation is not None, "only a file that has a size is full"
        names = [Path(f"{self._path}.{n}") for n in range(1, self._rotation.keep + 1)]
        free = next((n for n, name in enumerate(names) if not name.exists()), len(names) - 1)
        try:
            for n in range(free, 0, -1):
                names[n - 1].rename(names[n])
            self._path.rename(names[0])
        except PermissionError:
            return False
        return True

    def _end_of_what_was_put_aside(self, stack: ExitStack) -> int:
        """Return the last record before this file; 0 if nothing was rotated, or the old file is unknown.

        The old file stays locked until this one has begun, because others may still have it open.
        """
        ends = [(self._end_of(fd), fd) for fd in self._put_aside(stack)]
        end, newest = max(ends, default=(0, -1))
        if not end:
            return 0
        fcntl.flock(newest, fcntl.LOCK_EX)
        stack.callback(fcntl.flock, newest, fcntl.LOCK_UN)
        return self._end_of(newest)

    def _end_of(self, fd: int) -> int:
        last = _last_of(fd, _ASIDE)
        return last.seq if last is not None and self._is_ours(last) else 0

    def _put_aside(self, stack: ExitStack) -> Iterator[int]:
        """Yield the file that was open before, if it still exists, and the files with rotated names."""
        if self._old is not None and os.fstat(self._old).st_nlink:
            yield self._old
        begin = tuple(f"{self._path.name}{sign}" for sign in ASIDE)
        try:
            found = [path for path in self._path.parent.iterdir() if path.name.startswith(begin)]
        except OSError:
            found = []  # a directory that may not be listed
        for path in found:
            if path.suffix in _PACKED or not path.is_file():
                continue
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            except OSError:
                continue  # gone by now, or not readable
            stack.callback(os.close, fd)
            if not os.path.samestat(os.fstat(fd), os.fstat(self._fd)):
                yield fd

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._fd, data) :]


def _last_of(fd: int, most: int | None = None) -> Record | None:
    """Return the last complete record of a file, if it is in the last `most` bytes."""
    size = os.fstat(fd).st_size
    length = _TAIL
    while True:
        start = max(size - length, 0)
        pieces = os.pread(fd, size - start, start).split(b"\n")
        whole = pieces if start == 0 else pieces[1:]
        found = (parsed(piece.decode("utf-8", "replace")) for piece in reversed(whole))
        last = next((row for row in found if row is not None), None)
        if last is not None or start == 0 or (most is not None and length >= most):
            return last
        length *= 4


def _unwritable(error: OSError) -> CallError:
    return CallError("history_unavailable", f"The audit log cannot be written ({error.strerror})")
