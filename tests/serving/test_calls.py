"""Calls, verdicts and approvals over HTTP: what is answered, to whom, and what is done."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ringfence.policy import Need, Policy
from tests.interop.conftest import ASKED, command, environment
from tests.serving.conftest import TOKENS, Server, serve, tokens_file

Begin = Callable[..., Server]


def schema_for(described: Any, path: str, method: str, status: int) -> dict[str, Any]:
    answer = described["paths"][path][method]["responses"][str(status)]
    found = answer["content"]["application/json"]["schema"]
    return {**found, "components": described["components"]}


def test_the_description_is_valid_and_answers_fit_it(server: Begin) -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    one = server()
    described = one.send("GET", "/openapi.json", token="nobody").json
    validator.validate(described)
    assert set(described["paths"]) >= {"/call", "/decide", "/approvals", "/healthz", "/metrics"}
    held = one.call("delete_file", path=ASKED[0])["data"]["approval"]["id"]
    question = {"what": "delete_file", "path": "main.go"}
    seen = [
        ("/call", "post", one.send("POST", "/call", {"tool": "read_file", "arguments": {"path": "nope"}})),
        ("/call", "post", one.send("POST", "/call", {"tool": "delete", "arguments": {"path": "main.go"}})),
        ("/call", "post", one.send("POST", "/call", b"{}", Content_Type="text/plain")),
        ("/call", "post", one.send("POST", "/call", {}, token="nobody")),
        ("/call", "post", one.send("POST", "/call", {}, token="alice")),
        ("/decide", "post", one.send("POST", "/decide", question)),
        ("/decide", "post", one.send("POST", "/decide", {"what": "fly", "path": "x"})),
        ("/approvals", "get", one.send("GET", "/approvals?all=true", token="alice")),
        ("/approvals/{id}", "get", one.send("GET", f"/approvals/{held}")),
        ("/approvals/{id}", "get", one.send("GET", "/approvals/nope")),
        ("/approvals/{id}", "post", one.send("POST", f"/approvals/{held}", {"decision": "grant"})),
        (
            "/approvals/{id}",
            "post",
            one.send("POST", f"/approvals/{held}", {"decision": "grant"}, token="alice"),
        ),
        ("/healthz", "get", one.send("GET", "/healthz", token="nobody")),
    ]
    statuses = []
    for path, method, answer in seen:
        jsonschema.validate(answer.json, schema_for(described, path, method, answer.status))
        statuses.append(answer.status)
    assert statuses == [200, 200, 415, 401, 403, 200, 400, 200, 200, 404, 403, 200, 200]


def test_calls_are_those_of_the_tokens_agent(server: Begin, workspace: Path) -> None:
    one = server()
    made = one.call("create_file", path="tmp/made.txt", content="here\n")
    assert made["status"] == "ok" and (workspace / "tmp/made.txt").read_text() == "here\n"
    assert one.call("read_file", token="other", path="tmp/made.txt")["status"] == "ok"
    log = subprocess.run(
        [*command(workspace)[:3], "log", "--json", *command(workspace)[5:9]],
        check=True,
        capture_output=True,
        env=environment(),
    )
    records = [json.loads(line) for line in log.stdout.splitlines() if line.strip()]
    records = records[0] if records and isinstance(records[0], list) else records
    sessions = {record["agent"]: record["session"] for record in records if record.get("event") == "call"}
    assert set(sessions) == {"coder", "other"}
    assert sessions["coder"] != sessions["other"]


def test_what_is_no_call_is_answered_as_one_that_failed(server: Begin) -> None:
    one = server()
    for body in [b"", b"[]", b"{", b'{"tool": 1}', b'{"tool": "read_file", "tool": "x"}', b"\xff", b"null"]:
        answer = one.send("POST", "/call", body)
        assert answer.status == 200, body
        assert answer.json["error"]["code"] in ("invalid_json", "invalid_arguments"), body


def test_an_agents_token_decides_nothing(server: Begin, workspace: Path) -> None:
    one = server()
    held = one.call("delete_file", path=ASKED[0])["data"]["approval"]["id"]
    for token in ("coder", "other", "gateway"):
        answer = one.send("POST", f"/approvals/{held}", {"decision": "grant"}, token=token)
        assert (answer.status, answer.json["error"]["code"]) == (403, "forbidden")
    assert one.call("delete_file", path=ASKED[0])["status"] == "approval_required"
    assert [a["id"] for a in one.send("GET", "/approvals").json["approvals"]] == [held]
    assert one.send("GET", "/approvals", token="other").json == {"approvals": []}
    assert one.send("GET", f"/approvals/{held}", token="other").status == 404
    granted = one.send("POST", f"/approvals/{held}", {"decision": "grant"}, token="alice")
    assert (granted.status, granted.json["state"]) == (200, "granted")
    assert one.call("delete_file", token="other", path=ASKED[0])["status"] == "approval_required"
    assert (workspace / ASKED[0]).exists()
    assert one.call("delete_file", path=ASKED[0])["status"] == "ok"
    assert not (workspace / ASKED[0]).exists()
    again = one.send("POST", f"/approvals/{held}", {"decision": "refuse"}, token="alice")
    assert (again.status, again.json["error"]["code"]) == (409, "approval_stale")


def test_an_agent_without_a_token_decides_nothing_either(server: Begin) -> None:
    one = server(tokens=False)
    held = one.call("delete_file", path=ASKED[0])["data"]["approval"]["id"]
    assert one.send("POST", f"/approvals/{held}", {"decision": "grant"}).status == 403


WRONG_ANSWERS: list[Any] = [
    {},
    {"decision": "yes"},
    {"decision": "grant", "scope": "for ever"},
    {"decision": "grant", "scope": "pattern"},
    {"decision": "grant", "scope": "pattern", "pattern": "other/**", "until": 9e9},
    {"decision": "grant", "until": "soon"},
    {"decision": "grant", "sure": True},
    [],
]


def test_answers_that_are_none(server: Begin) -> None:
    one = server()
    held = one.call("delete_file", path=ASKED[0])["data"]["approval"]["id"]
    for fields in WRONG_ANSWERS:
        assert one.send("POST", f"/approvals/{held}", fields, token="alice").status == 400, fields
    assert one.send("GET", f"/approvals/{held}").json["state"] == "pending"


def test_verdicts_are_the_policys(server: Begin, workspace: Path) -> None:
    one, policy = server(), Policy.load(workspace / "ringfence.yaml")
    for action in ("read", "write", "delete"):
        for path in ("main.go", "tmp/a.txt", "ask.txt", "secret/key", "docs/new.md"):
            answer = one.send(
                "POST", "/decide", {"what": action, "path": path, "agent": "x"}, token="gateway"
            )
            wanted = policy.decide("x", action, [Need(action, path, False)])
            assert answer.json["decision"]["effect"] == str(wanted.effect), (action, path)
            assert answer.json["policy"] == policy.revision


def test_a_verdict_on_a_tree_is_that_of_all_that_is_in_it(server: Begin, workspace: Path) -> None:
    (workspace / "tmp/sub/x.go").write_text("")
    one = server()
    answer = one.send("POST", "/decide", {"what": "delete", "path": "tmp"}).json
    assert (answer["decision"]["effect"], answer["decision"]["path"]) == ("deny", "tmp/sub/x.go")
    (workspace / "ringfence.yaml").write_text('version: 1\nrules: {"*": allow, read: {"tmp/sub/**": deny}}\n')
    assert (
        one.send("POST", "/decide", {"what": "delete", "path": "tmp"}).json["decision"]["effect"] == "allow"
    )


def test_an_agent_asks_for_itself_and_learns_no_name_it_may_not_read(server: Begin, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(
        'version: 1\nrules: {read: {"*": allow, "*.go": deny}, delete: {"*": allow, "*.go": deny}}\n'
    )
    (workspace / "tmp/sub/x.go").write_text("")
    one = server()
    question = {"what": "delete", "path": "tmp"}
    assert one.send("POST", "/decide", question).json["decision"]["path"] == "tmp"
    assert one.send("POST", "/decide", question, token="alice").json["decision"]["path"] == "tmp/sub/x.go"
    assert one.send("POST", "/decide", {**question, "agent": "coder/helper"}).status == 200
    for other in ("other", "coderx", "", "cod"):
        assert one.send("POST", "/decide", {**question, "agent": other}).status == 403


def test_a_verdict_where_each_kind_of_write_is_denied_shows_no_agent_what_is_there(
    server: Begin, workspace: Path
) -> None:
    (workspace / "ringfence.yaml").write_text(
        """\
version: 1
rules:
  "*": allow
  read: {"*": allow, "secret/**": deny}
  write.create: {"secret/**": {effect: deny, reason: nothing is made here}}
  write.replace: {"secret/**": {effect: deny, reason: nothing is replaced here}, "docs/**": deny}
"""
    )
    (workspace / "docs").mkdir(exist_ok=True)
    (workspace / "docs/old.md").write_text("")
    one = server()

    def asked(path: str, token: str = "coder") -> dict[str, Any]:
        sent = one.send("POST", "/decide", {"what": "create_file", "path": path}, token=token)
        return {**sent.json["decision"], "path": ""}

    assert asked("secret/key") == asked("secret/none")
    assert asked("secret/key", "alice")["reason"] == "nothing is replaced here"
    assert (asked("docs/old.md")["effect"], asked("docs/new.md")["effect"]) == ("deny", "allow")


WRONG_QUESTIONS: list[tuple[Any, str]] = [
    ({"what": "fly", "path": "x"}, "invalid_arguments"),
    ({"what": "move_file", "path": "x"}, "invalid_arguments"),
    ({"what": "read", "path": "../x"}, "outside_root"),
    ({"what": "write", "path": "ringfence.yaml"}, "protected_path"),
    ({"what": "read", "path": "x\0"}, "path_invalid"),
    ({"what": "read"}, "invalid_arguments"),
]


def test_questions_that_no_policy_answers(server: Begin) -> None:
    one = server()
    for fields, code in WRONG_QUESTIONS:
        answer = one.send("POST", "/decide", fields)
        assert (answer.status, answer.json["error"]["code"]) == (400, code), fields


def test_metrics_count_what_was_answered(server: Begin) -> None:
    one = server()
    one.call("read_file", path="tmp/a.txt")
    one.call("read_file", path="tmp/a.txt")
    one.call("delete", path="main.go")
    one.call('x"}\n', path="main.go")
    one.send("POST", "/call", {}, token="nobody")
    one.send("POST", "/decide", {"what": "read", "path": "secret/key"}, token="gateway")
    answer = one.send("GET", "/metrics", token="gateway")
    lines = answer.body.decode().splitlines()
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'ringfence_calls_total{status="ok",tool="read_file"} 2' in lines
    assert 'ringfence_calls_total{status="denied",tool="delete"} 1' in lines
    assert 'ringfence_calls_total{status="error",tool="unknown"} 1' in lines
    assert 'ringfence_decisions_total{effect="allow"} 2' in lines
    assert 'ringfence_decisions_total{effect="deny"} 2' in lines
    assert 'ringfence_refused_total{code="unauthorized"} 1' in lines
    assert 'ringfence_call_seconds_bucket{tool="read_file",le="+Inf"} 2' in lines
    assert 'ringfence_call_seconds_count{tool="read_file"} 2' in lines
    assert one.send("GET", "/metrics").status == 403
    for line in lines:
        assert line.startswith("# ") or (len(line.rsplit(" ", 1)) == 2 and float(line.rsplit(" ", 1)[1]) >= 0)


def test_a_client_that_leaves_leaves_the_truth(server: Begin, workspace: Path) -> None:
    """The call of a client that hung up is either not begun or whole, and on record as what it was."""
    one = server()
    for number in range(12):
        body = json.dumps({"tool": "create_file", "arguments": {"path": f"tmp/n{number}", "content": "x"}})
        with socket.create_connection(("127.0.0.1", one.port)) as line:
            head = (
                f"POST /call HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKENS['coder']}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            line.sendall(head.encode() + body.encode())
    assert one.call("read_file", path="tmp/a.txt")["status"] == "ok"
    found = {path.name for path in (workspace / "tmp").glob("n*")}
    done = subprocess.run(
        [*command(workspace)[:3], "log", "--json", "--tool", "create_file", *command(workspace)[5:9]],
        check=True,
        capture_output=True,
        env=environment(),
    ).stdout.decode()
    records = [json.loads(line) for line in done.splitlines()]
    made = {path for record in records if record["outcome"] == "done" for path in record["paths"]}
    assert made == {f"tmp/{name}" for name in found}
    assert {record["outcome"] for record in records} <= {"done", "cancelled"}


def test_a_signal_ends_it_when_what_has_begun_is_finished(workspace: Path, server: Begin) -> None:
    one = server()
    one.call("read_file", path="tmp/a.txt")
    began = time.monotonic()
    assert one.stop() == 0
    assert time.monotonic() - began < 20


def test_usage(workspace: Path) -> None:
    def status(*more: str) -> tuple[int, str]:
        done = subprocess.run(serve(workspace, *more), capture_output=True, env=environment(), timeout=60)
        return done.returncode, done.stderr.decode()

    tokens = tokens_file(workspace)
    assert status("--host", "0.0.0.0")[0] == 2
    assert status("--host", "0.0.0.0", "--tokens", tokens)[0] == 2
    assert status("--tokens", str(workspace / "nope"))[0] == 2
    Path(tokens).chmod(0o644)
    assert "chmod 600" in status("--tokens", tokens)[1]
    Path(tokens).write_text("agent coder short\n")
    Path(tokens).chmod(0o600)
    assert f"{tokens}:1: a token is at least" in status("--tokens", tokens)[1]
    (workspace / "ringfence.yaml").write_text("version: 7\n")
    assert status()[0] == 2
    assert signal.SIGTERM


def test_images_are_given_where_they_are_asked_for(server: Begin, workspace: Path) -> None:
    (workspace / "dot.gif").write_bytes(b"GIF89a\x01\0\x01\0")
    one = server()
    described = one.send("GET", "/openapi.json", token="nobody").json
    body = {"tool": "read_file", "arguments": {"path": "dot.gif"}}
    plain, asked = (one.send("POST", f"/call{query}", body) for query in ("", "?media=true"))
    assert "media" not in plain.json and plain.json["data"]["attached"]
    assert asked.json["media"] == [{"path": "dot.gif", "mime_type": "image/gif", "data": "R0lGODlhAQABAA=="}]
    jsonschema.validate(asked.json, schema_for(described, "/call", "post", 200))
