"""What stands in front of every route, on a real server: Host, Origin, tokens, sizes, how many at once."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.serving.conftest import TOKENS, Answer, Server

Begin = Callable[..., Server]
READ = {"tool": "read_file", "arguments": {"path": "tmp/a.txt"}}


HOSTS = (
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.",
    "",
    "[::1",
    "10.0.0.1",
    "localhost@e.example",
    "127.0.0.1:8931, evil",
    "127.0.0.1:8931,evil.example",
    "127.0.0.1:evil",
    "127.0.0.1/evil",
    "127.0.0.1:80:80",
    "[::1]evil",
)
HEADERS = ("", "Bearer", "Bearer ", "Bearer nobody", "Basic {token}", "{token}", "Bearer {token}x")
ROUTES = (("POST", "/call"), ("GET", "/approvals"), ("GET", "/metrics"), ("GET", "/nowhere"))


def test_another_host_is_refused(server: Begin) -> None:
    one = server(tokens=False)
    for host in HOSTS:
        for answer in (one.send("POST", "/call", READ, Host=host), one.send("GET", "/healthz", Host=host)):
            assert answer.status in (400, 403), host
            assert host == "[::1" or answer.json["error"]["where"] == "Host"


def test_names_of_the_server_are_taken(server: Begin) -> None:
    one = server("--allow-host", "Box.Example", tokens=False)
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:9", "box.example"):
        assert one.send("POST", "/call", READ, Host=host).status == 200, host


def test_pages_of_other_sites_are_refused(server: Begin) -> None:
    one = server("--allow-origin", "https://ui.example", tokens=False)
    own = f"http://127.0.0.1:{one.port}"
    for origin in (
        "https://evil.example",
        "null",
        "http://localhost:1",
        f"{own}.evil.example",
        "file://",
        own[:-1],
    ):
        answer = one.send("POST", "/call", READ, Origin=origin)
        assert (answer.status, answer.json["error"]["where"]) == (403, "Origin"), origin
    for origin in (own, "https://ui.example"):
        assert one.send("POST", "/call", READ, Origin=origin).status == 200
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        assert one.send("POST", "/call", READ, Content_Type=kind).status == 415


def test_without_a_known_token_nothing_is_told(server: Begin) -> None:
    one = server()
    for header in HEADERS:
        text = header.format(token=TOKENS["coder"])
        for method, path in ROUTES:
            answer = one.send(method, path, READ if method == "POST" else None, Authorization=text)
            assert answer.status == 401, (path, header)
            assert answer.headers["www-authenticate"] == "Bearer"


def test_bodies_are_bounded_told_or_not(server: Begin) -> None:
    one = server("--max-body", "1000")
    big = json.dumps({**READ, "id": "x" * 2000}).encode()
    assert one.send("POST", "/call", big).status == 413
    head = (
        f"POST /call HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKENS['coder']}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", one.port), timeout=30) as line:
        line.sendall(head.encode() + b"3e8\r\n" + b"x" * 1000 + b"\r\n" + b"3e8\r\n" + b"x" * 1000 + b"\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 413 ")
    assert one.send("POST", "/call", READ).status == 200


HALF = (
    "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
    "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{"
)


@contextmanager
def half_sent(one: Server, count: int, token: str = "coder", path: str = "/call") -> Iterator[None]:
    """So many requests of one token whose bodies have begun and do not end."""
    held = [socket.create_connection(("127.0.0.1", one.port)) for _ in range(count)]
    try:
        for line in held:
            line.sendall(HALF.format(path=path, token=TOKENS.get(token, token)).encode())
        yield
    finally:
        for line in held:
            line.close()


def until(status: int, ask: Callable[[], Answer]) -> Answer:
    for _ in range(200):
        answer = ask()
        if answer.status == status:
            return answer
        threading.Event().wait(0.05)
    pytest.fail(f"never {status}")


def test_one_callers_requests_leave_room_for_all_others(server: Begin) -> None:
    one = server("--max-requests", "2")
    with half_sent(one, 2):
        answer = until(503, lambda: one.send("POST", "/call", READ))
        assert (answer.json["error"]["code"], answer.headers["retry-after"]) == ("overloaded", "1")
        assert one.send("GET", "/healthz").status == 200
        assert one.send("POST", "/call", READ, token="other").status == 200
        assert one.send("GET", "/approvals", token="alice").status == 200
        assert one.send("GET", "/metrics", token="gateway").status == 200
    until(200, lambda: one.send("POST", "/call", READ))  # the room was given back


def test_nobody_without_a_token_takes_room(server: Begin) -> None:
    one = server("--max-requests", "2")
    with half_sent(one, 300, token="nobody"):
        assert one.send("POST", "/call", READ).status == 200
        assert one.send("GET", "/approvals", token="alice").status == 200


@pytest.mark.parametrize("what", ["http", "mcp --http"])
def test_a_body_that_does_not_come_is_not_waited_for(server: Begin, what: str) -> None:
    one = server("--read-timeout", "1", what=what)
    path = "/call" if what == "http" else "/mcp"
    head = HALF.format(path=path, token=TOKENS["coder"])
    with socket.create_connection(("127.0.0.1", one.port), timeout=60) as line:
        line.sendall(head.replace("\r\n\r\n", "\r\nAccept: */*\r\n\r\n").encode())
        said = b"".join(iter(lambda: line.recv(1000), b""))  # to its end: the connection is closed
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"request_timeout" in said


def test_a_drop_now_and_then_does_not_keep_a_request_alive(server: Begin) -> None:
    one = server("--read-timeout", "1")
    with socket.create_connection(("127.0.0.1", one.port), timeout=60) as line:
        line.sendall(HALF.format(path="/call", token=TOKENS["coder"]).encode())
        line.settimeout(0.1)
        for _ in range(90):
            try:
                said = line.recv(1000)
                break
            except TimeoutError:
                line.sendall(b" ")
    assert said.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("head", ["", "POST /call HTTP/1.1\r\nHost: localh"])
def test_a_head_that_does_not_come_is_not_waited_for(server: Begin, head: str) -> None:
    one = server("--read-timeout", "1")
    with socket.create_connection(("127.0.0.1", one.port), timeout=60) as line:
        line.sendall(head.encode())
        assert line.recv(1000) == b""


def test_other_methods_and_places(server: Begin) -> None:
    one = server()
    assert one.send("GET", "/call").status == 405
    assert one.send("DELETE", "/approvals").status == 405
    assert one.send("GET", "/nowhere").json["error"]["code"] == "not_found"
