"""Progress of a call as notifications: steps and output, with a clock that the test moves."""

from __future__ import annotations

from typing import Any

import pytest

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.mcp.progress_notifications import (
    ENOUGH,
    EVERY,
    MOST_AT_ONCE,
    MOST_OUTPUT,
    ProgressNotifications,
)
from ringfence.toolkit.progress import Progress


class Client:
    """What a client gets, and the clock."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.now, self.gone = 0.0, False
        notify = self.messages.append
        told = ProgressNotifications(notify, "t", lambda: self.gone, lambda: self.now)
        self.progress: Progress = told.progress()

    def write(self, *pieces: bytes) -> None:
        assert self.progress.output is not None
        for piece in pieces:
            self.progress.output(1, piece)

    def later(self) -> None:
        self.now += 10 * EVERY
        self.progress.check()

    @property
    def texts(self) -> list[str]:
        return [message["params"]["message"] for message in self.messages]

    @property
    def amounts(self) -> list[int]:
        return [message["params"]["progress"] for message in self.messages]


def test_output_comes_at_once_and_then_not_more_often_than_the_bound() -> None:
    client = Client()
    client.write(b"one\n", b"two\n", b"three\n")
    assert client.texts == ["one\n"]
    client.later()
    assert client.texts == ["one\n", "two\nthree\n"]
    client.later()
    assert len(client.messages) == 2, "without output there is nothing to send"


def test_a_piece_is_bounded_and_has_the_end() -> None:
    client = Client()
    client.write(b"x" * MOST_AT_ONCE + b"end")
    assert len(client.texts[0]) == MOST_AT_ONCE
    assert client.texts[0].endswith("end")


def test_the_output_of_one_call_is_bounded() -> None:
    client = Client()
    for _ in range(MOST_OUTPUT // MOST_AT_ONCE + 10):
        client.write(b"x" * MOST_AT_ONCE)
        client.later()
    assert client.texts.count(ENOUGH) == 1
    assert client.texts[-1] == ENOUGH
    assert sum(map(len, client.texts[:-1])) <= MOST_OUTPUT


def test_control_characters_are_escaped_and_a_letter_in_two_pieces_is_whole() -> None:
    client = Client()
    client.write(b"\x1b[2Jgr\xc3")
    client.later()
    client.write(b"\xbc\xe2\x80\xae\n")
    client.later()
    assert "".join(client.texts) == "\\x1b[2Jgrü\\u202e\n"


def test_the_progress_rises_over_output_and_steps() -> None:
    client = Client()
    client.write(b"x" * 100)
    for n in range(1, 4):
        client.later()
        client.progress.start(10)
        client.progress.step(f"file {n}", n)
    assert client.amounts == sorted(set(client.amounts))
    assert client.messages[-1]["params"]["total"] == 110


def test_a_cancelled_call_ends_at_the_next_look() -> None:
    client = Client()
    client.write(b"one\n", b"two\n")
    client.gone = True
    with pytest.raises(CallError) as caught:
        client.later()
    assert caught.value.code == "cancelled"
    assert client.texts == ["one\n", "two\n"]
