"""The fault proxy for HTTP before a trivial server: each fault does what its name says."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ringfence.toolkit.testing.faults import KINDS, Fault, HttpProxy


class Store(BaseHTTPRequestHandler):
    """Keeps what is PUT, by path."""

    protocol_version = "HTTP/1.1"
    files: dict[str, bytes]
    hosts: list[str]

    def do_GET(self) -> None:
        found = self.files.get(self.path)
        self.reply(404 if found is None else 200, found or b"")

    def do_PUT(self) -> None:
        self.files[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.reply(201)

    def do_DELETE(self) -> None:
        self.reply(404 if self.files.pop(self.path, None) is None else 204)

    do_HEAD = do_GET

    def reply(self, status: int, body: bytes = b"") -> None:
        self.hosts.append(self.headers["Host"])
        self.send_response(status)
        self.send_header("X-Kept", str(len(self.files)))
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def store() -> Iterator[type[Store]]:
    class FreshStore(Store):
        pass

    FreshStore.files, FreshStore.hosts = {}, []
    with ThreadingHTTPServer(("127.0.0.1", 0), FreshStore) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        FreshStore.port = server.server_address[1]  # type: ignore[attr-defined]
        yield FreshStore
        server.shutdown()
        thread.join()


@pytest.fixture
def proxy(store: Any) -> Iterator[HttpProxy]:
    with HttpProxy(f"http://127.0.0.1:{store.port}") as found:
        yield found


def ask(proxy: HttpProxy, method: str, path: str, body: bytes | None = None, timeout: float = 30) -> Any:
    """The status and body of the reply, or what kind of failure it was."""
    host, port = proxy.url.removeprefix("http://").split(":")
    with contextlib.closing(HTTPConnection(host, int(port), timeout=timeout)) as connection:
        try:
            connection.request(method, path, body)
            reply = connection.getresponse()
            return reply.status, reply.read()
        except (HTTPException, OSError) as error:
            return type(error).__name__


# kind -> what the client receives after a PUT, whether the store has the file, whether the request reached it
OF_A_PUT = [
    ({"kind": "drop before"}, "RemoteDisconnected", False, False, "dropped"),
    ({"kind": "refuse before", "status": 500}, (500, "InternalError"), False, False, "500"),
    ({"kind": "refuse before", "status": 429}, (429, "TooManyRequests"), False, False, "429"),
    ({"kind": "drop after"}, "RemoteDisconnected", True, True, "dropped"),
    ({"kind": "refuse after", "status": 503}, (503, "SlowDown"), True, True, "503"),
    ({"kind": "slow", "seconds": 0.01}, (201, ""), True, True, "201"),
    ({"kind": "late", "seconds": 0.01}, (201, ""), True, True, "201"),
    ({"kind": "cut"}, "BadStatusLine", True, True, "half"),
    ({"kind": "stale"}, (201, ""), True, True, "201"),  # there is no earlier answer
]


@pytest.mark.parametrize(
    ("fault", "answer", "there", "reached", "received"), OF_A_PUT, ids=lambda value: str(value)[:40]
)
def test_a_fault_of_a_change(
    proxy: HttpProxy,
    store: Any,
    fault: dict[str, Any],
    answer: Any,
    there: bool,
    reached: bool,
    received: str,
) -> None:
    proxy.arm(Fault.of(fault))
    got = ask(proxy, "PUT", "/a", b"new")
    if isinstance(answer, str):
        assert isinstance(got, str)
    else:
        assert got[0] == answer[0] and answer[1].encode() in got[1]
    proxy.wait()
    assert ("/a" in store.files) == there
    [seen] = proxy.seen()
    assert (seen.number, seen.method, seen.target) == (1, "PUT", "/a")
    assert (seen.reached, seen.acted, seen.received) == (reached, there, received)
    assert ask(proxy, "PUT", "/a", b"again") == (201, b"")  # the next one passes
    assert store.files["/a"] == b"again"


def test_each_kind_is_tried_here() -> None:
    assert {row[0]["kind"] for row in OF_A_PUT} == set(KINDS)


def test_half_of_a_body(proxy: HttpProxy, store: Any) -> None:
    store.files["/a"] = b"0123456789"
    proxy.arm(Fault("cut"))
    assert ask(proxy, "GET", "/a") == "IncompleteRead"
    proxy.wait()
    assert proxy.seen()[0].received == "half"


def test_a_refusal_by_the_store_is_no_act(proxy: HttpProxy) -> None:
    proxy.arm(Fault("drop after"))
    ask(proxy, "DELETE", "/a")
    proxy.wait()
    [seen] = proxy.seen()
    assert (seen.answer, seen.acted, seen.received) == ("404", False, "dropped")


def test_a_client_that_waits_no_longer_is_forwarded_all_the_same(proxy: HttpProxy, store: Any) -> None:
    proxy.arm(Fault("late", seconds=1))
    assert ask(proxy, "PUT", "/a", b"late", timeout=0.05) == "TimeoutError"
    proxy.wait()
    assert store.files == {"/a": b"late"}
    assert proxy.seen()[0].acted


def test_an_answer_of_yesterday(proxy: HttpProxy, store: Any) -> None:
    assert ask(proxy, "GET", "/a")[0] == 404
    assert ask(proxy, "HEAD", "/a")[0] == 404
    store.files["/a"] = b"now"
    proxy.wait()  # until both are written down, so that they are not among those after the fault is armed
    proxy.arm(Fault("stale", times=2))
    assert ask(proxy, "GET", "/a")[0] == 404
    assert ask(proxy, "HEAD", "/a")[0] == 404
    assert ask(proxy, "GET", "/a") == (200, b"now")
    proxy.wait()
    assert [(seen.fault, seen.reached) for seen in proxy.seen()] == [
        ("stale", False), ("stale", False), ("", True),
    ]  # fmt: skip
    proxy.forget()
    proxy.arm(Fault("stale"))
    assert ask(proxy, "GET", "/a") == (200, b"now")


def test_the_nth_that_fits_some_times_in_a_row(proxy: HttpProxy, store: Any) -> None:
    proxy.arm(Fault("refuse before", nth=2, times=2, methods=("PUT",), target="a"))
    received = [ask(proxy, method, path, b"")[0] for method, path in [
        ("PUT", "/a"), ("GET", "/a"), ("PUT", "/b"), ("PUT", "/a"), ("PUT", "/a"), ("PUT", "/a"),
    ]]  # fmt: skip
    assert received == [201, 200, 201, 503, 503, 201]


def test_a_store_that_is_not_to_be_reached_afterwards(proxy: HttpProxy, store: Any) -> None:
    proxy.arm(Fault("drop after", down=True))
    assert isinstance(ask(proxy, "PUT", "/a", b"1"), str)
    assert isinstance(ask(proxy, "PUT", "/a", b"2"), str)
    assert isinstance(ask(proxy, "GET", "/a"), str)
    proxy.wait()
    assert store.files == {"/a": b"1"}
    assert [seen.acted for seen in proxy.seen()] == [True, False, False]
    proxy.arm(None)
    assert ask(proxy, "GET", "/a") == (200, b"1")


def test_what_is_forwarded_is_what_came(proxy: HttpProxy, store: Any) -> None:
    odd = "/a%2Fb%20c?x=%C3%A9&y"
    assert ask(proxy, "PUT", odd, bytes(range(256)) * 999) == (201, b"")
    assert store.files == {odd: bytes(range(256)) * 999}
    assert store.hosts == [proxy.url.removeprefix("http://")]  # a signature covers it


def test_a_body_in_chunks_and_many_requests_on_one_connection(proxy: HttpProxy, store: Any) -> None:
    host, port = proxy.url.removeprefix("http://").split(":")
    with contextlib.closing(HTTPConnection(host, int(port), timeout=30)) as connection:
        for turn in range(3):
            connection.request("PUT", "/a", iter([b"1", b"23", b"%d" % turn]), encode_chunked=True)
            assert connection.getresponse().read() == b""
            connection.request("HEAD", "/a")
            reply = connection.getresponse()
            assert (reply.getheader("Content-Length"), reply.read()) == ("4", b"")
        assert store.files == {"/a": b"1232"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "gone"}, "no fault is called"),
        ({"kind": "slow", "secs": 1}, "a fault has no secs"),
        ({"kind": "cut", "nth": 0}, "counted from 1"),
    ],
)
def test_a_fault_that_is_none(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Fault.of(data)


def test_only_http_is_forwarded() -> None:
    with pytest.raises(ValueError, match="http:// only"):
        HttpProxy("https://example.com")
