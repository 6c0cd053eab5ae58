"""`serve mcp` with a person beside the client: questions go to them alone, and the other calls go on."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import ASKED, Wire, command, environment


class Beside:
    """A client, and a person at the other end of the channel."""

    def __init__(self, workspace: Path) -> None:
        self.end, theirs = socket.socketpair()
        with theirs:
            self.client = Wire(command(workspace, "--approvals-fd", str(theirs.fileno())), theirs.fileno())
        self._heard = self.end.makefile("r")

    def hear(self) -> Any:
        return json.loads(self._heard.readline())

    def ends(self) -> bool:
        return self._heard.readline() == ""

    def say(self, asked: dict[str, Any], **answer: Any) -> None:
        self.end.sendall(json.dumps({"id": asked["id"], **answer}).encode() + b"\n")

    def close(self) -> None:
        self._heard.close()
        self.end.close()
        self.client.close()


@pytest.fixture
def beside(workspace: Path) -> Iterator[Beside]:
    both = Beside(workspace)
    yield both
    both.close()


def delete(client: Wire, name: str = ASKED[0]) -> Any:
    return client.request("tools/call", name="delete_file", arguments={"path": name})


def test_the_person_is_asked_and_the_call_goes_on(beside: Beside, workspace: Path) -> None:
    client = beside.client
    client.greet(elicitation={})
    given = delete(client)
    asked = beside.hear()
    assert (asked["event"], asked["call"], asked["paths"]) == ("asked", given, [ASKED[0]])
    # The client, which could ask its own user, is not asked; and what does not ask is answered meanwhile.
    assert client.ask("tools/call", name="read_file", arguments={"path": ASKED[0]})["result"]
    beside.say(asked, grant=True)
    answer = client.read()
    assert answer["id"] == given
    assert not answer["result"].get("isError")
    assert not (workspace / ASKED[0]).exists()
    assert beside.hear()["state"] == "granted"


def test_a_refusal(beside: Beside, workspace: Path) -> None:
    beside.client.greet()
    delete(beside.client)
    beside.say(beside.hear(), grant=False, reason="keep it")
    answer = beside.client.read()
    assert answer["result"]["isError"]
    assert "keep it" in answer["result"]["content"][0]["text"]
    assert (workspace / ASKED[0]).exists()


def test_questions_come_one_after_the_other(beside: Beside, workspace: Path) -> None:
    (workspace / "other.txt").write_text("x")
    beside.client.greet()
    calls = {delete(beside.client), delete(beside.client, "other.txt")}
    for _ in range(2):
        asked = beside.hear()
        beside.say(asked, grant=True)
        assert beside.hear() == {"event": "closed", "id": asked["id"], "state": "granted", "reason": ""}
    assert {beside.client.read()["id"] for _ in range(2)} == calls


def test_what_changes_meanwhile_is_asked_again(beside: Beside, workspace: Path) -> None:
    beside.client.greet()
    delete(beside.client)
    first = beside.hear()
    (workspace / ASKED[0]).write_text("other\n")
    beside.say(first, grant=True)
    assert beside.hear()["state"] == "granted"
    second = beside.hear()
    assert "-other" in second["preview"]
    beside.say(second, grant=True)
    assert not beside.client.read()["result"].get("isError")


def test_a_call_that_is_called_off(beside: Beside, workspace: Path) -> None:
    beside.client.greet()
    given = delete(beside.client)
    beside.hear()
    beside.client.write(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": given}}
    )
    closed = beside.hear()
    assert (closed["state"], closed["reason"]) == ("pending", "the call was called off")
    assert beside.client.ask("ping")["result"] == {}
    assert (workspace / ASKED[0]).exists()


def test_a_client_that_goes_ends_the_question(beside: Beside, workspace: Path) -> None:
    beside.client.greet()
    delete(beside.client)
    beside.hear()
    process = beside.client.process
    assert process.stdin
    process.stdin.close()
    assert beside.hear()["reason"] == "the call was called off"
    assert beside.ends()
    assert process.wait(30) == 0
    assert (workspace / ASKED[0]).exists()


def test_a_person_who_goes_leaves_it_in_the_queue(beside: Beside, workspace: Path) -> None:
    beside.client.greet()
    delete(beside.client)
    beside.hear()
    beside.end.shutdown(socket.SHUT_RDWR)
    assert "approval_required" in json.dumps(beside.client.read())
    assert (workspace / ASKED[0]).exists()


@pytest.mark.parametrize(
    "words", [("--approvals-fd", "3"), ("--approvals-socket", "s"), ("--approvals-timeout", "9s")]
)
def test_not_over_http(workspace: Path, words: tuple[str, ...]) -> None:
    done = subprocess.run(
        command(workspace, "--http", *words), capture_output=True, text=True, env=environment(), timeout=60
    )
    assert done.returncode == 2
    assert "only over stdin and stdout" in done.stderr
