"""Servers that answer at once, without a process, and remember each call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ringfence.toolkit.upstream.connection import Connection
from ringfence.toolkit.upstream.servers import Servers
from ringfence.toolkit.upstream.specification import Specification
from ringfence.toolkit.upstream.transport import Message, OnEnd, OnMessage


class Answering:
    """A transport to a server with these tools."""

    level = "none"

    def __init__(self, tools: list[Message], answer: Callable[[Message], Message] | None = None) -> None:
        self.tools = tools
        self.calls: list[Message] = []
        self._answer = answer or (lambda params: {"content": [{"type": "text", "text": "done"}]})
        self._on_message: OnMessage = lambda _: None

    def start(self, on_message: OnMessage, on_end: OnEnd) -> None:
        self._on_message = on_message

    def send(self, message: Message) -> None:
        if "id" in message:
            self._on_message(
                {"jsonrpc": "2.0", "id": message["id"], "result": self._result(message["method"], message)}
            )

    def _result(self, method: str, message: Message) -> Message:
        if method == "initialize":
            return {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "x"},
            }
        if method == "tools/list":
            return {"tools": self.tools}
        self.calls.append(message["params"])
        return self._answer(message["params"])

    def say(self, method: str) -> None:
        """Send a notification."""
        self._on_message({"jsonrpc": "2.0", "method": method})

    def close(self) -> None:
        pass


def tool(name: str, **more: Any) -> Message:
    """A tool that takes any arguments."""
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def servers(
    transport: Answering, name: str = "s", words: Iterable[str] = ("server",), **more: Any
) -> Servers:
    """One server as a gateway has it."""

    def connect(each: Specification, note: Callable[[str], None], changed: Callable[[], None]) -> Connection:
        return Connection(each.name, lambda: transport, note=note, changed=changed)

    return Servers([Specification(name, tuple(words))], connect, **more)
