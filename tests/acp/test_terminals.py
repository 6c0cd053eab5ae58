"""Terminals of an agent: commands run in the sandbox, with their output, their end and their changes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.acp.terminals import Terminal
from ringfence.toolkit.sandbox import levels
from tests.acp.both_ends import PATIENCE, SESSION, Ends, Message, records
from tests.acp.test_cases import selected

pytestmark = pytest.mark.skipif(
    not any(one.works and one.level in ("overlay", "copy") for one in levels()),
    reason="this machine cannot confine a command",
)


def call(ends: Ends, method: str, **params: Any) -> Message:
    """What the agent gets for a call."""
    sent = ends.agent.request(f"terminal/{method}", {"sessionId": SESSION, **params})
    answer = ends.agent.get()
    assert answer["id"] == sent
    return answer


def started(ends: Ends, command: str, *words: str, **more: Any) -> str:
    made = call(ends, "create", command=command, args=list(words), **more)
    return str(made["result"]["terminalId"])


def ended(ends: Ends, terminal: str) -> Message:
    found = call(ends, "wait_for_exit", terminalId=terminal)["result"]
    assert isinstance(found, dict)
    return found


def output(ends: Ends, terminal: str) -> Message:
    found = call(ends, "output", terminalId=terminal)["result"]
    assert isinstance(found, dict)
    return found


def waits_for(ends: Ends, terminal: str, text: str) -> Message:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        found = output(ends, terminal)
        if text in found["output"]:
            return found
    raise AssertionError(found)


def test_a_command_runs_and_its_changes_are_recorded(ends: Ends, root: Path) -> None:
    terminal = started(ends, "echo made > src/made.txt; cat secret.txt; echo over; exit 3")
    assert ended(ends, terminal) == {"exitCode": 3, "signal": None}
    found = output(ends, terminal)
    assert "over\n" in found["output"]
    assert "key" not in found["output"], "what may not be read is not there for a command"
    assert found["exitStatus"] == {"exitCode": 3, "signal": None}
    assert found["truncated"] is False
    assert (root / "src/made.txt").read_text() == "made\n"
    assert call(ends, "release", terminalId=terminal)["result"] == {}
    assert "error" in call(ends, "output", terminalId=terminal)
    ends.close()
    (record,) = [one for one in records(root) if one["event"] == "call"]
    assert (record["tool"], record["outcome"]) == ("run_command", "done")


def test_words_are_words_and_begin_where_they_are_told(ends: Ends, root: Path) -> None:
    terminal = started(ends, "printf", "%s|", "a b", "$HOME", cwd=str(root / "src"))
    ended(ends, terminal)
    assert output(ends, terminal)["output"] == "a b|$HOME|"
    terminal = started(ends, "pwd", cwd=str(root / "src"))
    ended(ends, terminal)
    assert output(ends, terminal)["output"].endswith("/src\n")


def test_a_directory_outside_the_root(ends: Ends) -> None:
    terminal = started(ends, "pwd", cwd="/")
    assert ended(ends, terminal)["exitCode"] == 125
    assert "outside" in output(ends, terminal)["output"]


def test_a_command_that_the_policy_denies_does_not_run(ends: Ends, root: Path) -> None:
    terminal = started(ends, "rm", "src/app.py")
    assert ended(ends, terminal)["exitCode"] == 125
    assert "no removing" in output(ends, terminal)["output"]
    assert (root / "src/app.py").exists()


def test_one_change_that_is_denied_leaves_all_of_them_out(ends: Ends, root: Path) -> None:
    terminal = started(ends, "echo x > src/made.txt; echo x > secret.txt.new")
    assert ended(ends, terminal)["exitCode"] == 125
    assert "secrets stay here" in output(ends, terminal)["output"]
    assert not (root / "src/made.txt").exists()


@pytest.mark.parametrize("answer", ["allow_once", "reject_once"])
def test_the_person_is_asked_about_changes(answer: str, ends: Ends, root: Path) -> None:
    terminal = started(ends, "echo x > docs/a.md")
    sent = ends.agent.request("terminal/wait_for_exit", {"sessionId": SESSION, "terminalId": terminal})
    question = ends.editor.get()
    assert "docs/a.md" in question["params"]["toolCall"]["content"][0]["content"]["text"]
    assert "exitStatus" not in output(ends, terminal), "other calls are answered meanwhile"
    ends.editor.answer(question, selected(answer))
    found = ends.agent.get()
    assert found["id"] == sent
    assert found["result"]["exitCode"] == (0 if answer == "allow_once" else 125)
    assert (root / "docs/a.md").exists() == (answer == "allow_once")


def test_output_comes_as_it_is_written(ends: Ends, root: Path) -> None:
    terminal = started(ends, "echo first; read line; echo never")
    ended(ends, terminal)  # its input is empty; another command waits until it has ended
    started_again = started(ends, "echo first; sleep 60; echo x > src/made.txt")
    found = waits_for(ends, started_again, "first")
    assert "exitStatus" not in found
    assert call(ends, "kill", terminalId=started_again)["result"] == {}
    assert ended(ends, started_again) == {"exitCode": None, "signal": "SIGKILL"}
    assert output(ends, started_again)["output"] == "first\n"
    assert not (root / "src/made.txt").exists()


def test_a_released_terminal_ends(ends: Ends) -> None:
    terminal = started(ends, "sleep 60")
    sent = ends.agent.request("terminal/wait_for_exit", {"sessionId": SESSION, "terminalId": terminal}, "w")
    ends.agent.request("terminal/release", {"sessionId": SESSION, "terminalId": terminal}, "r")
    answers = {message["id"]: message["result"] for message in (ends.agent.get(), ends.agent.get())}
    assert answers == {sent: {"exitCode": None, "signal": "SIGKILL"}, "r": {}}


def test_the_end_of_the_editor_ends_a_command(ends: Ends, root: Path) -> None:
    terminal = started(ends, "echo x > src/made.txt; sleep 60")
    assert terminal
    ends.editor.close()
    ends.close()
    assert not (root / "src/made.txt").exists()


def test_a_file_call_does_not_wait_for_a_command(ends: Ends, root: Path) -> None:
    terminal = started(ends, "echo first; sleep 60")
    waits_for(ends, terminal, "first")
    ends.agent.request("fs/read_text_file", {"sessionId": SESSION, "path": str(root / "src/app.py")})
    assert ends.agent.get()["result"] == {"content": "one\ntwo\n"}
    call(ends, "kill", terminalId=terminal)


@pytest.mark.parametrize("ask", ["queue", "deny"])
def test_without_anybody_to_ask(ask: str, ends_of: Callable[..., Ends], root: Path) -> None:
    ends = ends_of(ask)
    ends.begin()
    terminal = started(ends, "git push origin")
    assert ended(ends, terminal)["exitCode"] == 125
    text = output(ends, terminal)["output"]
    assert ("ringfence approvals grant" in text) == (ask == "queue")


def test_the_editor_sees_the_output_in_the_place_of_a_terminal_it_has_not(ends: Ends) -> None:
    terminal = started(ends, "echo first; sleep 60")
    waits_for(ends, terminal, "first")
    item = {"type": "terminal", "terminalId": terminal}
    other = {"type": "terminal", "terminalId": "the editor's own"}
    update = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "Run", "content": [item, other]}
    ends.agent.send(
        {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": SESSION, "update": update}}
    )
    shown = ends.editor.get()["params"]["update"]
    assert shown | {"content": []} == update | {"content": []}
    assert shown["content"][0]["content"]["text"] == "```\n$ echo first; sleep 60\nfirst\n```"
    assert shown["content"][1] == other
    call(ends, "kill", terminalId=terminal)
    whole = ends.editor.get()["params"]["update"]
    assert (whole["sessionUpdate"], whole["toolCallId"]) == ("tool_call_update", "t")
    assert whole["content"] == shown["content"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"command": 1},
        {"command": "ls", "args": "a"},
        {"command": "ls", "args": [1]},
        {"command": "ls", "cwd": 1},
    ],
)
def test_a_terminal_that_cannot_be(params: Message, ends: Ends) -> None:
    assert call(ends, "create", **params)["error"]["code"] == -32602


def test_terminals_are_bounded(ends: Ends) -> None:
    first = started(ends, "sleep 60")
    for _ in range(15):
        started(ends, "sleep 60")
    assert "error" in call(ends, "create", command="ls")
    call(ends, "release", terminalId=first)
    assert "result" in call(ends, "create", command="ls")


@pytest.mark.parametrize(
    ("keep", "kept"), [(6, "yaéé"), (5, "aéé"), (4, "éé"), (3, "é"), (2, "é"), (1, ""), (0, "")]
)
def test_output_is_cut_at_a_character(keep: int, kept: str) -> None:
    whole = "xyaéé".encode()
    for size in range(1, len(whole) + 1):
        terminal = Terminal("x", keep)
        for start in range(0, len(whole), size):
            terminal.add(whole[start : start + size])
        assert (terminal.text(), terminal.truncated) == (kept, True)
