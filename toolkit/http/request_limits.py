"""Limits on requests: how many of one caller are in progress, and how large and how slow a body may be.

Each caller has its own share, so one caller cannot block the others.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
from starlette.types import Message, Receive

from ringfence.toolkit.errors import CallError


class Shares:
    """The requests in progress, counted per caller; `most` is the number that each may have."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running: Counter[str] = Counter()

    @contextmanager
    def taken(self, caller: str) -> Iterator[None]:
        """Count one more request of a caller during the block. CallError `overloaded`."""
        if self._running[caller] >= self._most:
            raise CallError("overloaded", f"{self._most} requests of this caller are under way already")
        self._running[caller] += 1
        try:
            yield
        finally:
            self._running[caller] -= 1
            if not self._running[caller]:
                del self._running[caller]


def bounded(
    receive: Receive, most: int, seconds: float, clock: Callable[[], float] = time.monotonic
) -> Receive:
    """Return `receive` for a body of at most `most` bytes that arrives within `seconds`.

    CallError `too_large` and `request_timeout`.
    """
    read, whole, ends = 0, False, clock() + seconds

    async def counted() -> Message:
        """Receive the next part of the body and count its bytes."""
        nonlocal read, whole
        if whole:
            return await receive()  # the disconnect message, which has no time limit
        message: Message | None = None
        with anyio.move_on_after(max(ends - clock(), 0)):
            message = await receive()
        if message is None:
            raise CallError("request_timeout", f"The body did not arrive within {seconds:g} seconds")
        read += len(message.get("body", b""))
        if read > most:
            raise too_large(most)
        whole = not message.get("more_body", False)
        return message

    return counted


def too_large(most: int) -> CallError:
    """Return the error for a body of more than `most` bytes."""
    return CallError("too_large", f"The body is larger than {most} bytes")
