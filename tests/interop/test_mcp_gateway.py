"""`serve mcp --upstream`: another server's tools on the wire, asked about, recorded and passed on."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.conftest import ROOT, Wire, command, environment

SERVER = ROOT / "tests/upstream/faulty_server.py"
POLICY = """\
version: 1
upstreams:
  up:
    tools:
      echo: {path: write}
rules:
  read: allow
  write: {"*": ask, docs/: allow}
  call: {"up.*": allow}
  up.die: deny
"""
ALLOW = {"action": "accept", "content": {"decision": "allow_once"}}
REFUSE = {"action": "accept", "content": {"decision": "refuse"}}
Start = Callable[..., Wire]


@pytest.fixture
def start(workspace: Path) -> Iterator[Start]:
    (workspace / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
    (workspace.parent / "log").touch()
    running: list[Wire] = []

    def client(*more: str, fault: str = "") -> Wire:
        server = [sys.executable, str(SERVER), fault, str(workspace.parent / "log")]
        words = ("--upstream-sandbox", "none", "--upstream", f"up={shlex.join(server)}")
        running.append(Wire(command(workspace, *words, *more)))
        return running[-1]

    yield client
    for each in running:
        each.close()


def call(client: Wire, name: str, **arguments: Any) -> Any:
    return client.ask("tools/call", name=name, arguments=arguments)


def text(answer: Any) -> str:
    return "\n".join(block.get("text", "") for block in answer["result"]["content"])


def names(client: Wire) -> list[str]:
    return [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]


def records(workspace: Path) -> list[Any]:
    state = str(workspace.parent / "state")
    words = [sys.executable, "-m", "ringfence", "log", "--json", "--root", str(workspace), "--state", state]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=environment(), check=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [each for each in found if each.get("upstream")]


def test_their_tools_are_offered_beside_ours_and_a_denied_one_is_not(start: Start) -> None:
    client = start()
    assert client.greet()["capabilities"]["tools"] == {"listChanged": True}
    found = names(client)
    assert {"read_file", "up_echo", "up_media"} < set(found)
    assert "up_die" not in found
    assert "is denied by the policy" in text(call(client, "up_die"))


def test_they_can_be_offered_alone_and_with_a_prefix(start: Start) -> None:
    client = start("--only-upstream", "--prefix", "x-")
    client.greet()
    assert all(name.startswith("x-up_") for name in names(client))
    assert not call(client, "x-up_hang_not", path="a").get("result")
    assert call(client, "x-read_file", path="ask.txt")["error"]["data"]["code"] == "unknown_tool"
    assert text(call(client, "x-up_echo", path="docs/a"))


def test_odd_tools_are_left_out(start: Start) -> None:
    client = start(fault="odd tools")
    client.greet()
    assert sum(name.startswith("up_") for name in names(client)) == 11


def test_the_server_gets_the_judged_path_and_the_answer_says_what_is_not_kept(
    start: Start, workspace: Path
) -> None:
    client = start()
    client.greet()
    answer = call(client, "up_echo", path="docs/../docs/a.md", content="x\ny")
    assert json.loads(answer["result"]["content"][0]["text"])["path"] == f"{workspace.resolve()}/docs/a.md"
    assert "cannot be undone" in text(answer)
    client.close()
    (record,) = records(workspace)
    assert record["tool"] == "up.echo"
    assert record["paths"] == ["docs/a.md"]
    upstream = record["upstream"]
    assert (upstream["server"], upstream["tool"], upstream["sent"]) == ("up", "echo", True)
    assert (upstream["kept"], upstream["failed"]) == (False, False)
    assert json.loads(upstream["arguments"])["content"] == "(3 characters)"
    assert upstream["bytes"] > 0
    assert len(upstream["digest"]) == 64


def test_media_and_fields_pass_as_they_are(start: Start) -> None:
    client = start()
    client.greet()
    result = call(client, "up_media")["result"]
    assert [block["type"] for block in result["content"]] == ["image", "resource", "resource_link"]
    assert result["structuredContent"] == {"n": 1}
    assert "ringfence/call" in result["_meta"]


def test_a_failed_call_is_one_for_the_model_and_for_the_record(start: Start, workspace: Path) -> None:
    client = start()
    client.greet()
    answer = call(client, "up_fail")
    assert answer["result"]["isError"]
    assert text(answer) == "could not"
    refused = call(client, "up_refuse")
    assert "upstream_error" in text(refused)
    client.close()
    first, second = records(workspace)
    assert (first["outcome"], first["upstream"]["failed"]) == ("upstream_error", True)
    assert second["upstream"]["sent"]


def test_the_user_is_asked_and_the_grant_is_for_this_call(start: Start) -> None:
    client = start()
    client.greet(elicitation={})
    given = client.request("tools/call", name="up_echo", arguments={"path": "a", "content": "new"})
    asked = client.read()
    assert asked["method"] == "elicitation/create"
    message = asked["params"]["message"]
    assert "up: echo a" in message
    assert "cannot be undone" in message
    assert '"content": "new"' in message
    client.write({"jsonrpc": "2.0", "id": asked["id"], "result": ALLOW})
    answer = client.read()
    assert answer["id"] == given
    assert '"content": "new"' in text(answer)
    # Other arguments are another call.
    client.request("tools/call", name="up_echo", arguments={"path": "a", "content": "other"})
    again = client.read()
    assert again["method"] == "elicitation/create"
    client.write({"jsonrpc": "2.0", "id": again["id"], "result": REFUSE})
    assert "approval_refused" in text(client.read())
    assert "approval_refused" in text(call(client, "up_echo", path="a", content="other"))


def test_a_grant_outside_the_client_permits_the_same_call_once(start: Start, workspace: Path) -> None:
    client = start("--ask", "queue")
    client.greet()
    waiting = call(client, "up_echo", path="a")
    assert "approval_required" in text(waiting)
    approval = text(waiting).split("approvals grant ")[1].split("`")[0]
    words = [sys.executable, "-m", "ringfence", "approvals", "grant", approval, "--root", str(workspace)]
    words += ["--state", str(workspace.parent / "state")]
    subprocess.run(words, capture_output=True, timeout=60, env=environment(), check=True)
    assert not call(client, "up_echo", path="a")["result"]["isError"]
    assert "approval_required" in text(call(client, "up_echo", path="a"))


def test_a_doubt_is_granted_for_one_call_only(start: Start) -> None:
    client = start()
    client.greet(elicitation={})
    client.request("tools/call", name="up_media", arguments={"filePath": "a"})
    asked = client.read()
    choices = [
        each["const"] for each in asked["params"]["requestedSchema"]["properties"]["decision"]["oneOf"]
    ]
    assert choices == ["allow_once", "refuse"]
    assert "looks like a path" in asked["params"]["message"]
    client.write({"jsonrpc": "2.0", "id": asked["id"], "result": ALLOW})
    assert not client.read()["result"]["isError"]


def test_progress_is_passed_on(start: Start) -> None:
    client = start()
    client.greet()
    client.count += 1
    params = {"name": "up_slow", "arguments": {}, "_meta": {"progressToken": "t"}}
    client.write({"jsonrpc": "2.0", "id": client.count, "method": "tools/call", "params": params})
    messages = [client.read()]
    while "id" not in messages[-1]:
        messages.append(client.read())
    told = [each["params"]["message"] for each in messages[:-1]]
    assert told
    assert set(told) <= {"step 1", "step 2", "step 3"}
    assert text(messages[-1]) == "slow"


def test_a_cancellation_reaches_the_server(start: Start, workspace: Path) -> None:
    client = start()
    client.greet()
    given = client.request("tools/call", name="up_hang", arguments={})
    log = workspace.parent / "log"
    until = time.monotonic() + 30
    while '"hang"' not in log.read_text(encoding="utf-8"):
        assert time.monotonic() < until
        time.sleep(0.01)
    client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": given}})
    assert call(client, "up_media")["result"]["structuredContent"]  # answered once the other call has ended
    client.close()
    assert [each["outcome"] for each in records(workspace)] == ["cancelled", "answered"]
    assert "notifications/cancelled" in log.read_text(encoding="utf-8")


def test_a_changed_list_is_told_to_the_client(start: Start) -> None:
    client = start()
    client.greet()
    before = names(client)
    client.request("tools/call", name="up_change", arguments={})
    messages = [client.read(), client.read()]
    assert {each.get("method", "") for each in messages} == {"notifications/tools/list_changed", ""}
    assert set(names(client)) - set(before) == {"up_more"}


def test_a_server_that_dies_is_told_and_ours_go_on(start: Start, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(POLICY.replace("deny", "allow"), encoding="utf-8")
    client = start()
    client.greet()
    names(client)
    answer = call(client, "up_die")
    assert "upstream_unavailable" in text(answer)
    assert "about to die" in text(answer)
    assert "not known" in text(answer)
    assert text(call(client, "read_file", path="ask.txt"))
    client.request("tools/call", name="up_media", arguments={})
    message = client.read()
    while "id" not in message:
        message = client.read()
    assert not message["result"]["isError"]


def test_a_server_that_does_not_start_has_no_tools_and_says_why(start: Start) -> None:
    client = start(fault="exits")
    client.greet()
    assert "read_file" in names(client)
    assert not any(name.startswith("up_") for name in names(client))
    answer = call(client, "up_echo", path="a.txt")
    assert "upstream_unavailable" in text(answer)
    assert "has not started" in text(answer)
    assert "status 7" in text(answer)
    assert "the call was not sent" in text(answer)
    assert call(client, "upside", path="a.txt")["error"]["data"]["code"] == "unknown_tool"
    client.process.stdin.close()
    assert client.process.stderr
    said = client.process.stderr.read().decode()
    assert "[up] no configuration" in said
    assert "status 7" in said
