"""Writer of messages into a server's pipe: never blocks for good on a server that does not read."""

from __future__ import annotations

import os
import select
import threading
import time

from ringfence.toolkit.errors import CallError

_SECONDS = 30.0
_LOOK = 0.1


class PipeWriter:
    """The write end of a pipe. `close` may be called at any time, from any thread."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor: int | None = descriptor
        self._lock = threading.Lock()
        self._closing = threading.Event()

    def write(self, data: bytes) -> None:
        """Write all of the data. Raises CallError `upstream_unavailable`; the pipe is of no more use then."""
        until = time.monotonic() + _SECONDS
        left = memoryview(data)
        with self._lock:
            while left:
                if self._descriptor is None or self._closing.is_set():
                    raise CallError("upstream_unavailable", "The MCP server has ended")
                try:
                    left = left[os.write(self._descriptor, left[: 1 << 16]) :]
                except BlockingIOError:
                    self._wait(self._descriptor, until)
                except OSError:
                    raise CallError("upstream_unavailable", "The MCP server does not read any more") from None

    def _wait(self, descriptor: int, until: float) -> None:
        if time.monotonic() > until:
            self._closing.set()  # half of a message was written
            text = f"The MCP server has not read what was sent for {_SECONDS:g} seconds"
            raise CallError("upstream_unavailable", text)
        select.select([], [descriptor], [], _LOOK)

    def close(self) -> None:
        """Close the pipe, which tells the server to end."""
        self._closing.set()
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None
