"""Transport to an upstream server: what a connection needs of it, whether it is a process or a URL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

MAX_MESSAGE = 32 << 20  # bytes of one message of a server; a server that sends more is ended

Message = dict[str, Any]
OnMessage = Callable[[Message], None]
OnEnd = Callable[[str], None]  # with the reason, for a person


class Transport(Protocol):
    """One running server. Messages and the end come on threads of the transport."""

    def start(self, on_message: OnMessage, on_end: OnEnd) -> None:
        """Start or reach the server. Raises CallError `upstream_unavailable`."""

    def send(self, message: Message) -> None:
        """Send a message. Raises CallError `upstream_unavailable` if the server has ended."""

    def close(self) -> None:
        """End the server and everything that it started; does nothing once it has ended."""

    @property
    def level(self) -> str:
        """The level of the sandbox that it runs in; "" for a server elsewhere."""
