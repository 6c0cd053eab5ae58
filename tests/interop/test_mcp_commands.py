"""A command over MCP with a real client: progress while it runs, cancellation, both questions."""

from __future__ import annotations

import http.client
import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.sandbox import levels
from tests.interop.conftest import Wire
from tests.serving.conftest import TOKENS, Server
from tests.serving.conftest import server as server
from tests.serving.test_mcp_http import Client, stateless

POLICY = """\
version: 1
rules: {read: {"*": allow}, write: {"*": allow}, delete: {"*": allow}, run: {"*": allow}}
commands: {require: copy, network: NETWORK}
"""
pytestmark = pytest.mark.skipif(
    not any(one.works and one.level in ("overlay", "copy") for one in levels()),
    reason="this machine cannot confine a command",
)
Start = Callable[..., Wire]
Begin = Callable[..., Server]


@pytest.fixture(autouse=True)
def policy(workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(POLICY.replace("NETWORK", "off"), encoding="utf-8")


class Endless:
    """A command with processes of its own in the background, all of which have a name to be found by."""

    def __init__(self) -> None:
        # The text of the command has the number in two parts, so that only the processes have it whole.
        one, two = str(1000 + secrets.randbelow(9000)), str(10_000 + secrets.randbelow(90_000))
        self.mark = f"{one}{two}".encode()
        self.line = f"n={one}; m={two}; sleep $n$m & setsid sleep $n$m & echo started; touch made; sleep $n$m"

    def processes(self) -> list[int]:
        found = []
        for path in Path("/proc").iterdir():
            try:
                words = (path / "cmdline").read_bytes() if path.name.isdigit() else b""
            except OSError:
                continue
            if self.mark in words:
                found.append(int(path.name))
        return found

    def is_over(self) -> bool:
        return until(lambda: not self.processes())


def until(holds: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def arguments(line: str) -> dict[str, Any]:
    return {"name": "run_command", "arguments": {"command": line}, "_meta": {"progressToken": "p"}}


def test_output_comes_while_the_command_runs(wire: Start, workspace: Path) -> None:
    """The command waits for a file in a directory that it writes at once, made once its first line came."""
    text = POLICY.replace("NETWORK", "off").replace("copy,", "copy, through: [tmp/],")
    (workspace / "ringfence.yaml").write_text(text, encoding="utf-8")
    client = wire()
    client.greet()
    line = "echo first; until [ -e tmp/go ]; do sleep 0.05; done; printf 'seco\\033nd\\n' >&2; sleep 0.3"
    given = client.request("tools/call", **arguments(line))
    texts = []
    while (message := client.read()).get("id") != given:
        assert message["method"] == "notifications/progress"
        texts.append(message["params"]["message"])
        if "first" in texts[-1]:
            (workspace / "tmp" / "go").touch()
    assert "".join(texts).startswith("first\nseco\\x1bnd\n")
    assert message["result"]["structuredContent"]["data"]["output"] == "first\nseco\x1bnd\n"


def test_a_cancelled_command_ends_with_all_its_processes(wire: Start, workspace: Path) -> None:
    client, endless = wire("--session", "s"), Endless()
    client.greet()
    given = client.request("tools/call", **arguments(endless.line))
    assert "started" in client.read()["params"]["message"]
    assert until(lambda: len(endless.processes()) == 3)
    client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": given}})
    assert endless.is_over()
    ping = client.request("ping")
    while (message := client.read()).get("method") == "notifications/progress":
        pass
    assert (message["id"], message["result"]) == (ping, {}), "the cancelled call gets no answer"
    assert not (workspace / "made").exists()


@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_over_http_too(server: Begin, workspace: Path, era: str) -> None:
    """In the older era the client says so; in the stateless one it closes the request."""
    client, endless = Client(server(what="mcp --http")), Endless()
    headers: dict[str, str] = {}
    if era == "handshake":
        client.greet()
        message = client.message("tools/call", **arguments(endless.line))
    else:
        message, headers = stateless("tools/call", **arguments(endless.line))
        message["params"]["_meta"] |= {"progressToken": "p"}
        headers = {name.replace("_", "-"): text for name, text in headers.items()}
    with client.stream(message, **headers) as said:
        assert "started" in next(said)["params"]["message"]
        assert until(lambda: len(endless.processes()) == 3)
        if era == "handshake":
            params = {"requestId": message["id"]}
            off = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            assert client.post(off).status == 202
            assert endless.is_over()
    assert endless.is_over()
    assert not (workspace / "made").exists()


def test_a_closed_call_over_http_ends_the_command(server: Begin, workspace: Path) -> None:
    running, endless = server(), Endless()
    line = http.client.HTTPConnection("127.0.0.1", running.port, timeout=30)
    body = json.dumps({"tool": "run_command", "arguments": {"command": endless.line}})
    headers = {"Authorization": f"Bearer {TOKENS['coder']}", "Content-Type": "application/json"}
    line.request("POST", "/call", body, headers)
    assert until(lambda: len(endless.processes()) == 3)
    line.close()
    assert endless.is_over()
    assert not (workspace / "made").exists()


@pytest.mark.parametrize(("network", "open_world"), [("off", False), ("on", True)])
def test_the_tools_hints(wire: Start, workspace: Path, network: str, open_world: bool) -> None:
    (workspace / "ringfence.yaml").write_text(POLICY.replace("NETWORK", network), encoding="utf-8")
    client = wire()
    client.greet()
    tools = {tool["name"]: tool["annotations"] for tool in client.ask("tools/list")["result"]["tools"]}
    assert tools["run_command"] == {
        "title": "Run command",
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": open_world,
    }
    assert tools["delete"]["openWorldHint"] is False
