"""The proxy itself: what it passes on, in which order and form, and what it passes to nobody."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.acp import messages
from tests.acp.both_ends import SESSION, Ends, Message, fits, records
from tests.acp.test_cases import OPTIONS, selected

EDIT = {"toolCallId": "t", "kind": "edit", "title": "Edit"}


def asks(root: Path, name: str = "docs/a.md", session: str = SESSION) -> Message:
    call = {**EDIT, "locations": [{"path": str(root / name)}]}
    return {"sessionId": session, "options": OPTIONS, "toolCall": call}


@pytest.mark.parametrize("version", [1, 2])
def test_the_agent_hears_of_files_and_terminals_where_there_are_any(version: int, ends_of: Any) -> None:
    ends = ends_of()
    params: Message = {"protocolVersion": version, "_meta": {"a": [1]}, "extra": 1}
    if version == 1:
        params["clientCapabilities"] = {"fs": {"readTextFile": False, "_meta": {"b": 2}}, "elicitation": {}}
    ends.editor.request("initialize", params)
    heard = ends.agent.get()["params"]
    if version == 1:
        assert heard.pop("clientCapabilities") == {
            "fs": {"readTextFile": True, "writeTextFile": True, "_meta": {"b": 2}},
            "terminal": True,
            "elicitation": {},
        }
        del params["clientCapabilities"]
    assert heard == params


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"of the agent","x":1.50}}',
        b'{"jsonrpc": "2.0",  "method":"_vendor/thing","params":[1,2],"_meta":{"z":1,"a":2}}',
        b'{"id":12345678901234567890,"method":"elicitation/create","params":null}',
        '{"id":"ä","method":"x/y","params":{"text":"日本 \\u2028"}}'.encode(),
        b'{"id":null,"result":{}}',
    ],
)
def test_what_is_not_judged_is_passed_on_byte_for_byte(line: bytes, ends: Ends) -> None:
    ends.agent.send_line(line)
    assert ends.editor.line() == line + b"\n"
    ends.editor.send_line(line)
    assert ends.agent.line() == line + b"\n"


@pytest.mark.parametrize("split", ["\r", "\u2028", "\u2029", "\x85"])
def test_a_line_that_some_readers_split_is_written_anew(split: str, ends: Ends) -> None:
    inner = json.dumps({"id": 1, "method": "fs/write_text_file", "params": {}})
    if split == "\r":
        line = f'{{"method":"x/y","params":\r{inner}\r}}'
    else:
        line = json.dumps({"method": "x/y", "params": f"{split}{inner}{split}"}, ensure_ascii=False)
    ends.agent.send_line(line.encode())
    heard = ends.editor.line()
    assert heard.isascii() and len(heard.splitlines()) == 1
    assert json.loads(heard) == json.loads(line)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"what", -32700),
        (b"\xff\xfe", -32700),
        (b'{"id":1,"method":"x","method":"fs/write_text_file"}', -32700),
        (b'{"method":"x","params":{"a":NaN}}', -32700),
        (b"[" * 100_000, -32700),
        (b'[{"id":1,"method":"fs/write_text_file"}]', -32600),
        (b'"text"', -32600),
        (b'{"id":1}', -32600),
        (b'{"id":true,"method":"x"}', -32600),
        (b'{"id":1,"method":["fs/write_text_file"]}', -32600),
    ],
)
@pytest.mark.parametrize("side", ["agent", "editor"])
def test_what_is_no_message_is_passed_to_nobody(side: str, line: bytes, code: int, ends: Ends) -> None:
    end: Any = getattr(ends, side)
    end.send_line(line)
    assert end.get() | {"error": {}} == {"jsonrpc": "2.0", "id": None, "error": {}}
    ends.settle()


def test_a_line_that_is_too_long(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"method":"x/y","params":"' + b"x" * (messages.MAX_LINE + 10) + b'"}'
    ends.agent.send_line(line)
    assert ends.agent.get()["error"]["code"] == -32700
    ends.settle()


def test_both_sides_may_write_much_at_once(ends: Ends) -> None:
    """More than any pipe holds in both directions, while nobody reads."""
    line = json.dumps({"method": "x/y", "params": "x" * 100_000}).encode()
    for _ in range(100):
        ends.agent.send_line(line)
        ends.editor.send_line(line)
    for _ in range(100):
        assert ends.editor.line() == line + b"\n"
        assert ends.agent.line() == line + b"\n"


def test_order_is_kept(ends: Ends, root: Path) -> None:
    for number in range(20):
        ends.agent.send({"method": "x/before", "params": [number]})
        ends.agent.request("session/request_permission", asks(root, f"docs/{number}"), number)
        ends.agent.send({"method": "x/after", "params": [number]})
    for number in range(20):
        assert ends.editor.get()["params"] == [number]
        assert ends.editor.get()["params"]["toolCall"]["locations"][0]["path"].endswith(f"docs/{number}")
        assert ends.editor.get()["params"] == [number]


@pytest.mark.parametrize(
    "method",
    ["fs/read_text_file", "fs/write_text_file", "fs/list", "terminal/create", "session/request_permission"],
)
def test_what_is_judged_is_never_passed_on_as_a_notification(method: str, ends: Ends, root: Path) -> None:
    params = {**asks(root), "path": str(root / "src/app.py"), "content": "x", "command": "touch x"}
    ends.agent.send({"jsonrpc": "2.0", "method": method, "params": params})
    ends.settle()
    assert (root / "src/app.py").read_text() == "one\ntwo\n"


@pytest.mark.parametrize("method", ["fs/list", "fs/", "terminal/resize"])
def test_an_unknown_call_of_that_kind_is_refused(method: str, ends: Ends) -> None:
    ends.agent.request(method, {"sessionId": SESSION})
    assert ends.agent.get()["error"]["code"] == -32601
    ends.settle()


@pytest.mark.parametrize("session", ["another", 1, None])
@pytest.mark.parametrize("method", ["fs/read_text_file", "terminal/create", "session/request_permission"])
def test_a_session_that_was_never_begun_has_no_files(
    session: Any, method: str, ends: Ends, root: Path
) -> None:
    params = {**asks(root), "path": str(root / "src/app.py"), "command": "ls", "sessionId": session}
    ends.agent.request(method, params)
    assert ends.agent.get()["error"]["code"] == -32602
    ends.settle()


def test_an_answer_to_the_agents_own_request_is_none_to_ours(ends: Ends, root: Path) -> None:
    """An agent asks something else under the id of its permission request, and under one like ours."""
    ends.agent.request("session/request_permission", asks(root), 7)
    question = ends.editor.get()
    for name in (7, "ringfence-1"):
        ends.agent.request("elicitation/create", {}, name)
        other = ends.editor.get()
        assert other["id"] == name
        ends.editor.answer(other, selected("once"))
    # The first is the agent's own; the second has a form that only ours have, and no question is open.
    assert ends.agent.get() == {"jsonrpc": "2.0", "id": 7, "result": selected("once")}
    ends.settle()
    ends.editor.answer(question, selected("no"))
    assert ends.agent.get()["result"]["outcome"]["optionId"] == "no"


def test_cancelling_answers_what_is_open(ends: Ends, root: Path) -> None:
    ends.agent.request("session/request_permission", asks(root), 1)
    ends.agent.request(
        "fs/write_text_file", {"sessionId": SESSION, "path": str(root / "docs/b.md"), "content": "x"}, 2
    )
    ends.agent.request(
        "fs/write_text_file", {"sessionId": SESSION, "path": str(root / "src/app.py"), "content": "x"}, 3
    )
    questions = [ends.editor.get(), ends.editor.get()]
    ends.editor.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": SESSION}})
    heard = {message.get("id"): message for message in (ends.agent.get() for _ in range(4))}
    assert heard[None]["method"] == "session/cancel"
    assert heard[1]["result"] == {"outcome": {"outcome": "cancelled"}}
    assert heard[2]["error"]["data"]["ringfence"]["code"] in ("approval_required", "cancelled")
    assert heard[3]["error"]["code"] == -32800
    assert (root / "docs/b.md").read_text() == "really\n"
    assert (root / "src/app.py").read_text() == "one\ntwo\n"
    assert ends.editor.get()["params"]["update"]["status"] == "failed"
    for question in questions:  # too late
        ends.editor.answer(question, selected(question["params"]["options"][0]["optionId"]))
    ends.settle()
    ends.agent.request("session/request_permission", asks(root, "src/app.py"), 4)
    assert ends.agent.get()["result"]["outcome"]["optionId"] == "once"


def test_an_agent_takes_back_its_request(ends: Ends, root: Path) -> None:
    ends.agent.request("session/request_permission", asks(root), "a")
    question = ends.editor.get()
    ends.agent.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "a"}})
    assert ends.editor.get()["params"] == {"requestId": question["id"]}
    ends.editor.answer(question, {"outcome": {"outcome": "cancelled"}})
    assert ends.agent.get()["result"] == {"outcome": {"outcome": "cancelled"}}
    ends.agent.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "b"}})
    assert ends.editor.get()["params"] == {"requestId": "b"}


def test_a_session_outside_the_root_does_not_begin(ends: Ends, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", ends.root / "link")
    for cwd in (str(tmp_path / "elsewhere"), str(ends.root / "link"), str(ends.root / "none"), ".", 1):
        ends.editor.request("session/new", {"cwd": cwd, "mcpServers": []})
        assert "error" in ends.editor.get()
        ends.editor.request("session/load", {"sessionId": "old", "cwd": cwd, "mcpServers": []})
        assert "error" in ends.editor.get()
    ends.settle()


def test_each_session_is_its_own(ends: Ends, root: Path) -> None:
    """Another directory, another name in the records, and another person's answer."""
    ends.new("second", str(root / "src"))
    ends.editor.request("session/load", {"sessionId": "third", "cwd": str(root), "mcpServers": []})
    ends.agent.answer(ends.agent.get(), {})
    ends.editor.get()
    for name in (SESSION, "second", "third"):
        call = {"toolCallId": "read", "kind": "read", "rawInput": {"path": "app.py"}}
        ends.agent.request(
            "session/request_permission", {"sessionId": name, "options": OPTIONS, "toolCall": call}
        )
        assert ends.agent.get()["result"]["outcome"]["optionId"] == "once"
    for name in (SESSION, "second"):
        ends.agent.request("session/request_permission", asks(root, session=name), name)
        question = ends.editor.get()
        assert question["params"]["sessionId"] == name
        ends.editor.answer(question, selected("no" if name == "second" else "always"))
        option = ends.agent.get()["result"]["outcome"]["optionId"]
        assert option == ("no" if name == "second" else "once")
    ends.editor.request("session/close", {"sessionId": "second"})
    ends.agent.answer(ends.agent.get(), {})
    ends.editor.get()
    ends.agent.request("session/request_permission", asks(root, session="second"))
    assert ends.agent.get()["error"]["code"] == -32602
    ends.close()
    found = records(root)
    assert len({record["session"] for record in found}) == 3
    assert [record["paths"] for record in found[:3]] == [["app.py"], ["src/app.py"], ["app.py"]]


def test_a_session_that_the_agent_refuses_leaves_nothing(ends: Ends) -> None:
    request = ends.editor.request("session/new", {"cwd": str(ends.root), "mcpServers": []})
    ends.agent.send(
        {"jsonrpc": "2.0", "id": ends.agent.get()["id"], "error": {"code": -32000, "message": ""}}
    )
    assert ends.editor.get()["id"] == request
    assert list(ends.proxy.desk._sessions) == [SESSION]


def test_a_policy_that_does_not_load_begins_no_session(ends_of: Callable[..., Ends], root: Path) -> None:
    (root / "ringfence.yaml").write_text("version: 1\nrules: {fly: allow}\n")
    ends = ends_of()
    ends.editor.request("session/new", {"cwd": str(root), "mcpServers": []})
    assert "policy does not load" in ends.editor.get()["error"]["message"]
    ends.settle()


def test_a_policy_that_stops_loading_keeps_the_last_one(ends: Ends, root: Path) -> None:
    (root / "ringfence.yaml").write_text("version: 1\nrules: {fly: allow}\n")
    ends.agent.request("session/request_permission", asks(root, "secret.txt"))
    assert ends.agent.get()["result"]["outcome"]["optionId"] == "no"
    ends.agent.request("session/request_permission", asks(root, "src/app.py"))
    assert ends.agent.get()["result"]["outcome"]["optionId"] == "once"


def test_a_change_that_was_never_asked_about_is_noticed(ends: Ends, root: Path) -> None:
    def report(name: str, call: str, status: str, **more: Any) -> None:
        update = {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status, "kind": "edit"}
        update |= {"locations": [{"path": str(root / name)}]} | more
        params = {"sessionId": SESSION, "update": update}
        ends.agent.send({"jsonrpc": "2.0", "method": "session/update", "params": params})
        assert ends.editor.get()["params"] == params

    report("src/app.py", "never asked", "in_progress")
    report("src/app.py", "never asked", "completed")
    report("src/app.py", "never asked", "completed")
    report("src/app.py", "failed", "failed")
    report("src/app.py", "read", "completed", kind="read")
    ends.agent.request("session/request_permission", asks(root, "src/app.py"))
    ends.agent.get()
    report("src/app.py", "t", "completed")
    path = str(root / "src/new.py")
    ends.agent.request("fs/write_text_file", {"sessionId": SESSION, "path": path, "content": "x"})
    ends.agent.get()
    report("src/new.py", "ours", "completed")
    ends.close()
    found = [record for record in records(root) if record["outcome"] == "observed"]
    assert [record["paths"] for record in found] == [["src/app.py"]]
    assert fits(found[0], {"event": "permission", "tool": "edit_file", "decision": {"effect": "allow"}})


@pytest.mark.parametrize("side", ["agent", "editor"])
def test_the_end_of_one_side_is_the_end(side: str, ends: Ends, root: Path) -> None:
    ends.agent.request("session/request_permission", asks(root))
    ends.editor.get()
    ends.agent.request(
        "fs/write_text_file", {"sessionId": SESSION, "path": str(root / "docs/b.md"), "content": "x"}
    )
    ends.editor.get()
    getattr(ends, side).close()
    ends.wait()
    assert ends.ended == side
    assert (root / "docs/b.md").read_text() == "really\n"
    assert [one["outcome"] for one in records(root) if one["outcome"] == "granted"] == []
