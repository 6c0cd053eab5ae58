"""Fault proxy for stores over HTTP: forwards each request unchanged, and breaks the selected ones.

Listens on loopback only. Changes neither `Host` nor the target, so a signature for the proxy's address stays
valid. Keeps each reply in memory completely; only for tests.
"""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from ringfence.toolkit.testing.faults.model import KINDS, NOT_FORWARDED, Fault, Schedule, Seen

# Headers of one connection, which a proxy does not forward.
_HOP_BY_HOP = ("connection", "keep-alive", "transfer-encoding", "content-length", "expect")
_KEY_HEADERS = ("range", "x-ms-range", "if-match")  # headers that distinguish two reads of the same target
_ECHOED = "x-ms-client-request-id"  # Azure's client rejects a reply with another request's id
# The stores' names of the errors that clients treat as temporary.
_ERROR_CODES = {429: "TooManyRequests", 500: "InternalError", 503: "SlowDown"}

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _Request:
    number: int
    method: str
    target: str
    headers: Headers
    body: bytes

    @property
    def key(self) -> tuple[str, ...]:
        """The values that equal requests have in common."""
        known = {name.lower(): value for name, value in self.headers}
        return self.method, self.target, *(known.get(name, "") for name in _KEY_HEADERS)


@dataclass(frozen=True, slots=True)
class _Reply:
    status: int
    reason: str
    headers: Headers
    body: bytes

    def encoded(self, method: str) -> bytes:
        length = (
            "" if method == "HEAD" or self.status in (204, 304) else f"Content-Length: {len(self.body)}\r\n"
        )
        lines = "".join(f"{name}: {value}\r\n" for name, value in self.headers)
        head = f"HTTP/1.1 {self.status} {self.reason}\r\n{lines}{length}\r\n".encode("latin-1")
        return head if method == "HEAD" else head + self.body

    def half(self, method: str) -> bytes:
        """Return the encoded reply up to the middle of its body or, without one, of its first line."""
        encoded = self.encoded(method)
        body = 0 if method == "HEAD" else len(self.body)
        return encoded[: len(encoded) - (body + 1) // 2] if body else encoded[: len("HTTP/1.1")]


def _error_reply(status: int) -> _Reply:
    """Return the reply of a store that is overloaded or has failed, in S3's and Azure's format."""
    code = _ERROR_CODES.get(status, "ServiceUnavailable")
    text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>Try later</Message></Error>"
    headers = (("Content-Type", "application/xml"), ("x-ms-error-code", code), ("Retry-After", "0"))
    return _Reply(status, code, headers, text.encode())


class HttpProxy:
    """A proxy on loopback for `upstream`, an http:// URL; pass its `url` to the client library.

    Used as a context manager. `arm` sets the fault, `seen` returns the requests and their outcomes.
    """

    kinds = frozenset(KINDS)
    reads = frozenset({"GET", "HEAD", "OPTIONS"})  # methods that change nothing
    attributes: frozenset[str] = frozenset()  # methods that change no content

    def __init__(self, upstream: str) -> None:
        split = urlsplit(upstream)
        if split.scheme != "http" or split.hostname is None:
            raise ValueError(f"the proxy forwards to http:// only, not to {upstream!r}")
        self.schedule = Schedule()
        self._upstream = split.hostname, split.port or 80
        self._first_replies: dict[tuple[str, ...], _Reply] = {}
        self._closing = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def __enter__(self) -> HttpProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The URL of the proxy."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def arm(self, fault: Fault | None) -> None:
        """Count requests from here, and cause `fault`; None lets everything pass."""
        self.schedule.arm(fault)

    def forget(self) -> None:
        """Forget earlier replies, of which `stale` repeats the first."""
        self._first_replies.clear()

    def seen(self) -> tuple[Seen, ...]:
        """Return the finished requests; after `wait` these are all requests."""
        return self.schedule.seen()

    def wait(self, seconds: float = 30.0) -> None:
        """Wait until every request has ended, also those whose client has disconnected. TimeoutError."""
        self.schedule.wait(seconds)

    def close(self) -> None:
        """Stop listening and close every connection."""
        self._closing.set()
        self._server.shutdown()
        self._server.disconnect()
        self._server.server_close()
        self._thread.join()

    # ------------------------------------------------------------------- inside

    def pause(self, seconds: float) -> None:
        """Wait for these seconds, or until the proxy is closed."""
        self._closing.wait(seconds)

    def forward(self, request: _Request) -> _Reply:
        """Return the store's own reply. OSError if there is none."""
        connection = HTTPConnection(*self._upstream, timeout=60)
        try:
            connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers:
                if name.lower() not in _HOP_BY_HOP:
                    connection.putheader(name, value)
            if request.body or request.method in ("PUT", "POST", "PATCH"):
                connection.putheader("Content-Length", str(len(request.body)))
            connection.endheaders(request.body or None)
            answer = connection.getresponse()
            headers = _end_to_end(answer.getheaders(), request.method)
            reply = _Reply(answer.status, answer.reason, headers, answer.read())
        except HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()
        if request.method in self.reads:
            self._first_replies.setdefault(request.key, reply)
        return reply

    def first_reply(self, request: _Request) -> _Reply | None:
        """Return the first reply to an equal request, which `stale` repeats; None if there is none."""
        found = self._first_replies.get(request.key)
        if found is None:
            return None
        own = [value for name, value in request.headers if name.lower() == _ECHOED]
        renewed = (
            (name, own[0] if own and name.lower() == _ECHOED else value) for name, value in found.headers
        )
        return replace(found, headers=tuple(renewed))


def _end_to_end(headers: list[tuple[str, str]], method: str) -> Headers:
    # A reply to HEAD has a length and no body.
    hop_by_hop = _HOP_BY_HOP if method != "HEAD" else tuple(h for h in _HOP_BY_HOP if h != "content-length")
    return tuple((name, value) for name, value in headers if name.lower() not in hop_by_hop)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, proxy: HttpProxy) -> None:
        self.proxy = proxy
        self.handlers: set[_Handler] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def disconnect(self) -> None:
        for handler in list(self.handlers):
            handler.disconnect()

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):  # the client has disconnected
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.handlers.add(self)

    def finish(self) -> None:
        self.server.handlers.discard(self)
        super().finish()

    def log_message(self, *_: Any) -> None:
        """Print nothing; `seen` has every request."""

    def disconnect(self) -> None:
        self.close_connection = True
        try:
            self.connection.shutdown(2)
        except OSError:
            pass

    def _serve(self) -> None:
        proxy, body = self.server.proxy, self._body()
        number, fault = proxy.schedule.next(self.command, self.path)
        request = _Request(number, self.command, self.path, tuple(self.headers.items()), body)
        if fault is not None and fault.kind == "stale" and proxy.first_reply(request) is None:
            fault = None  # there is no earlier reply to repeat
        reply: _Reply | None = None
        received = "dropped"
        try:
            if fault is None or fault.kind not in NOT_FORWARDED:
                reply = self._forward(request, fault)
            received = self._send_reply(request, reply, fault)
        except OSError:
            self.disconnect()
        finally:
            answer = str(reply.status) if reply is not None else ""
            kind = fault.kind if fault is not None else ""
            acted = reply is not None and reply.status < 400
            proxy.schedule.end(Seen(number, self.command, self.path, kind, answer, acted, received))

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do_PATCH = do_OPTIONS = _serve

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while length := int(self.rfile.readline().partition(b";")[0], 16):
            pieces.append(self.rfile.read(length))
            self.rfile.readline()
        while self.rfile.readline().strip():
            """Ignore the trailers."""
        return b"".join(pieces)

    def _forward(self, request: _Request, fault: Fault | None) -> _Reply:
        if fault is not None and fault.kind == "late":
            self.server.proxy.pause(fault.seconds)
        return self.server.proxy.forward(request)

    def _send_reply(self, request: _Request, reply: _Reply | None, fault: Fault | None) -> str:
        """Send the client what it gets of a reply; returns that as `Seen.received`."""
        kind = fault.kind if fault is not None else ""
        if fault is None or kind in ("late", "slow"):
            if kind == "slow" and fault is not None:
                self.server.proxy.pause(fault.seconds)
            sent = reply
        elif kind.startswith("refuse"):
            sent = _error_reply(fault.status)
        elif kind == "stale":
            sent = self.server.proxy.first_reply(request)
        else:
            sent = reply if kind == "cut" else None
        if sent is None:
            self.disconnect()
            return "dropped"
        try:
            self.wfile.write((sent.half if kind == "cut" else sent.encoded)(request.method))
            self.wfile.flush()
        except OSError:
            self.disconnect()
            return "gone"
        if kind == "cut":
            self.disconnect()
            return "half"
        return str(sent.status)
