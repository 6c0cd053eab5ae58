"""A connection to a process with every fault: each ends in an answer, or in an error that tells why."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.upstream.connection import Connection
from ringfence.toolkit.upstream.process import ServerProcess
from ringfence.toolkit.upstream.transport import OnEnd, OnMessage
from tests.upstream.answering import Answering

SERVER = str(Path(__file__).with_name("faulty_server.py"))
Connect = Callable[..., Connection]


@pytest.fixture
def notes() -> list[str]:
    return []


@pytest.fixture
def connect(tmp_path: Path, notes: list[str]) -> Iterator[Connect]:
    made: list[Connection] = []
    (tmp_path / "log").touch()

    def connection(fault: str = "", **more: Any) -> Connection:
        words = (sys.executable, SERVER, fault, str(tmp_path / "log"))

        def transport() -> ServerProcess:
            return ServerProcess(words, str(tmp_path), dict(os.environ), notes.append)

        made.append(Connection("s", transport, note=notes.append, **more))
        return made[-1]

    yield connection
    for each in made:
        each.close()


def log(tmp_path: Path) -> list[str]:
    return (tmp_path / "log").read_text(encoding="utf-8").splitlines()


def text_of(answer: dict[str, Any]) -> str:
    return str(answer["content"][0]["text"])


def test_a_call_is_answered(connect: Connect) -> None:
    assert text_of(connect().call("echo", {"a": "ü"}, Progress())) == '{"a": "\\u00fc"}'


def test_media_pass_as_they_are(connect: Connect) -> None:
    answer = connect().call("media", {}, Progress())
    assert [each["type"] for each in answer["content"]] == ["image", "resource", "resource_link"]
    assert answer["structuredContent"] == {"n": 1}


def test_the_tools_come_in_pages(connect: Connect) -> None:
    assert len(connect("pages").tools()) == 12


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("exits", "status 7: no configuration"),
        ("babble", "no messages"),
        ("old", "1999"),
        ("no list", "no list"),
    ],
)
def test_a_server_that_does_not_start_says_why(connect: Connect, fault: str, says: str) -> None:
    with pytest.raises(CallError, match=says) as caught:
        connect(fault).tools()
    assert caught.value.code == "upstream_unavailable"


def test_a_command_that_is_none(tmp_path: Path) -> None:
    connection = Connection("s", lambda: ServerProcess(("/no/such",), str(tmp_path), {}, lambda _: None))
    with pytest.raises(CallError, match="cannot be started"):
        connection.tools()


def test_a_greeting_is_no_harm_and_stderr_is_shown(connect: Connect, notes: list[str]) -> None:
    connection = connect("greets")
    assert text_of(connection.call("echo", {}, Progress())) == "{}"
    connection.close()
    shown = "\n".join(notes)
    assert "not a message: Server running" in shown
    assert "one\\x1b[31m line" in shown
    assert "and one without an end" in shown


def test_a_server_that_dies_fails_the_call_once_and_starts_again(connect: Connect, tmp_path: Path) -> None:
    connection = connect()
    with pytest.raises(CallError, match="status 3: about to die; whether it was done is not known"):
        connection.call("die", {}, Progress())
    assert text_of(connection.call("echo", {}, Progress())) == "{}"
    assert log(tmp_path).count("start") == 2
    assert sum('"die"' in line for line in log(tmp_path)) == 1, "it is never sent twice"


def test_a_server_that_dies_again_and_again_is_left_alone(connect: Connect, tmp_path: Path) -> None:
    connection = connect()
    for _ in range(5):
        with pytest.raises(CallError):
            connection.call("die", {}, Progress())
    assert log(tmp_path).count("start") == 3


def test_an_error_of_the_protocol(connect: Connect) -> None:
    with pytest.raises(CallError) as caught:
        connect().call("refuse", {}, Progress())
    assert caught.value.code == "upstream_error"
    assert "bad\\u202e words" in caught.value.message


def test_a_result_that_is_none(connect: Connect) -> None:
    with pytest.raises(CallError, match="no result"):
        connect().call("none", {}, Progress())


def test_an_answer_that_is_broken_fails_its_call_at_once(connect: Connect) -> None:
    with pytest.raises(CallError, match="no valid JSON-RPC message"):
        connect().call("broken", {}, Progress())


def test_the_end_of_an_earlier_server_is_not_that_of_the_next() -> None:
    ends: list[Callable[[str], None]] = []

    class Noted(Answering):
        def start(self, on_message: OnMessage, on_end: OnEnd) -> None:
            super().start(on_message, on_end)
            ends.append(on_end)

    connection = Connection("s", lambda: Noted([]))
    connection.tools()
    ends[0]("the first one ended")
    connection.tools()
    ends[0]("the first one ended, told late")
    assert connection.call("x", {}, Progress())["content"]
    assert len(ends) == 2


def test_lines_that_are_no_messages_are_passed_over(connect: Connect) -> None:
    assert text_of(connect().call("junk", {}, Progress())) == "after junk"


def test_a_message_without_an_end_is_too_large(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringfence.toolkit.upstream.message_lines.MAX_MESSAGE", 1 << 20)
    with pytest.raises(CallError, match="more than 1 MiB"):
        connect().call("huge", {"bytes": 3 << 20}, Progress())


def test_no_answer_in_time(connect: Connect, tmp_path: Path) -> None:
    connection = connect(seconds=0.3)
    with pytest.raises(CallError, match=r"within 0\.3 seconds; whether it was done is not known"):
        connection.call("hang", {}, Progress())
    assert text_of(connection.call("echo", {}, Progress())) == "{}"
    assert any("notifications/cancelled" in line for line in log(tmp_path))


def test_progress_is_passed_on_and_counts_as_a_sign_of_life(connect: Connect) -> None:
    steps: list[tuple[str, int, int | None]] = []
    progress = Progress(lambda *step: steps.append(step))
    assert text_of(connect(seconds=0.4).call("slow", {}, progress)) == "slow"
    assert steps == [("step 1", 1, 3), ("step 2", 2, 3), ("step 3", 3, 3)]


def test_a_cancelled_call_is_cancelled_at_the_server(connect: Connect, tmp_path: Path) -> None:
    connection = connect()
    connection.tools()
    given_up = threading.Event()
    failed: queue.SimpleQueue[CallError] = queue.SimpleQueue()

    def call() -> None:
        try:
            connection.call("hang", {}, Progress(cancelled=given_up.is_set))
        except CallError as error:
            failed.put(error)

    thread = threading.Thread(target=call)
    thread.start()
    given_up.set()
    error = failed.get(timeout=20)
    thread.join()
    assert error.code == "cancelled"
    assert "not known" in error.message
    connection.call("echo", {}, Progress())
    assert any("notifications/cancelled" in line for line in log(tmp_path))


def test_a_changed_list_is_told_and_read_again(connect: Connect) -> None:
    told = threading.Event()
    connection = connect(changed=told.set)
    before = len(connection.tools())
    connection.call("change", {}, Progress())
    assert told.wait(20)
    assert len(connection.tools()) == before + 1


def test_requests_of_the_server_are_answered_and_offer_nothing(connect: Connect, tmp_path: Path) -> None:
    connection = connect()
    connection.call("ask", {}, Progress())
    connection.call("echo", {}, Progress())
    answers = [line for line in log(tmp_path) if '"id":"q"' in line or '"id":"p"' in line]
    assert "-32601" in answers[0]
    assert '"result":{}' in answers[1]


def test_a_server_that_does_not_read_is_given_up(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringfence.toolkit.upstream.pipe_writer._SECONDS", 0.3)
    monkeypatch.setattr("ringfence.toolkit.upstream.connection.START_SECONDS", 0.3)
    connection = connect("silent")
    with pytest.raises(CallError, match=r"within 0\.3 seconds"):
        connection.tools()


def test_closing_ends_the_process(connect: Connect, tmp_path: Path) -> None:
    connection = connect()
    connection.tools()
    connection.close()
    with pytest.raises(CallError, match="was ended"):
        connection.call("echo", {}, Progress())
