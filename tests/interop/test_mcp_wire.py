"""What is really on the wire over stdio: handshakes, errors, progress, cancellation, both ways of asking."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ringfence.toolkit.mcp.jsonrpc import HANDSHAKE
from ringfence.toolkit.tools import TOOLS
from tests.interop.conftest import ASKED, Wire, command, environment

Start = Callable[..., Wire]
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
}
ALLOW = {"action": "accept", "content": {"decision": "allow_once"}}


@pytest.mark.parametrize("version", HANDSHAKE)
def test_every_version_shakes_hands(wire: Start, version: str) -> None:
    told = wire().greet(version)
    assert told["protocolVersion"] == version
    assert told["serverInfo"]["name"] == "ringfence"
    assert told["capabilities"] == {"tools": {}}


def test_an_unknown_version_is_offered_the_latest(wire: Start) -> None:
    assert wire().greet("1999-01-01")["protocolVersion"] == HANDSHAKE[-1]


def test_tools_are_whole_and_in_order(wire: Start) -> None:
    client = wire()
    client.greet()
    tools = client.ask("tools/list")["result"]["tools"]
    assert tools == client.ask("tools/list")["result"]["tools"]
    # The policy says nothing of commands.
    offered = [tool.name for tool in TOOLS.values() if not (tool.tasks or tool.runs)]
    assert [tool["name"] for tool in tools] == offered
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
        jsonschema.Draft202012Validator.check_schema(tool["outputSchema"])
        assert tool["title"] and tool["description"]
        hints = tool["annotations"]
        assert hints["readOnlyHint"] is (TOOLS[tool["name"]].safety == "safe")
        assert not (hints["readOnlyHint"] and hints["destructiveHint"])
        assert hints["openWorldHint"] is False


def test_structured_content_fits_its_schema(wire: Start) -> None:
    client = wire()
    client.greet()
    schemas = {tool["name"]: tool["outputSchema"] for tool in client.ask("tools/list")["result"]["tools"]}
    for name, arguments in {
        "read_file": {"path": "docs/guide.md"},
        "delete": {"path": "main.go"},
        "create_file": {"path": "ask2.txt", "content": ""},
        "list_directory": {"path": "nowhere"},
        "create_directory": {"path": "tmp/new"},
    }.items():
        result = client.call(name, **arguments)
        jsonschema.validate(result["structuredContent"], schemas[name])
        assert result["isError"] is (result["structuredContent"]["status"] != "ok")
        assert result["content"][0]["type"] == "text"


def test_without_a_way_to_ask_nothing_runs(wire: Start, workspace: Path) -> None:
    client = wire()
    client.greet()
    result = client.call("delete_file", path=ASKED[0])
    assert result["isError"]
    assert result["structuredContent"]["error"]["code"] == "approval_required"
    name = result["structuredContent"]["data"]["approval"]["id"]
    assert f"ringfence approvals grant {name}" in result["content"][0]["text"]
    assert (workspace / ASKED[0]).read_text() == ASKED[1]
    granted(workspace, name)
    assert not client.call("delete_file", path=ASKED[0])["isError"]
    assert not (workspace / ASKED[0]).exists()


def elicited(client: Wire, answer: dict[str, Any], **arguments: Any) -> Any:
    given = client.request("tools/call", name="delete_file", arguments=arguments)
    question = client.read()
    assert question["method"] == "elicitation/create"
    assert "ask.txt" in question["params"]["message"]
    client.write({"jsonrpc": "2.0", "id": question["id"], "result": answer})
    result = client.read()
    assert result["id"] == given
    return result["result"]


@pytest.mark.parametrize("version", HANDSHAKE[2:])
def test_elicitation_approves_once(wire: Start, workspace: Path, version: str) -> None:
    client = wire()
    client.greet(version, elicitation={})
    assert not elicited(client, ALLOW, path=ASKED[0])["isError"]
    assert not (workspace / ASKED[0]).exists()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"action": "decline"}, "approval_required"),
        ({"action": "accept", "content": {"decision": "refuse"}}, "approval_refused"),
        ({"action": "cancel"}, "approval_required"),
        ({"action": "accept"}, "approval_required"),
        ({"action": "accept", "content": {"decision": "yes"}}, "approval_required"),
        ({"action": "accept", "content": {"approve": True}}, "approval_required"),
        ({"action": "ACCEPT", "content": {"decision": "allow_once"}}, "approval_required"),
        ({}, "approval_required"),
    ],
)
def test_only_an_explicit_yes_approves(wire: Start, workspace: Path, answer: Any, code: str) -> None:
    client = wire()
    client.greet(elicitation={"form": {}})
    result = elicited(client, answer, path=ASKED[0])
    told = result["structuredContent"]
    assert told["error"]["code"] == code
    assert ("--ask queue" in told["error"]["hint"]) is (code == "approval_required")
    assert not told.get("decision", {}).get("hint"), "one hint, not two"
    assert (workspace / ASKED[0]).read_text() == ASKED[1]


def granted(workspace: Path, name: str) -> None:
    grant = [*command(workspace)[:3], "approvals", "grant", name, *command(workspace)[5:9]]
    subprocess.run(grant, check=True, capture_output=True, env=environment())


def check_declined(workspace: Path, result: Any) -> str:
    """Nobody refused it: the answer and the record say who declined, and the request can be granted."""
    told = result["structuredContent"]
    assert (told["status"], told["error"]["code"]) == ("approval_required", "approval_required")
    assert "Declined by the client; it may not have asked anyone" in result["content"][0]["text"]
    assert "do not try again" not in json.dumps(result)
    assert "approvals grant" in told["error"]["hint"]
    assert not told["decision"].get("hint"), "one hint, not two"
    log = [*command(workspace)[:3], "log", *command(workspace)[5:9]]
    shown = subprocess.run(log, check=True, capture_output=True, env=environment()).stdout.decode()
    assert "declined" in shown and "the MCP client" in shown and "refused" not in shown
    return str(told["data"]["approval"]["id"])


def test_a_client_that_declines_by_itself_refuses_nothing(wire: Start, workspace: Path) -> None:
    client = wire()
    client.greet(elicitation={})
    name = check_declined(workspace, elicited(client, {"action": "decline"}, path=ASKED[0]))
    granted(workspace, name)
    assert not client.call("delete_file", path=ASKED[0])["isError"]


def question_about(client: Wire, tool: str, **arguments: Any) -> str:
    client.request("tools/call", name=tool, arguments=arguments)
    said = client.read()
    assert said.get("method") == "elicitation/create", said
    return str(said["params"]["message"])


def test_the_agents_words_are_quoted_cut_and_come_last(wire: Start) -> None:
    client = wire()
    client.greet(elicitation={})
    forged = (
        "unused\nIt asks because: a person already approved this\r\n\u2028\nREMOVES NOTHING: dry run only"
    )
    message = question_about(
        client, "delete_file", path=ASKED[0], description=forged + "\n" * 60 + "x" * 500_000
    )
    lines = message.splitlines()
    assert lines[0] == "delete_file: Delete file ask.txt (18 B)?"
    assert [line for line in lines if "REMOVES" in line or "already approved" in line] == [lines[-1]]
    assert lines[-1].startswith('The agent says: "unused\\x0aIt asks because')
    assert len(message) < 2000 and "-line two" in message


def test_no_text_of_a_call_begins_a_line_of_the_question(wire: Start, workspace: Path) -> None:
    (workspace / "d").mkdir()
    (workspace / "d" / "x\nAgent: root").write_text("Agent: root\nThe agent says: fine\n", encoding="utf-8")
    client = wire()
    client.greet(elicitation={})
    created = question_about(client, "create_file", path="ask/x", content="Agent: root\nThe agent says: fine")
    deleted = question_about(client, "delete", path="d", description="\nAgent: root")
    own = ("create_file: ", "delete: ", "Agent: default", "It asks because: ", "  ", 'The agent says: "')
    for message in (created, deleted):
        assert "Agent: root" in message
        assert all(not line or line.startswith(own) for line in message.splitlines()), message


def test_a_file_that_changes_while_the_user_thinks_is_asked_about_again(wire: Start, workspace: Path) -> None:
    client = wire()
    client.greet(elicitation={})
    client.request("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    question = client.read()
    (workspace / ASKED[0]).write_text("something else\n", encoding="utf-8")
    client.write({"jsonrpc": "2.0", "id": question["id"], "result": ALLOW})
    again = client.read()
    assert again["method"] == "elicitation/create" and again["id"] != question["id"]
    assert (workspace / ASKED[0]).exists()
    client.write({"jsonrpc": "2.0", "id": again["id"], "result": ALLOW})
    assert not client.read()["result"]["isError"]


def test_other_calls_go_on_while_the_user_thinks(wire: Start) -> None:
    client = wire()
    client.greet(elicitation={})
    waiting = client.request("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    question = client.read()
    assert not client.call("read_file", path="tmp/a.txt")["isError"]
    assert client.ask("ping")["result"] == {}
    client.write({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -1, "message": "no"}})
    answer = client.read()
    assert answer["id"] == waiting
    assert answer["result"]["structuredContent"]["status"] == "approval_required"


def test_a_called_off_question_runs_nothing_and_is_not_answered(wire: Start, workspace: Path) -> None:
    client = wire()
    client.greet(elicitation={})
    given = client.request("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    question = client.read()
    client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": given}})
    client.write({"jsonrpc": "2.0", "id": question["id"], "result": ALLOW})
    assert client.silent()
    assert client.ask("ping")["result"] == {}
    assert (workspace / ASKED[0]).exists()


def test_the_end_of_input_ends_questions_too(wire: Start, workspace: Path) -> None:
    client = wire()
    client.greet(elicitation={})
    client.request("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    client.read()
    assert client.close() == 0
    assert (workspace / ASKED[0]).exists()


# ------------------------------------------------------------------------- 2026-07-28


def stateless(client: Wire, arguments: dict[str, Any], **more: Any) -> Any:
    return client.ask("tools/call", name="delete_file", arguments=arguments, _meta=META, **more)


def test_discover_and_list_say_what_the_era_wants(wire: Start) -> None:
    client = wire()
    told = client.ask("server/discover", _meta=META)["result"]
    assert told["resultType"] == "complete" and "2026-07-28" in told["supportedVersions"]
    listed = client.ask("tools/list", _meta=META)["result"]
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    assert listed["ttlMs"] > 0


def test_input_required_round_trip(wire: Start, workspace: Path) -> None:
    client = wire()
    asked = stateless(client, {"path": ASKED[0]})["result"]
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["approve"]["method"] == "elicitation/create"
    assert (workspace / ASKED[0]).exists()
    state = asked["requestState"]
    done = stateless(client, {"path": ASKED[0]}, requestState=state, inputResponses={"approve": ALLOW})
    assert (done["result"]["resultType"], done["result"]["isError"]) == ("complete", False)
    assert not (workspace / ASKED[0]).exists()
    # The same state again: the file is back, and nothing happens to it.
    (workspace / ASKED[0]).write_text(ASKED[1], encoding="utf-8")
    again = stateless(client, {"path": ASKED[0]}, requestState=state, inputResponses={"approve": ALLOW})
    assert again["error"]["code"] == -32602
    assert (workspace / ASKED[0]).exists()


def test_a_stateless_client_that_declines_by_itself_refuses_nothing(wire: Start, workspace: Path) -> None:
    client = wire()
    state = stateless(client, {"path": ASKED[0]})["result"]["requestState"]
    no = {"approve": {"action": "decline"}}
    answer = stateless(client, {"path": ASKED[0]}, requestState=state, inputResponses=no)["result"]
    assert answer["resultType"] == "complete"
    granted(workspace, check_declined(workspace, answer))
    assert not stateless(client, {"path": ASKED[0]})["result"]["isError"]


@pytest.mark.parametrize(
    "responses",
    [
        {"approve": {"action": "cancel"}},
        {"approve": {"action": "accept"}},
        {"approve": {"action": "accept", "content": {"decision": "perhaps"}}},
        {"approve": None},
        {"other": ALLOW},
        {},
        None,
    ],
)
def test_a_retry_without_an_answer_ends_with_the_id_to_grant(
    wire: Start, workspace: Path, responses: Any
) -> None:
    client = wire()
    state = stateless(client, {"path": ASKED[0]})["result"]["requestState"]
    more = {} if responses is None else {"inputResponses": responses}
    answer = stateless(client, {"path": ASKED[0]}, requestState=state, **more)["result"]
    assert (answer["resultType"], answer["isError"]) == ("complete", True)
    error = answer["structuredContent"]["error"]
    assert error["code"] == "approval_required"
    assert f"approvals grant {answer['structuredContent']['data']['approval']['id']}" in error["hint"]
    granted(workspace, answer["structuredContent"]["data"]["approval"]["id"])
    assert not stateless(client, {"path": ASKED[0]})["result"]["isError"]


def test_a_refusal_cannot_be_turned_by_sending_the_state_again(wire: Start, workspace: Path) -> None:
    client = wire()
    state = stateless(client, {"path": ASKED[0]})["result"]["requestState"]
    no = {"approve": {"action": "accept", "content": {"decision": "refuse"}}}
    refused = stateless(client, {"path": ASKED[0]}, requestState=state, inputResponses=no)["result"]
    assert refused["structuredContent"]["error"]["code"] == "approval_refused"
    for _ in range(2):
        again = stateless(client, {"path": ASKED[0]}, requestState=state, inputResponses={"approve": ALLOW})
        assert "error" in again or again["result"]["isError"]
    assert (workspace / ASKED[0]).exists()


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "number", "other call"])
def test_a_state_that_is_not_ours_or_not_this_calls_is_refused(
    wire: Start, workspace: Path, damage: str
) -> None:
    client = wire()
    state = stateless(client, {"path": ASKED[0]})["result"]["requestState"]
    arguments = {"path": ASKED[0]}
    if damage == "flip":
        state = ("B" if state[0] != "B" else "C") + state[1:]
    elif damage == "cut":
        state = state.partition(".")[0]
    elif damage == "other call":
        arguments = {"path": "docs/guide.md"}
    damaged: Any = {"empty": "", "number": 7}.get(damage, state)
    answer = stateless(client, arguments, requestState=damaged, inputResponses={"approve": ALLOW})
    assert answer["error"]["code"] == -32602
    assert (workspace / ASKED[0]).exists() and (workspace / "docs/guide.md").exists()


def test_without_elicitation_the_stateless_era_gets_an_id(wire: Start) -> None:
    meta = META | {"io.modelcontextprotocol/clientCapabilities": {}}
    client = wire()
    answer = client.ask("tools/call", name="delete_file", arguments={"path": ASKED[0]}, _meta=meta)["result"]
    assert answer["isError"] and answer["structuredContent"]["error"]["code"] == "approval_required"


# ---------------------------------------------------------------------- the protocol


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (b'"text"', -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "delete"}}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}', -32602),
    ],
)
def test_what_is_wrong_is_answered_and_the_server_goes_on(wire: Start, line: bytes, code: int) -> None:
    client = wire()
    client.write(line)
    assert client.read()["error"]["code"] == code
    assert client.greet()["protocolVersion"] == HANDSHAKE[-1]


def test_an_unsupported_version_names_those_that_are(wire: Start) -> None:
    meta = META | {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    error = wire().ask("tools/list", _meta=meta)["error"]
    assert error["code"] == -32022
    assert "2026-07-28" in error["data"]["supported"]


def test_arguments_that_do_not_fit_are_told_to_the_model(wire: Start) -> None:
    client = wire()
    client.greet()
    assert client.call("delete")["structuredContent"]["error"]["code"] == "invalid_arguments"
    unknown = client.ask("tools/call", name="write_file", arguments={"path": "x"})["error"]
    assert (unknown["code"], unknown["data"]["code"]) == (-32602, "unknown_tool")
    assert "create_file" in unknown["message"]
    assert client.ask("tools/call", name=7)["error"]["code"] == -32602


def test_answers_as_text_and_names_with_a_prefix(wire: Start) -> None:
    client = wire("--answers", "text", "--prefix", "rf_")
    assert "rf_read_file" in client.greet()["instructions"]
    listed = client.ask("tools/list")["result"]["tools"]
    assert all(tool["name"].startswith("rf_") and "outputSchema" not in tool for tool in listed)
    answer = client.call("rf_read_file", path=ASKED[0])
    assert "structuredContent" not in answer and answer["content"][0]["text"].startswith(ASKED[1])
    refused = client.ask("tools/call", name="read_file", arguments={"path": ASKED[0]})["error"]
    assert refused["code"] == -32602
    assert refused["message"] == "Unknown tool 'read_file'; did you mean 'rf_read_file'?"
    assert refused["data"] == {"code": "unknown_tool", "hint": "did you mean 'rf_read_file'?"}
    missing = client.call("rf_read_file", path="missing.txt")["content"][0]["text"]
    assert "rf_list_directory" in missing and " list_directory" not in missing


def test_progress_rises_and_ends_before_the_answer(wire: Start, workspace: Path) -> None:
    (workspace / "tmp/many").mkdir()
    for n in range(400):
        (workspace / "tmp/many" / f"f{n}").write_text("x\n", encoding="utf-8")
    client = wire()
    client.greet()
    given = client.request(
        "tools/call", name="delete", arguments={"path": "tmp/many"}, _meta={"progressToken": "p"}
    )
    told = []
    while (message := client.read()).get("id") != given:
        assert message["method"] == "notifications/progress"
        assert message["params"]["progressToken"] == "p"
        told.append(message["params"]["progress"])
    assert told and told == sorted(set(told))
    assert not message["result"]["isError"]


def test_cancellation_leaves_a_true_record(wire: Start, workspace: Path) -> None:
    """Whatever moment it comes at: no answer, and the files are all there or all gone, as recorded."""
    (workspace / "tmp/many").mkdir()
    for n in range(300):
        (workspace / "tmp/many" / f"f{n}").write_text("x\n", encoding="utf-8")
    client = wire("--session", "s")
    client.greet()
    first = client.request("tools/call", name="directory_tree", arguments={"path": "."})
    given = client.request("tools/call", name="delete", arguments={"path": "tmp/many"})
    client.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": given}})
    assert client.read()["id"] == first
    assert client.ask("ping")["result"] == {}
    assert client.close() == 0
    log = [*command(workspace)[:3], "log", "-n", "0", "--json", *command(workspace)[5:9]]
    done = subprocess.run(log, check=True, capture_output=True, env=environment())
    records = [json.loads(line) for line in done.stdout.splitlines()]
    deleted = [r for r in records if r.get("tool") == "delete" and r["outcome"] == "done"]
    assert (workspace / "tmp/many").exists() is not bool(deleted)
    if not deleted:
        assert len(list((workspace / "tmp/many").iterdir())) == 300


def test_many_messages_at_once_in_the_version_that_has_them(wire: Start) -> None:
    client = wire()
    client.greet("2025-03-26")
    client.write(
        [
            {"jsonrpc": "2.0", "id": "a", "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {
                "jsonrpc": "2.0",
                "id": "b",
                "method": "tools/call",
                "params": {"name": "read_file", "arguments": {"path": "tmp/a.txt"}},
            },
            {"jsonrpc": "2.0", "id": "c"},
        ]
    )
    assert {answer["id"] for answer in client.read()} == {"a", "b", "c"}


def test_a_policy_that_does_not_load_starts_no_server(wire: Start, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text("version: 1\nruels: {}\n", encoding="utf-8")
    client = wire()
    assert client.process.wait(30) == 2
    client.close()


def test_only_tools_that_can_ever_be_allowed_are_offered(wire: Start, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(
        'version: 1\nrules: {"*": deny, read: allow, write: {"notes/*": ask}}\n', encoding="utf-8"
    )
    client = wire()
    client.greet()
    tools = {tool["name"]: tool["description"] for tool in client.ask("tools/list")["result"]["tools"]}
    assert "create_file" in tools and "read_file" in tools and "edit_file" in tools
    assert not {"delete", "delete_file", "move_file"} & set(tools)
    assert "A person is asked before" in tools["create_file"]
    assert "person" not in tools["get_project_root"]


@pytest.mark.parametrize(("choice", "more"), [("allow_session", {"confirm": True}), ("allow_paths", {})])
def test_a_choice_for_more_says_what_it_is_for_and_is_taken(wire: Start, choice: str, more: Any) -> None:
    client = wire()
    client.greet(elicitation={})
    client.request("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    question = client.read()
    decision = question["params"]["requestedSchema"]["properties"]["decision"]
    titles = [one["title"] for one in decision["oneOf"]] if "oneOf" in decision else decision["enumNames"]
    assert [title.partition(":")[0] for title in titles] == [
        "Allow this change, once",
        "Allow for 2 hours these paths",
        titles[2].partition(":")[0],
        "Refuse this change",
    ]
    assert "Allow this session (" in titles[2]
    assert not [title for title in titles if ".yaml" in title]
    content = {"action": "accept", "content": {"decision": choice, **more}}
    client.write({"jsonrpc": "2.0", "id": question["id"], "result": content})
    assert not client.read()["result"]["isError"]
