"""Sent: how often a request really went out, counted where the bytes leave.

Two layers send again without a word: Azure's client after a failure, and below it aiohttp where a connection
ends before the reply. Counts only; changes no request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from aiohttp import TraceConfig

_SENDING: ContextVar[Sent | None] = ContextVar("_SENDING", default=None)


class Sent:
    """The requests of one operation, which may be several of different addresses."""

    def __init__(self) -> None:
        self._went_out: Counter[tuple[str, str]] = Counter()
        self._retried = False

    @property
    def again(self) -> bool:
        """Whether any of them went out more than once."""
        return self._retried or any(count > 1 for count in self._went_out.values())

    def hooks(self) -> dict[str, Any]:
        """What to give to an operation of Azure's client."""
        return {"raw_request_hook": _watch, "retry_hook": self._retry}

    def note(self, method: str, url: str) -> None:
        self._went_out[method, url] += 1

    def _retry(self, **_: Any) -> None:
        self._retried = True


@contextmanager
def counting() -> Iterator[Sent]:
    """What goes out in this task meanwhile."""
    sent = Sent()
    token = _SENDING.set(sent)
    try:
        yield sent
    finally:
        _SENDING.reset(token)


def _watch(request: Any) -> None:
    """See to it that the connection pool tells what it sends; called before the first sending."""
    transport = request.context.transport
    session = getattr(getattr(transport, "_transport", transport), "session", None)
    configs = getattr(session, "trace_configs", None)
    if configs is not None and not any(isinstance(config, _Trace) for config in configs):
        configs.append(_Trace())


class _Trace(TraceConfig):
    """Tells of every request that a connection pool sends."""

    def __init__(self) -> None:
        super().__init__()
        self.on_request_headers_sent.append(_sent)
        self.freeze()


async def _sent(_session: Any, _context: Any, request: Any) -> None:
    counted = _SENDING.get()
    if counted is not None:
        counted.note(request.method, str(request.url))
