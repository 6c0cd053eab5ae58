"""Server-sent events: sends messages as they come, whatever they contain. Source: WHATWG HTML, 9.2."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

Message = dict[str, Any]
PATIENCE = 15.0  # seconds of silence before a keep-alive comment
EVENTS = "text/event-stream"
_HEADERS = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


def accepts(request: Request, kind: str) -> bool:
    """Whether the client accepts an event stream."""
    ranges = [part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")]
    return bool({kind, "*/*", f"{kind.partition('/')[0]}/*"} & set(ranges))


class Stream:
    """The messages in response to one request. `left` is called when the client disconnects."""

    def __init__(
        self,
        request: Request,
        messages: MemoryObjectReceiveStream[Message],
        left: Callable[[], None] | None,
    ) -> None:
        self._request = request
        self._messages = messages
        self._left = left

    async def first(self) -> Message | None:
        """Return the first message, or None if there is none after a short wait."""
        with anyio.move_on_after(PATIENCE):
            return await self._watched(self._messages.receive)
        return None

    def close(self) -> None:
        """Stop reading messages."""
        self._messages.close()

    async def last(self) -> Message:
        """Return the last message and drop the others."""

        async def drained() -> Message:
            """Return the last message of the source."""
            with self._messages:
                return [message async for message in self._messages][-1]

        return await self._watched(drained)

    async def _watched(self, work: Callable[[], Awaitable[Message]]) -> Message:
        """Run the work, and notice when the client disconnects."""
        found: list[Message] = []
        async with anyio.create_task_group() as group:
            group.start_soon(self._watch)
            found.append(await work())
            group.cancel_scope.cancel()
        return found[0]

    async def _watch(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        if self._left is not None:
            self._left()

    def response(self, first: Message | None) -> Response:
        """Return the remaining messages as events, after `first`."""
        return _Events(self._events(first), self._left)

    async def _events(self, first: Message | None) -> AsyncIterator[bytes]:
        with self._messages:
            yield b": open\n\n" if first is None else _event(first)
            while True:
                try:
                    with anyio.fail_after(PATIENCE):
                        message = await self._messages.receive()
                except TimeoutError:
                    yield b": wait\n\n"
                except anyio.EndOfStream:
                    return
                else:
                    yield _event(message)


class _Events(StreamingResponse):
    """A response of events that calls back when its reader has disconnected."""

    def __init__(self, events: AsyncIterator[bytes], left: Callable[[], None] | None) -> None:
        super().__init__(events, headers=_HEADERS, media_type=EVENTS)
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def watched() -> Any:
            message = await receive()
            if message["type"] == "http.disconnect" and self._left is not None:
                self._left()
            return message

        await super().__call__(scope, watched, send)


def _event(message: Message) -> bytes:
    data = json.dumps(message, ensure_ascii=True, separators=(",", ":"))
    return f"event: message\ndata: {data}\n\n".encode()
