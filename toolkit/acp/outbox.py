"""Outbox: writes lines to one side in a thread of its own, so that a slow reader never stops the proxy.

What is passed on waits while much is unwritten; Ringfence's own answers never wait.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from contextlib import suppress
from typing import IO

_MUCH = 64 << 20  # bytes that may be unwritten before passing on waits
_PATIENCE = 5.0  # seconds for what is unwritten at the end
_LOOK_AGAIN = 500  # milliseconds


class Outbox:
    """The lines for one side, in the order in which they were put."""

    def __init__(self, sink: IO[bytes], name: str) -> None:
        self._sink = sink
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._ends = False
        self._until = 0.0
        self._broken = False
        self._patient = True
        self._thread = threading.Thread(target=self._write, name=name, daemon=True)
        self._thread.start()

    def put(self, line: bytes, *, wait: bool = False) -> None:
        """Write a line soon; `wait` until little enough is unwritten. Nothing happens if the side is gone."""
        with self._changed:
            while wait and self._patient and self._size > _MUCH and not self._broken:
                self._changed.wait()
            if self._broken or self._ends:
                return
            self._lines.append(line)
            self._size += len(line)
            self._changed.notify_all()

    def stop_waiting(self) -> None:
        """Let go of whoever waits in `put`."""
        with self._changed:
            self._patient = False
            self._changed.notify_all()

    def close(self) -> None:
        """Write what is there, and close the stream; give up on a side that does not read."""
        with self._changed:
            self._ends = True
            self._until = time.monotonic() + _PATIENCE
            self._changed.notify_all()
        self._thread.join()
        with suppress(OSError):
            self._sink.close()

    def _write(self) -> None:
        while True:
            with self._changed:
                while not self._lines and not self._ends:
                    self._changed.wait()
                if not self._lines:
                    return
                batch = b"".join(self._lines)
                self._lines.clear()
            written = self._written(batch)
            with self._changed:
                self._size -= len(batch)
                self._broken = not written
                self._changed.notify_all()
            if not written:
                return

    def _written(self, batch: bytes) -> bool:
        """Write a batch past the buffer of the stream, and return whether that worked."""
        left, sink = memoryview(batch), self._sink.fileno()
        poll = select.poll()
        poll.register(sink, select.POLLOUT)
        try:
            while left:
                if poll.poll(_LOOK_AGAIN):
                    left = left[os.write(sink, left[: select.PIPE_BUF]) :]
                elif self._ends and time.monotonic() > self._until:
                    return False
        except (OSError, ValueError):
            return False
        return True
