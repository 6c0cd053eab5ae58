"""Connection to one upstream server: handshake, list of tools, calls with progress and cancellation.

A server that has ended is started again for the next call, a few times. A call that was under way then fails,
and is never sent twice: nobody knows whether it was done.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.text import escape
from ringfence.toolkit.upstream.transport import Message, Transport
from ringfence.toolkit.version import version

PROTOCOL = "2025-11-25"
_SPOKEN = ("2024-11-05", "2025-03-26", "2025-06-18", PROTOCOL)
START_SECONDS = 30.0
CALL_SECONDS = 120.0
_MOST_PAGES = 50
MOST_TOOLS = 500  # of one server
_RESTARTS, _WITHIN = 3, 60.0  # so many starts in so many seconds; then the server counts as broken
_LOOK = 0.1  # seconds between two looks whether the caller has given up
_NO_METHOD = -32601
_UNKNOWN = "whether it was done is not known"


@dataclass(slots=True)
class _Waiting:
    """A request that waits for its response; None in the queue is the end of the server."""

    replies: queue.SimpleQueue[Message | None] = field(default_factory=queue.SimpleQueue)
    step: Callable[[Message], None] | None = None
    heard: float = field(default_factory=time.monotonic)


class Connection:
    """One server. `open_transport` makes a new transport for each start; `note` gets lines for a person.

    `changed` is called, on any thread, when the list of tools may be another one.
    """

    def __init__(
        self,
        name: str,
        open_transport: Callable[[], Transport],
        *,
        note: Callable[[str], None] = lambda _: None,
        changed: Callable[[], None] = lambda: None,
        seconds: float = CALL_SECONDS,
    ) -> None:
        self.name = name
        self._open_transport = open_transport
        self._note = note
        self._changed = changed
        self._seconds = seconds
        self._transport: Transport | None = None
        self._waiting: dict[int, _Waiting] = {}
        self._count = 0
        self._lock = threading.Lock()
        self._starting = threading.RLock()
        self._starts: deque[float] = deque(maxlen=_RESTARTS)
        self._ended: str | None = None
        self._closed = False
        self._tools: list[Message] | None = None
        self.level = ""

    # ------------------------------------------------------------------ starting

    def tools(self) -> list[Message]:
        """Return the server's tools as it lists them. Raises CallError `upstream_unavailable`."""
        with self._starting:
            self._started()
            if self._tools is None:
                self._tools = self._listed()
            return self._tools

    def _started(self) -> Transport:
        """Return the running server, after starting it if it does not run."""
        with self._starting:
            if self._transport is not None and self._ended is None:
                return self._transport
            if self._closed:
                raise self._unavailable("it was ended")
            now = time.monotonic()
            if len(self._starts) == _RESTARTS and now - self._starts[0] < _WITHIN:
                raise self._unavailable(f"it ended {_RESTARTS} times within a minute ({self._ended})")
            again = bool(self._starts)
            self._starts.append(now)
            self._shut()
            self._ended = None
            transport = self._transport = self._open_transport()
            try:
                # What an earlier transport still says is about an earlier server.
                transport.start(
                    lambda message: self._take(message) if self._transport is transport else None,
                    lambda reason: self._end(reason) if self._transport is transport else None,
                )
                self._shake_hands()
            except CallError as error:
                self._ended = self._ended or error.message
                self._shut()
                raise
            self.level = transport.level
            if again:
                self._note("it was started again")
                self._renew()
            return transport

    def _shake_hands(self) -> None:
        about = {"name": "ringfence", "title": "Ringfence", "version": version()}
        params = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about}
        result = self._request("initialize", params, START_SECONDS, start=True)
        if result.get("protocolVersion") not in _SPOKEN:
            spoken = escape(str(result.get("protocolVersion"))[:40])
            raise self._unavailable(f"it speaks version '{spoken}' of the protocol")
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _listed(self) -> list[Message]:
        found: list[Message] = []
        cursor: Any = None
        for _ in range(_MOST_PAGES):
            params = {} if cursor is None else {"cursor": cursor}
            page = self._request("tools/list", params, START_SECONDS)
            tools = page.get("tools")
            if not isinstance(tools, list):
                raise self._unavailable("its list of tools is no list")
            found += [tool for tool in tools if isinstance(tool, dict)]
            cursor = page.get("nextCursor")
            if cursor is None or len(found) >= MOST_TOOLS:
                break
        if len(found) > MOST_TOOLS:
            self._note(f"only the first {MOST_TOOLS} of its tools are offered")
        return found[:MOST_TOOLS]

    def _renew(self) -> None:
        self._tools = None
        self._changed()

    # ------------------------------------------------------------------- calling

    def call(self, tool: str, arguments: dict[str, Any], progress: Progress) -> Message:
        """Call a tool and return the result as the server sent it.

        Raises CallError `upstream_unavailable`, `upstream_error` if the server answers with an error of the
        protocol, and `cancelled` if the caller gives up: the server is notified, and may have done it.
        """
        self._started()
        params = {"name": tool, "arguments": arguments}
        return self._request("tools/call", params, self._seconds, progress=progress)

    def _request(
        self,
        method: str,
        params: Message,
        seconds: float,
        *,
        progress: Progress | None = None,
        start: bool = False,
    ) -> Message:
        waiting = _Waiting()
        with self._lock:
            self._count += 1
            number = self._count
            self._waiting[number] = waiting
        if progress is not None:
            waiting.step = _stepping(progress)
            params = {**params, "_meta": {"progressToken": number}}
        try:
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            reply = self._reply(number, waiting, seconds, progress, start=start)
        finally:
            with self._lock:
                del self._waiting[number]
        if "error" in reply:
            raise self._refused(reply["error"])
        result = reply.get("result")
        if not isinstance(result, dict):
            raise self._unavailable("it answered with something that is no result")
        return result

    def _reply(
        self, number: int, waiting: _Waiting, seconds: float, progress: Progress | None, *, start: bool
    ) -> Message:
        while True:
            try:
                reply = waiting.replies.get(timeout=_LOOK)
            except queue.Empty:
                self._look(number, waiting, seconds, progress)
                continue
            if reply is None:
                raise self._unavailable(f"{self._ended}{'' if start else f'; {_UNKNOWN}'}")
            return reply

    def _look(self, number: int, waiting: _Waiting, seconds: float, progress: Progress | None) -> None:
        """Give the request up if its caller has, or if nothing was heard of it for too long."""
        if progress is not None:
            try:
                progress.check()
            except CallError as error:
                self._cancel(number, "the caller has given up")
                message = f"Cancelled while '{self.name}' was at work; {_UNKNOWN}"
                raise CallError(error.code, message) from None
        if time.monotonic() - waiting.heard > seconds:
            self._cancel(number, "no answer in time")
            raise self._unavailable(f"no answer within {seconds:g} seconds; {_UNKNOWN}")

    def _cancel(self, number: int, reason: str) -> None:
        params = {"requestId": number, "reason": reason}
        try:
            self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        except CallError:
            pass  # it has ended, which cancels everything

    def _send(self, message: Message) -> None:
        transport = self._transport
        if transport is None:
            raise self._unavailable("it does not run")
        transport.send(message)

    # ----------------------------------------------------------------- receiving

    def _take(self, message: Message) -> None:
        """Take a message of the server, on the transport's thread."""
        method = message.get("method")
        if method is None:
            number = message.get("id")
            with self._lock:
                waiting = self._waiting.get(number) if type(number) is int else None
            if waiting is not None:
                waiting.replies.put(message)
        elif "id" in message:
            self._answer(message["id"], method)
        elif method == "notifications/tools/list_changed":
            self._renew()
        elif method == "notifications/progress":
            self._step(message.get("params"))
        elif method == "notifications/message":
            params = message.get("params")
            data = params.get("data") if isinstance(params, dict) else None
            self._note(escape(str(data)[:2000]))

    def _answer(self, number: Any, method: Any) -> None:
        """Answer a request of the server: nothing was offered to it, so only a ping has a result."""
        reply: Message = {"jsonrpc": "2.0", "id": number}
        reply |= (
            {"result": {}}
            if method == "ping"
            else {"error": {"code": _NO_METHOD, "message": "Method not found"}}
        )
        try:
            self._send(reply)
        except CallError:
            pass  # it does not want to know any more

    def _step(self, params: Any) -> None:
        token = params.get("progressToken") if isinstance(params, dict) else None
        with self._lock:
            waiting = self._waiting.get(token) if type(token) is int else None
        if waiting is not None:
            waiting.heard = time.monotonic()
            if waiting.step is not None:
                waiting.step(params)

    def _end(self, reason: str) -> None:
        """Take the end of the server, on the transport's thread."""
        with self._lock:
            self._ended = self._ended or reason
            waiting = list(self._waiting.values())
        for each in waiting:
            each.replies.put(None)
        if not self._closed:
            self._note(reason)

    # -------------------------------------------------------------------- ending

    def close(self) -> None:
        """End the server."""
        self._closed = True
        self._shut()

    def _shut(self) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()

    def _unavailable(self, reason: str | None) -> CallError:
        return CallError("upstream_unavailable", f"The MCP server '{self.name}' is not available: {reason}")

    def _refused(self, error: Any) -> CallError:
        code = error.get("code") if isinstance(error, dict) else None
        text = error.get("message") if isinstance(error, dict) else None
        shown = escape(str(text)[:1000])
        return CallError("upstream_error", f"The MCP server '{self.name}' answered: {shown} ({code})")


def _stepping(progress: Progress) -> Callable[[Message], None]:
    """Return what passes a server's progress on to the caller."""
    done = 0

    def step(params: Message) -> None:
        nonlocal done
        now, total, text = params.get("progress"), params.get("total"), params.get("message")
        if isinstance(now, int | float) and not isinstance(now, bool) and now > done:
            if done == 0 and isinstance(total, int | float) and not isinstance(total, bool):
                progress.start(int(total))
            progress.step(escape(str(text or "")[:500]), int(now) - int(done))
            done = int(now)

    return step
