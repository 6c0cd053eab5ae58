"""The loop over two streams: quick calls without a second thread, long ones that can be called off."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from ringfence.toolkit.mcp.jsonrpc import Message, Peer, reply
from ringfence.toolkit.mcp.server import Flight
from ringfence.toolkit.mcp.stdio import Loop


class Slow:
    """Answers a call named "wait" when it is called off or let go, any other at once."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.discard = threading.Event()
        self.upstream = None
        self.flights: dict[Any, Flight] = {}

    def answer(self, message: Message, _: Peer, flight: Flight) -> Message:
        if message["method"] == "tools/call":
            self.flights[message["id"]] = flight
            if message["params"]["name"] == "wait":
                self.began.set()
                while not flight.cancelled and not self.discard.wait(0.01):
                    pass
        return reply(message["id"], {})


class Client:
    """The other end of both pipes."""

    def __init__(self, server: Slow) -> None:
        theirs, self._to = os.pipe()
        answers, out = os.pipe()
        self._source, self._sink = os.fdopen(theirs, "rb"), os.fdopen(out, "wb")
        self._answers = os.fdopen(answers, "rb")
        self.loop = Loop(server, self._source, self._sink)  # type: ignore[arg-type]
        self.thread = threading.Thread(target=self.loop.run)
        self.thread.start()

    def say(self, *messages: Message) -> None:
        os.write(self._to, b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def read(self) -> Any:
        return json.loads(self._answers.readline())

    def end(self) -> None:
        os.close(self._to)
        self._to = -1

    def close(self) -> None:
        if self._to >= 0:
            self.end()
        self.thread.join(10)
        assert not self.thread.is_alive()
        for stream in (self._source, self._sink, self._answers):
            stream.close()


@pytest.fixture
def server() -> Slow:
    return Slow()


@pytest.fixture(params=["where a pipe can be asked", "where it cannot"])
def client(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, server: Slow) -> Iterator[Client]:
    if request.param == "where it cannot":
        monkeypatch.delattr("select.poll")
    client = Client(server)
    yield client
    server.discard.set()
    client.close()


def call(number: int, name: str = "quick") -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name}}


PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}


def off(number: int) -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}


def test_calls_are_answered_in_their_order(client: Client) -> None:
    client.say(*(call(number) for number in range(50)))
    assert [client.read()["id"] for _ in range(50)] == list(range(50))


def test_while_a_call_takes_long_others_are_heard(client: Client, server: Slow) -> None:
    client.say(call(1, "wait"))
    assert server.began.wait(10)
    client.say(PING, call(2))
    assert client.read()["id"] == "ping"
    server.discard.set()
    assert [client.read()["id"] for _ in range(2)] == [1, 2]
    client.say(call(3))
    assert client.read()["id"] == 3


def test_a_call_that_takes_long_can_be_called_off(client: Client, server: Slow) -> None:
    client.say(call(0))
    assert client.read()["id"] == 0
    client.say(call(1, "wait"))
    assert server.began.wait(10)
    client.say(off(1), call(2))
    assert client.read()["id"] == 2  # and nothing of the one that was called off


def test_a_call_is_called_off_before_it_begins(client: Client, server: Slow) -> None:
    client.say(call(1, "wait"), call(2), off(2))
    assert server.began.wait(10)
    client.say(PING)
    assert client.read()["id"] == "ping"
    server.discard.set()
    assert client.read()["id"] == 1
    client.say(call(3))
    assert client.read()["id"] == 3
    assert server.flights[2].cancelled and not server.flights[3].cancelled


def test_many_short_calls_and_a_long_one(client: Client, server: Slow) -> None:
    """The watch for long calls begins anew with each."""
    done: list[int] = []
    for number in range(200):
        client.say(call(number))
        done.append(client.read()["id"])
    client.say(call(1000, "wait"), PING)
    assert client.read()["id"] == "ping"
    server.discard.set()
    assert client.read()["id"] == 1000
    assert done == list(range(200))


def test_the_end_of_input_comes_after_the_calls(server: Slow) -> None:
    client = Client(server)
    client.say(call(1), call(2, "wait"), call(3))
    assert server.began.wait(10)
    client.end()
    server.discard.set()
    assert [client.read()["id"] for _ in range(3)] == [1, 2, 3]
    client.close()


class Faulty(Slow):
    """Fails with one call, and answers the others."""

    def answer(self, message: Message, peer: Peer, flight: Flight) -> Message:
        if message["method"] == "tools/call" and message["params"]["name"] == "faulty":
            raise RuntimeError("a fault of our own")
        return super().answer(message, peer, flight)


@pytest.mark.parametrize("before", [[], [{"method": "tools/call", "params": {"name": "quick"}}]])
def test_a_request_that_fails_is_answered_and_ends_nothing(before: list[Message]) -> None:
    client = Client(Faulty())
    try:
        calls = [*before, {"method": "tools/call", "params": {"name": "faulty"}}, {"method": "ping"}]
        client.say(*({"jsonrpc": "2.0", "id": n, **call} for n, call in enumerate(calls)))
        answers = sorted((client.read() for _ in calls), key=lambda answer: answer["id"])
    finally:
        client.close()
    assert [answer["id"] for answer in answers] == list(range(len(calls)))
    assert answers[-2]["error"] == {"code": -32603, "message": "Internal error"}
    assert "result" in answers[-1]
