"""Sends of a request: how often the client sends it before it gives an answer, which it does not tell.

s3fs, botocore and aiohttp send again by themselves; of aiohttp that is switched off. What is asked in a
block is counted in it and in the blocks around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ringfence.toolkit.storage.ambiguous_outcome import have_sends_counted


class Sends:
    """How many requests have gone out."""

    def __init__(self) -> None:
        self.count = 0


# A task of the client's own thread runs in the context of whoever asked for it.
_COUNTING: ContextVar[Sends | None] = ContextVar("counting", default=None)


@contextmanager
def counted() -> Iterator[Sends]:
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
    """Have a client's requests counted, once however often this is asked."""
    client.meta.events.register("before-send.s3", _note, unique_id="ringfence-sends")
    # Of an HTTP library that does not do so there are no such sessions.
    http = getattr(getattr(client, "_endpoint", None), "http_session", None)
    for session in getattr(http, "_sessions", {}).values():
        have_sends_counted(session)


def _note(**_: Any) -> None:
    sends = _COUNTING.get()
    if sends is not None:
        sends.count += 1
