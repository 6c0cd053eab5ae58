"""A server at a URL: answers as JSON and as events, its session, its token, and what goes wrong."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.upstream.connection import Connection
from ringfence.toolkit.upstream.http import HttpServer

ABOUT = {"capabilities": {}, "serverInfo": {"name": "x", "version": "0"}}


class Server(ThreadingHTTPServer):
    """A scripted server: remembers requests, and answers calls in the way that the tool's name says."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(("POST", dict(self.headers), body))
        if self.server.status != 200:
            self.respond(b"", "text/plain", self.server.status)
        elif "id" not in body:
            self.respond(b"", "text/plain", 202)
        elif body["method"] == "initialize":
            result = {"protocolVersion": "2025-11-25", **ABOUT}
            self.respond(answer(body, result), "application/json", session="s-1")
        elif body["method"] == "tools/list":
            self.respond(answer(body, {"tools": []}), "application/json")
        else:
            self.called(body)

    def called(self, body: Any) -> None:
        name, token = body["params"]["name"], body["params"]["_meta"]["progressToken"]
        done = answer(body, {"content": [{"type": "text", "text": "done"}]})
        if name == "events":
            told = {"progressToken": token, "progress": 1, "message": "half"}
            notice = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
            events = f": a comment\n\nevent: message\ndata: {notice}\n\ndata: {done.decode()}\n\n"
            self.respond(events.encode(), "text/event-stream")
        elif name == "lost":
            self.server.status = 404
            self.respond(b"", "text/plain", 404)
        elif name == "away":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:9/")
            self.end_headers()
        elif name == "garbage":
            self.respond(b"<html>", "text/html")
        else:
            self.respond(done, "application/json")

    def do_DELETE(self) -> None:
        self.server.seen.append(("DELETE", dict(self.headers), None))
        self.respond(b"", "text/plain")

    def respond(self, body: bytes, kind: str, status: int = 200, session: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if session is not None:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def answer(body: Any, result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": body["id"], "result": result}).encode()


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()


@pytest.fixture
def connect(server: Server) -> Iterator[Callable[..., Connection]]:
    made: list[Connection] = []

    def connection(**more: Any) -> Connection:
        url = more.pop("url", server.url)
        made.append(Connection("s", lambda: HttpServer(url, lambda _: None, **more), seconds=5))
        return made[-1]

    yield connection
    for each in made:
        each.close()


def test_json_and_events_with_session_and_token(connect: Callable[..., Connection], server: Server) -> None:
    connection = connect(token="secret")
    assert connection.tools() == []
    steps: list[str] = []
    progress = Progress(lambda what, *_: steps.append(what))
    for name in ("json", "events"):
        assert connection.call(name, {}, progress)["content"][0]["text"] == "done"
    assert steps == ["half"]
    connection.close()
    first, *rest = server.seen
    assert "Mcp-Session-Id" not in first[1]
    assert all(headers["Mcp-Session-Id"] == "s-1" for _, headers, _ in rest)
    assert all(headers["Authorization"] == "Bearer secret" for _, headers, _ in server.seen)
    assert [body["method"] for _, _, body in server.seen if body][:2] == [
        "initialize",
        "notifications/initialized",
    ]
    assert server.seen[-1][0] == "DELETE"


def test_a_lost_session_begins_anew(connect: Callable[..., Connection], server: Server) -> None:
    connection = connect()
    with pytest.raises(CallError, match="status 404; whether it was done is not known"):
        connection.call("lost", {}, Progress())
    server.status = 200
    assert connection.call("json", {}, Progress())["content"]


def test_a_redirect_is_not_followed(connect: Callable[..., Connection]) -> None:
    with pytest.raises(CallError, match="status 302"):
        connect().call("away", {}, Progress())


def test_what_is_no_answer_fails_the_call(connect: Callable[..., Connection]) -> None:
    with pytest.raises(CallError, match="type 'text/html'"):
        connect().call("garbage", {}, Progress())


def test_a_refused_connection_says_so(connect: Callable[..., Connection]) -> None:
    with pytest.raises(CallError, match="cannot be reached") as caught:
        connect(url="http://127.0.0.1:9/mcp").tools()
    assert caught.value.code == "upstream_unavailable"


def test_a_refused_token(connect: Callable[..., Connection], server: Server) -> None:
    server.status = 401
    with pytest.raises(CallError, match="status 401"):
        connect().tools()
