"""A model that is a script: a server on loopback that asks for one tool call after the other.

Keeps every request, so that a test sees what the host sent to its model, and nothing else of the host.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.hosts.dialects.common import Call, Dialect, Json

# The next call, given the results so far; None ends the conversation.
Script = Callable[[list[Any]], Call | None]


class Model(ThreadingHTTPServer):
    """The server, on a listening socket that may be of another network namespace.

    `requests` has the turns of the conversation, `results` the longest list of tool results in one of them,
    and `failure` what went wrong in the script.
    """

    daemon_threads = True

    def __init__(self, listening: socket.socket, dialect: Dialect, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.dialect = dialect
        self.requests: list[Json] = []
        self.results: list[Any] = []
        self.failure: BaseException | None = None
        self._script = script
        self._turn = threading.Lock()
        self._given: dict[int, Call | None] = {}

    def reply(self, path: str, body: Json) -> tuple[str, str]:
        """Return the body of the reply to a request, and its type."""
        aside = self.dialect.aside(path)
        if aside is not None:
            return json.dumps(aside), "application/json"
        stream = body.get("stream", "stream" in path) is True
        kind = "text/event-stream" if stream else "application/json"
        with self._turn:
            self.requests.append(body)
            found = self.dialect.results(body)
            if len(found) > len(self.results):
                self.results = found
            # A host may send one turn twice; the people of the script act once.
            if self.dialect.tools(body) and len(found) not in self._given:
                try:
                    self._given[len(found)] = self._script(found)
                except BaseException as error:
                    self.failure, self._given[len(found)] = error, None
            call = self._given.get(len(found)) if self.dialect.tools(body) else None
        return self.dialect.answer(len(found), call, stream), kind


class _Handler(BaseHTTPRequestHandler):
    server: Model

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        self._send("", "text/plain")

    def do_GET(self) -> None:
        aside = self.server.dialect.aside(self.path)
        self._send(json.dumps({} if aside is None else aside), "application/json")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        self._send(*self.server.reply(self.path, body))

    def _send(self, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
