"""Send counter: how often the client sends a request before it returns an answer, which it does not report.

s3fs, botocore and aiohttp repeat requests by themselves; aiohttp's repetition is switched off. A request
during a block counts in that block and in the blocks around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ringfence.toolkit.storage.ambiguous_outcome import disable_aiohttp_retries


class Sends:
    """The number of requests sent."""

    def __init__(self) -> None:
        self.count = 0


# A task in the client's thread runs in the context of its caller.
_CURRENT: ContextVar[Sends | None] = ContextVar("counting", default=None)


@contextmanager
def counted() -> Iterator[Sends]:
    """Count the requests that are sent during the block."""
    sends = Sends()
    before = _CURRENT.set(sends)
    try:
        yield sends
    finally:
        _CURRENT.reset(before)
        outer = _CURRENT.get()
        if outer is not None:
            outer.count += sends.count


def count_sends_of(client: Any) -> None:
    """Count the requests of a client from now on; a second call does nothing."""
    client.meta.events.register("before-send.s3", _count, unique_id="ringfence-sends")
    # Another HTTP library than aiohttp has no such sessions.
    http = getattr(getattr(client, "_endpoint", None), "http_session", None)
    for session in getattr(http, "_sessions", {}).values():
        disable_aiohttp_retries(session)


def _count(**_: Any) -> None:
    sends = _CURRENT.get()
    if sends is not None:
        sends.count += 1
