"""HTTP server: runs an application until it is stopped; calls in progress are finished and recorded first."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

_PATIENCE = 30  # seconds for calls in progress after the signal


def bind(host: str, port: int) -> socket.socket:
    """Return a listening socket. OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol named, asyncio sends each answer at once (TCP_NODELAY); else each waits some 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host.strip("[]"), port))
        listening.listen(512)
    except OSError:
        listening.close()
        raise
    return listening


def _reading_for(seconds: float) -> type[H11Protocol]:
    """Return uvicorn's protocol with a time limit, in seconds, for the head of a request."""

    class Reading(H11Protocol):
        _head: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._await_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            # From the first byte of a request to the end of its head; the reader of the body limits the body.
            self._end_waiting() if self._answering else self._await_head()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end_waiting()
            super().connection_lost(exc)

        @property
        def _answering(self) -> bool:
            return self.cycle is not None and not self.cycle.response_complete

        def _await_head(self) -> None:
            if self._head is None:
                self._head = self.loop.call_later(seconds, self.transport.close)

        def _end_waiting(self) -> None:
            if self._head is not None:
                self._head.cancel()
                self._head = None

    return Reading


class _Announced(uvicorn.Server):
    """A server that announces when it accepts requests."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._ending = ending

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal, and exit normally after finishing the calls in progress."""
        handlers = {sign: signal.signal(sign, self.handle_exit) for sign in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for sign, before in handlers.items():
                signal.signal(sign, before)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._ending()
        await super().shutdown(sockets)


def serve(
    app: ASGIApp,
    listening: socket.socket,
    ready: Callable[[], None],
    ending: Callable[[], None] = lambda: None,
    *,
    seconds: float = 30.0,
) -> None:
    """Serve until SIGTERM or SIGINT; `ending` is called before calls in progress are awaited.

    The head of a request must arrive within `seconds`.
    """
    config = uvicorn.Config(
        app,
        http=_reading_for(seconds),
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        lifespan="on",
        proxy_headers=False,
        timeout_graceful_shutdown=_PATIENCE,
        timeout_keep_alive=30,
    )
    with listening:
        _Announced(config, ready, ending).run(sockets=[listening])
