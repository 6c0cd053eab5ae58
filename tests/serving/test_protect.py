"""What stands in front of every route, on a real server: Host, Origin, tokens, sizes, how many at once."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable

import pytest

from tests.serving.conftest import TOKENS, Server

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


def test_more_than_the_limit_at_once_are_told_to_wait(server: Begin) -> None:
    one = server("--max-requests", "2")
    head = (
        f"POST /call HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKENS['coder']}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    held = [socket.create_connection(("127.0.0.1", one.port)) for _ in range(2)]
    try:
        for line in held:
            line.sendall(head.encode())
        answer = one.send("POST", "/call", READ)
        for _ in range(100):
            if answer.status == 503:
                break
            threading.Event().wait(0.05)
            answer = one.send("POST", "/call", READ)
        assert (answer.status, answer.json["error"]["code"]) == (503, "overloaded")
        assert one.send("GET", "/healthz").status == 200
    finally:
        for line in held:
            line.close()
    for _ in range(100):
        answer = one.send("POST", "/call", READ)
        if answer.status == 200:
            return
        threading.Event().wait(0.05)
    pytest.fail("room was not given back")


def test_other_methods_and_places(server: Begin) -> None:
    one = server()
    assert one.send("GET", "/call").status == 405
    assert one.send("DELETE", "/approvals").status == 405
    assert one.send("GET", "/nowhere").json["error"]["code"] == "not_found"
