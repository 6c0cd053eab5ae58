"""Send counter: how often the client sends a request before it returns an answer, which it does not report.

s3fs, botocore and aiohttp repeat requests by themselves; aiohttp's repetition is switched off. A request
during a block counts in that block and in the blocks around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ringfence.toolkit.storage.ambiguous_outcome import have_sends_counted


class Sends:
    """The number of requests sent."""

    def __init__(self) -> None:
        self.count = 0


# A task in the client's thread runs in the context of its caller.
_COUNTING: ContextVar[Sends | None] = ContextVar("counting", default=None)


@contextmanager
def counted() -> Iterator[Sends]:
    """Count the requests that are sent during the block."""
    sends = Sends()
    before = _COUNTING.set(sends)
    try:
        yield sends
    finally:
        _COUNTING.reset(before)
        outer = _COUNTING.get()
        if outer is not None:
            outer.count += sends.count


def watch(client: Any) -> None:
    """Make a client report its requests; a second call does nothing."""
    client.meta.events.register("before-send.s3", _note, unique_id="ringfence-sends")
    # Of an HTTP library that does not do so there are no such sessions.
    http = getattr(getattr(client, "_endpoint", None), "http_session", None)
    for session in getattr(http, "_sessions", {}).values():
        have_sends_counted(session)


def _note(**_: Any) -> None:
    sends = _COUNTING.get()
    if sends is not None:
        sends.count += 1
