"""`null` for an optional argument is the same as leaving it out, at every place where a call can come in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ringfence import Session
from ringfence.toolkit.call import ToolCall
from ringfence.toolkit.catalog.vendor_formats import call_of
from ringfence.toolkit.cli import main
from ringfence.toolkit.tools import TOOLS
from tests.interop.calls import CALLS
from tests.interop.conftest import Wire, command, environment

# Each tool with what it needs; nothing is changed, so the same call can be sent again.
NEEDED: dict[str, dict[str, Any]] = {
    **CALLS,
    "create_file": {"path": "tmp/new.txt", "content": "one\n"},
    "edit_file": {"path": "tmp/a.txt", "old_str": "alpha", "new_str": "b"},
    "insert_at_line": {"path": "tmp/a.txt", "content": "zero\n", "line": 0},
    "create_directory": {"path": "tmp/dir"},
    "copy_file": {"source": "tmp/a.txt", "destination": "tmp/b.txt"},
    "move_file": {"source": "tmp/a.txt", "destination": "tmp/b.txt"},
    "delete_file": {"path": "tmp/a.txt"},
    "delete": {"path": "tmp/sub"},
    # Without a task store, or where no command can be confined, these are refused alike.
    "list_tasks": {},
    "delete_tasks": {"task_ids": ["a1b2c3d4-e5f6-7890-abcd-ef1234567890"]},
    "restore_tasks": {"task_ids": ["a1b2c3d4-e5f6-7890-abcd-ef1234567890"]},
    "run_command": {"command": "true"},
}
MAY_FAIL = ("list_tasks", "delete_tasks", "restore_tasks", "run_command")
# From a call to how it ended: `ok`, or the code of its error.
Send = Callable[[str, dict[str, Any]], str]


def calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Each tool as it is, then with each optional argument as null, then with all of them."""
    for tool, needed in NEEDED.items():
        optional = [name for name in TOOLS[tool].parameters["properties"] if name not in needed]
        yield tool, needed
        for name in optional:
            yield tool, {**needed, name: None}
        yield tool, {**needed, **dict.fromkeys(optional)}


def ended(result: dict[str, Any]) -> str:
    return "ok" if result["status"] == "ok" else str(result["error"]["code"])


def of_tool_result(result: dict[str, Any]) -> str:
    return ended(result["structuredContent"])


@contextmanager
def python(workspace: Path) -> Iterator[Send]:
    with Session(str(workspace), state=":memory:", dry_run=True) as session:
        yield lambda tool, arguments: ended(session.call(ToolCall(tool, arguments)).to_json())


@contextmanager
def lines(workspace: Path) -> Iterator[Send]:
    words = [sys.executable, "-m", "ringfence", "run", "--root", str(workspace), "--dry-run"]
    words += ["--state", str(workspace.parent / "state")]
    given = "".join(json.dumps({"tool": tool, "arguments": it}) + "\n" for tool, it in calls())
    done = subprocess.run(words, input=given, capture_output=True, text=True, env=environment(), check=True)
    answers = iter(done.stdout.splitlines())
    yield lambda *_: ended(json.loads(next(answers)))


@contextmanager
def one_call(workspace: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Send]:
    place = ["--root", str(workspace), "--state", str(workspace.parent / "state"), "--dry-run", "--json"]

    def send(tool: str, arguments: dict[str, Any]) -> str:
        main(["call", tool, json.dumps(arguments), *place])
        return ended(json.loads(capsys.readouterr().out))

    yield send


@contextmanager
def stdio(workspace: Path) -> Iterator[Send]:
    client = Wire(command(workspace, "--dry-run"))
    try:
        client.greet()
        yield lambda tool, arguments: of_tool_result(client.call(tool, **arguments))
    finally:
        client.close()


@contextmanager
def over_http(workspace: Path, what: str) -> Iterator[Send]:
    serving = pytest.importorskip("tests.serving.conftest", reason="needs the extra `serve`")
    one = serving.start(serving.serve(workspace, "--dry-run", what=what))
    try:
        if what == "http":
            yield lambda tool, it: ended(one.send("POST", "/call", {"tool": tool, "arguments": it}).json)
        else:
            from tests.serving.test_mcp_http import Client

            client = Client(one)
            client.greet()
            yield lambda tool, arguments: of_tool_result(client.call(tool, **arguments))
    finally:
        assert one.stop() == 0


@contextmanager
def dialect(workspace: Path, name: str) -> Iterator[Send]:
    shapes: dict[str, Callable[[str, Any], dict[str, Any]]] = {
        "openai": lambda tool, it: {"id": "1", "function": {"name": tool, "arguments": json.dumps(it)}},
        "openai-responses": lambda tool, it: {
            "type": "function_call", "call_id": "1", "name": tool, "arguments": json.dumps(it)
        },
        "anthropic": lambda tool, it: {"type": "tool_use", "id": "1", "name": tool, "input": it},
        "gemini": lambda tool, it: {"functionCall": {"name": tool, "args": it}},
        "mcp": lambda tool, it: {"name": tool, "arguments": it},
    }  # fmt: skip
    with Session(str(workspace), state=":memory:", dry_run=True) as session:
        yield lambda tool, it: ended(session.call(call_of(name, shapes[name](tool, it))).to_json())


DOORS: dict[str, Callable[..., Any]] = {
    "python": lambda workspace, _: python(workspace),
    "run": lambda workspace, _: lines(workspace),
    "call": one_call,
    "mcp over stdio": lambda workspace, _: stdio(workspace),
    "mcp over http": lambda workspace, _: over_http(workspace, "mcp --http"),
    "http": lambda workspace, _: over_http(workspace, "http"),
    **{
        name: lambda workspace, _, name=name: dialect(workspace, name)
        for name in ("openai", "openai-responses", "anthropic", "gemini", "mcp")
    },
}


def test_every_tool_is_called() -> None:
    assert set(NEEDED) == set(TOOLS)
    assert sum(1 for _ in calls()) > 2 * len(TOOLS)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("door", DOORS)
def test_null_is_the_same_as_left_out(door: str, workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with DOORS[door](workspace, capsys) as send:
        found: dict[str, str] = {}
        for tool, arguments in calls():
            how = send(tool, arguments)
            assert found.setdefault(tool, how) == how, (tool, arguments)
    assert {tool for tool, how in found.items() if how != "ok"} <= set(MAY_FAIL), found


# The tools of hosts with optional arguments, as the hooks get them.
HOSTS = {
    "claude-code": [
        ("Read", {"file_path": "docs/guide.md"}, ["offset", "limit", "pages"]),
        (
            "Grep",
            {"pattern": "first", "path": "docs"},
            ["glob", "type", "output_mode", "-A", "-i", "head_limit"],
        ),
        ("Glob", {"pattern": "docs/*"}, ["path"]),
        ("Edit", {"file_path": "docs/guide.md", "old_string": "a", "new_string": "b"}, ["replace_all"]),
    ],
    "gemini": [
        ("read_file", {"absolute_path": "docs/guide.md"}, ["offset", "limit"]),
        ("glob", {"pattern": "docs/*"}, ["path", "case_sensitive", "respect_git_ignore"]),
        ("list_directory", {"path": "docs"}, ["ignore", "respect_git_ignore"]),
    ],
}


@pytest.mark.parametrize("host", HOSTS)
def test_a_hook_judges_null_as_left_out(host: str, workspace: Path) -> None:
    words = [sys.executable, "-m", "ringfence", "hook", host, "--root", str(workspace)]

    def judged(tool: str, arguments: dict[str, Any]) -> tuple[int, str]:
        event = {"hook_event_name": "PreToolUse" if host == "claude-code" else "BeforeTool"}
        event |= {"cwd": str(workspace), "tool_name": tool, "tool_input": arguments}
        paths = {name: str(workspace / it) for name, it in arguments.items() if name.endswith("_path")}
        event["tool_input"] = {**arguments, **paths}
        done = subprocess.run(
            words, input=json.dumps(event), capture_output=True, text=True, env=environment(), check=False
        )
        return done.returncode, done.stdout + done.stderr

    for tool, needed, optional in HOSTS[host]:
        plain = judged(tool, needed)
        assert plain[0] == 0, plain
        assert judged(tool, {**needed, **dict.fromkeys(optional)}) == plain, tool
