"""Server at a URL, over streamable HTTP: each message is a POST, answered by JSON or by a stream of events.

Follows no redirect: what was chosen is that URL. Nothing of the workspace is sent but the arguments of calls.
"""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.text import escape
from ringfence.toolkit.upstream.connection import PROTOCOL
from ringfence.toolkit.upstream.message_lines import read, written
from ringfence.toolkit.upstream.transport import MAX_MESSAGE, Message, OnEnd, OnMessage

_ACCEPT = "application/json, text/event-stream"
_SESSION = "Mcp-Session-Id"
_CLOSING_SECONDS = 2.0
_ACCEPTED = 202


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Answer a redirect with its own status, which is an error here."""


class HttpServer:
    """A server at a URL. `token` is sent as a bearer token; `seconds` bounds the wait for each piece."""

    level = ""

    def __init__(
        self, url: str, note: Callable[[str], None], *, token: str = "", seconds: float = 120
    ) -> None:
        self._url = url
        self._note = note
        self._token = token
        self._seconds = seconds
        self._session: str | None = None
        self._open = urllib.request.build_opener(_NoRedirect).open
        self._on_message: OnMessage = lambda _: None
        self._on_end: OnEnd = lambda _: None
        self._closed = False

    def start(self, on_message: OnMessage, on_end: OnEnd) -> None:
        """Remember where messages go: the first one reaches the server."""
        self._on_message, self._on_end = on_message, on_end

    def send(self, message: Message) -> None:
        """Send a message; answers come on a thread of their own, which a slow server cannot block."""
        if self._closed:
            raise CallError("upstream_unavailable", "The MCP server is not connected")
        if message.get("method") == "notifications/initialized":
            self._exchange(message)  # nothing may overtake it
            return
        threading.Thread(target=self._exchange, args=(message,), daemon=True).start()

    def _exchange(self, message: Message) -> None:
        try:
            with self._open(self._request("POST", written(message)), timeout=self._seconds) as response:
                self._session = response.headers.get(_SESSION) or self._session
                for line in _messages(response):
                    answer = read(line)
                    if answer is None:
                        self._note("not a message, over HTTP")
                    else:
                        self._on_message(answer)
        except urllib.error.HTTPError as error:
            with error:
                self._ended(f"it answered with the status {error.code}")
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            self._ended(f"it cannot be reached: {escape(str(reason)[:200])}")

    def _request(self, method: str, data: bytes | None = None) -> urllib.request.Request:
        headers = {"Accept": _ACCEPT, "MCP-Protocol-Version": PROTOCOL}
        headers |= {"Content-Type": "application/json"} if data is not None else {}
        headers |= {_SESSION: self._session} if self._session is not None else {}
        headers |= {"Authorization": f"Bearer {self._token}"} if self._token else {}
        return urllib.request.Request(self._url, data=data, headers=headers, method=method)

    def _ended(self, reason: str) -> None:
        if not self._closed:
            self._closed = True
            self._on_end(reason)

    def close(self) -> None:
        """End the session at the server, which may not know such a thing."""
        self._closed = True
        if self._session is not None:
            with suppress(OSError, ValueError):
                self._open(self._request("DELETE"), timeout=_CLOSING_SECONDS).close()
            self._session = None


def _messages(response: Any) -> Iterator[bytes]:
    """Yield each message of a response. ValueError for one that is too large, or of another type."""
    kind = response.headers.get_content_type()
    if kind == "text/event-stream":
        yield from _events(response)
    elif kind == "application/json":
        body = response.read(MAX_MESSAGE + 1)
        if len(body) > MAX_MESSAGE:
            raise ValueError(f"it sent a message of more than {MAX_MESSAGE >> 20} MiB")
        if body.strip():
            yield body
    elif response.status != _ACCEPTED:
        raise ValueError(f"it answered with something of the type '{kind}'")


def _events(response: Any) -> Iterator[bytes]:
    data: list[bytes] = []
    size = 0
    while line := response.readline(MAX_MESSAGE + 1):
        size += len(line)
        if size > MAX_MESSAGE:
            raise ValueError(f"it sent a message of more than {MAX_MESSAGE >> 20} MiB")
        text = line.rstrip(b"\r\n")
        if not text:
            if data:
                yield b"\n".join(data)
            data, size = [], 0
        elif text.startswith(b"data:"):
            data.append(text[5:].removeprefix(b" "))
