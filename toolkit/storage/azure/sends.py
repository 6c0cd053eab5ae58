"""Send counter: how often a request was sent, counted where the connection pool sends it.

Two layers repeat requests silently: Azure's client after a failure, and aiohttp below it where a connection
ends before the reply. Counts only; changes no request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from aiohttp import TraceConfig

_SENDING: ContextVar[Sends | None] = ContextVar("_SENDING", default=None)


class Sends:
    """The requests of one operation, which may have several addresses."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()
        self._retried = False

    @property
    def repeated(self) -> bool:
        """Whether any of the requests was sent more than once."""
        return self._retried or any(count > 1 for count in self._counts.values())

    def hooks(self) -> dict[str, Any]:
        """Return the arguments with which an operation of Azure's client reports its sends."""
        return {"raw_request_hook": _trace_sends, "retry_hook": self._retry}

    def note(self, method: str, url: str) -> None:
        """Count one request by its method and URL."""
        self._counts[method, url] += 1

    def _retry(self, **_: Any) -> None:
        self._retried = True


@contextmanager
def counted() -> Iterator[Sends]:
    """Count the requests that this task sends during the block."""
    sends = Sends()
    token = _SENDING.set(sends)
    try:
        yield sends
    finally:
        _SENDING.reset(token)


def _trace_sends(request: Any) -> None:
    """Make the connection pool report its sends; call it before the first request."""
    transport = request.context.transport
    session = getattr(getattr(transport, "_transport", transport), "session", None)
    configs = getattr(session, "trace_configs", None)
    if configs is not None and not any(isinstance(config, _Trace) for config in configs):
        configs.append(_Trace())


class _Trace(TraceConfig):
    """Reports every request that a connection pool sends."""

    def __init__(self) -> None:
        super().__init__()
        self.on_request_headers_sent.append(_sent)
        self.freeze()


async def _sent(_session: Any, _context: Any, request: Any) -> None:
    counted = _SENDING.get()
    if counted is not None:
        counted.note(request.method, str(request.url))
