"""A copy of the audit as JSON lines, for those who collect logs: what it lacks is added after every call.

Only ever appends: a piece that a killed process left is not cut off but followed by the whole record.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from toolkit.chain import line, parsed
from toolkit.errors import CallError

if TYPE_CHECKING:
    from toolkit.state import State

_TAIL = 1 << 16


class Mirror:
    """The file at `path`, brought up to date with a workspace's audit.

    Raises CallError `history_unavailable` where it cannot be written or holds another workspace's audit.
    """

    def __init__(self, path: str, state: State) -> None:
        self._state = state
        self._last, self._size = 0, -1
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unwritable(error) from None
        try:
            self.catch_up()
        except BaseException:
            self.close()
            raise

    def catch_up(self) -> None:
        """Add the records that are not in the file yet, whichever process wrote them."""
        try:
            # One process at a time: each adds what the others have not.
            fcntl.flock(self._fd, fcntl.LOCK_EX)
            try:
                self._add()
            finally:
                fcntl.flock(self._fd, fcntl.LOCK_UN)
        except OSError as error:
            raise _unwritable(error) from None

    def close(self) -> None:
        os.close(self._fd)

    def _add(self) -> None:
        if os.fstat(self._fd).st_size != self._size:
            self._find_last()
        sql = "SELECT seq, body, prev, hash FROM audit WHERE seq > ? ORDER BY seq LIMIT 500"
        while rows := self._state.rows(sql, (self._last,)):
            self._write("".join(line(body, prev, seal) for _, body, prev, seal in rows).encode())
            self._last = int(rows[-1][0])
        self._size = os.fstat(self._fd).st_size

    def _find_last(self) -> None:
        """Where the file ends: the last whole record, which has to be one of this audit."""
        size = os.fstat(self._fd).st_size
        length, last = _TAIL, None
        while last is None:
            start = max(size - length, 0)
            pieces = os.pread(self._fd, size - start, start).split(b"\n")
            whole = pieces if start == 0 else pieces[1:]
            found = (parsed(piece.decode("utf-8", "replace")) for piece in reversed(whole))
            last = next((row for row in found if row is not None), None)
            if start == 0:
                break
            length *= 4
        self._last = last.seq if last is not None else 0
        if last is not None:
            rows = self._state.rows("SELECT hash FROM audit WHERE seq = ?", (last.seq,))
            if not rows or rows[0][0] != last.hash:
                raise CallError(
                    "history_unavailable",
                    f"The audit log does not go with this workspace's audit (record {last.seq})",
                    hint="give each workspace and state an --audit-log of its own, and verify both",
                )
        if size and os.pread(self._fd, 1, size - 1) != b"\n":
            self._write(b"\n")

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._fd, data) :]


def _unwritable(error: OSError) -> CallError:
    return CallError("history_unavailable", f"The audit log cannot be written ({error.strerror})")
