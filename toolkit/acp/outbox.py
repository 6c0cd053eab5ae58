"""Outbox: writes lines to one side in a thread of its own, so that a slow reader never stops the proxy.

What is passed on waits while much is unwritten; Ringfence's own answers never wait.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import IO

_MUCH = 64 << 20  # bytes that may be unwritten before passing on waits
_PATIENCE = 30.0  # seconds for what is unwritten at the end


class Outbox:
    """The lines for one side, in the order in which they were put."""

    def __init__(self, sink: IO[bytes], name: str) -> None:
        self._sink = sink
        self._lines: deque[bytes] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._ends = False
        self._broken = False
        self._thread = threading.Thread(target=self._write, name=name, daemon=True)
        self._thread.start()

    def put(self, line: bytes, *, wait: bool = False) -> None:
        """Write a line soon; `wait` until little enough is unwritten. Nothing happens if the side is gone."""
        with self._changed:
            while wait and self._size > _MUCH and not self._broken and not self._ends:
                self._changed.wait()
            if self._broken or self._ends:
                return
            self._lines.append(line)
            self._size += len(line)
            self._changed.notify_all()

    def close(self) -> None:
        """Write what is there, and close the stream; give up on a side that does not read."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()
        self._thread.join(_PATIENCE)
        if not self._thread.is_alive():
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
            try:
                self._sink.write(batch)
                self._sink.flush()
            except (OSError, ValueError):
                with self._changed:
                    self._broken = True
                    self._changed.notify_all()
                return
            with self._changed:
                self._size -= len(batch)
                self._changed.notify_all()
