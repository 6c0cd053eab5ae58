"""What is really on the wire over streamable HTTP: sessions, streams, questions, cancelling, both eras."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.mcp.jsonrpc import HANDSHAKE
from tests.interop.conftest import ASKED
from tests.serving.conftest import TOKENS, Server

Begin = Callable[..., Server]
BOTH = "application/json, text/event-stream"
ALLOW = {"action": "accept", "content": {"decision": "allow_once"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}


class Client:
    """A client that says and reads each message itself."""

    def __init__(self, server: Server, token: str | None = None) -> None:
        self.server = server
        self.token = token
        self.session: str | None = None
        self.count = 0

    def post(self, message: Any, **headers: str) -> Any:
        known = {"Accept": BOTH} | ({"Mcp_Session_Id": self.session} if self.session else {}) | headers
        return self.server.send("POST", "/mcp", message, token=self.token, **known)

    def greet(self, version: str = "2025-11-25", **capabilities: Any) -> Any:
        params = {
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": ""},
        }
        answer = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.session = answer.headers["mcp-session-id"]
        assert self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}).status == 202
        return answer.json["result"]

    def message(self, method: str, **params: Any) -> Any:
        self.count += 1
        return {"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}

    def call(self, name: str, **arguments: Any) -> Any:
        return self.post(self.message("tools/call", name=name, arguments=arguments)).json["result"]

    @contextmanager
    def stream(self, message: Any, **headers: str) -> Iterator[Iterator[Any]]:
        """The messages of an answer as they come."""
        line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        known = {"Content-Type": "application/json", "Accept": BOTH, **headers}
        token = self.token or self.server.token
        if token:
            known["Authorization"] = f"Bearer {TOKENS[token]}"
        if self.session:
            known["Mcp-Session-Id"] = self.session
        try:
            line.request("POST", "/mcp", json.dumps(message), known)
            response = line.getresponse()
            assert response.getheader("content-type", "").startswith("text/event-stream"), response.read()
            yield (json.loads(row[6:]) for row in response if row.startswith(b"data: "))
        finally:
            line.close()


def stateless(method: str, **params: Any) -> tuple[dict[str, Any], dict[str, str]]:
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**params, "_meta": META}}
    headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": method}
    return message, headers | ({"Mcp_Name": params["name"]} if "name" in params else {})


@pytest.fixture
def served(server: Begin) -> Callable[..., Server]:
    """A server that may put questions to its clients, which has to be asked for."""
    return lambda *more, **options: server("--ask", "client", *more, what="mcp --http", **options)


@pytest.mark.parametrize("tokens", [True, False])
def test_who_is_an_agent_by_its_token_grants_nothing(server: Begin, workspace: Path, tokens: bool) -> None:
    """The same token that asked would carry the answer; so nobody is asked by it unless that was chosen."""
    client = Client(server(what="mcp --http", tokens=tokens))
    client.greet(elicitation={})
    message = client.message("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    answer = client.post(message).json["result"]["structuredContent"]
    assert answer["status"] == "approval_required"
    message, headers = stateless("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    assert client.post(message, **headers).json["result"]["resultType"] == "complete"
    assert (workspace / ASKED[0]).exists()


def test_handshakes_and_sessions(served: Begin) -> None:
    one = served()
    for version in HANDSHAKE:
        client = Client(one)
        assert client.greet(version)["protocolVersion"] == version
        assert not client.call("read_file", path="tmp/a.txt")["isError"]
        names = [tool["name"] for tool in client.post(client.message("tools/list")).json["result"]["tools"]]
        assert "delete" in names
        ended = one.send("DELETE", "/mcp", Mcp_Session_Id=client.session or "")
        assert ended.status == 204
        assert client.post(client.message("ping")).status == 404
    lost = Client(one)
    assert lost.post(lost.message("tools/list")).status == 400
    lost.session = "0" * 32
    assert lost.post(lost.message("tools/list")).status == 404
    assert one.send("GET", "/mcp", Accept="text/event-stream").status == 405


def test_a_session_is_its_tokens_alone(served: Begin, workspace: Path) -> None:
    one = served()
    mine, theirs = Client(one), Client(one, "other")
    mine.greet(elicitation={})
    theirs.session = mine.session
    assert theirs.post(theirs.message("tools/list")).status == 404
    assert one.send("DELETE", "/mcp", token="other", Mcp_Session_Id=mine.session or "").status == 404
    with mine.stream(mine.message("tools/call", name="delete_file", arguments={"path": ASKED[0]})) as said:
        question = next(said)
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": ALLOW}
        assert theirs.post(reply).status == 404
        theirs.greet(elicitation={})
        assert theirs.post(reply).status == 202
        assert (workspace / ASKED[0]).exists()
        assert mine.post(reply).status == 202
        assert not next(said)["result"]["isError"]
    for token in ("alice", "gateway"):
        assert Client(one, token).post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 403
    assert Client(one, "nobody").post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).status == 401


def test_one_agents_conversations_end_none_of_another(served: Begin) -> None:
    one = served()
    mine, theirs = Client(one), Client(one, "other")
    theirs.greet()
    mine.greet()
    for _ in range(100):
        Client(one).greet()
    assert mine.post(mine.message("ping")).status == 404, "its own oldest one made room"
    assert theirs.post(theirs.message("ping")).status == 200


def test_a_question_is_answered_by_a_request_of_its_own(served: Begin, workspace: Path) -> None:
    client = Client(served())
    client.greet(elicitation={})
    message = client.message("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    with client.stream(message) as said:
        question = next(said)
        assert question["method"] == "elicitation/create" and "ask.txt" in question["params"]["message"]
        # Others go on meanwhile, and the id is taken.
        assert not client.call("read_file", path="tmp/a.txt")["isError"]
        assert client.post(message).json["error"]["code"] == -32600
        assert client.post({"jsonrpc": "2.0", "id": question["id"], "result": ALLOW}).status == 202
        result = next(said)
        assert result["id"] == message["id"] and not result["result"]["isError"]
        assert list(said) == []
    assert not (workspace / ASKED[0]).exists()


def test_without_a_stream_or_a_user_nothing_runs(served: Begin, workspace: Path) -> None:
    client = Client(served())
    client.greet(elicitation={})
    message = client.message("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    for headers in ({"Accept": "application/json"}, {"Accept": "application/json;q=1, text/html"}):
        answer = client.post(message, **headers)
        assert answer.json["result"]["structuredContent"]["status"] == "approval_required"
    silent = Client(client.server)
    silent.greet()
    assert silent.call("delete_file", path=ASKED[0])["structuredContent"]["status"] == "approval_required"
    assert client.post(message, Accept="text/html").status == 400
    assert (workspace / ASKED[0]).exists()


def test_a_called_off_question_runs_nothing(served: Begin, workspace: Path) -> None:
    client = Client(served())
    client.greet(elicitation={})
    message = client.message("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    with client.stream(message) as said:
        question = next(said)
        off = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": message["id"]}}
        assert client.post(off).status == 202
        assert next(said)["result"]["isError"]
    assert client.post({"jsonrpc": "2.0", "id": question["id"], "result": ALLOW}).status == 202
    assert (workspace / ASKED[0]).exists()


def test_progress_is_told_on_the_calls_stream(served: Begin, workspace: Path) -> None:
    for number in range(400):
        (workspace / "tmp/sub" / f"{number}.txt").write_text("x" * 2000)
    client = Client(served())
    client.greet()
    message = client.message(
        "tools/call", name="delete", arguments={"path": "tmp/sub"}, _meta={"progressToken": "p"}
    )
    with client.stream(message) as said:
        *notes, result = said
    assert result["id"] == message["id"] and not result["result"]["isError"]
    assert notes and all(note["method"] == "notifications/progress" for note in notes)
    assert {note["params"]["progressToken"] for note in notes} == {"p"}


def test_the_stateless_era_asks_by_its_answer(served: Begin, workspace: Path) -> None:
    client = Client(served())
    message, headers = stateless("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    asked = client.post(message, **headers).json["result"]
    assert asked["resultType"] == "input_required"
    message["params"] |= {"requestState": asked["requestState"], "inputResponses": {"approve": ALLOW}}
    other = Client(client.server, "other").post(message, **headers)
    assert (other.status, other.json["error"]["code"]) == (400, -32602)
    assert (workspace / ASKED[0]).exists()
    done = client.post({**message, "id": 8}, **headers)
    assert done.status == 200 and done.json["result"]["structuredContent"]["status"] == "ok"
    assert not (workspace / ASKED[0]).exists()
    assert client.post({**message, "id": 9}, **headers).json["error"]["code"] == -32602


def test_headers_and_body_of_the_stateless_era_agree(served: Begin) -> None:
    client = Client(served())
    message, headers = stateless("tools/call", name="read_file", arguments={"path": "tmp/a.txt"})
    assert client.post(message, **headers).status == 200
    encoded = "=?base64?cmVhZF9maWxl?="
    assert client.post(message, **headers | {"Mcp_Name": encoded}).status == 200
    for wrong in (
        {"Mcp_Name": "delete"},
        {"Mcp_Name": "=?base64?cmVhZF9maWxm?="},
        {"Mcp_Name": "=?base64?!?="},
        {"Mcp_Method": "tools/list"},
        {"MCP_Protocol_Version": "2025-11-25"},
        {"MCP_Protocol_Version": "2099-01-01"},
    ):
        answer = client.post(message, **headers | wrong)
        assert (answer.status, answer.json["error"]["code"]) == (400, -32020), wrong
    without = {name: text for name, text in headers.items() if name != "Mcp_Method"}
    assert client.post(message, **without).json["error"]["code"] == -32020
    message, headers = stateless("nothing/here")
    assert client.post(message, **headers).status == 404
    message["params"]["_meta"] = {**META, "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    answer = client.post(message, **headers | {"MCP_Protocol_Version": "2099-01-01"})
    assert (answer.status, answer.json["error"]["code"]) == (400, -32022)
    for body in (
        b"{",
        b"[]",
        b"7",
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
    ):
        answer = client.post(body, **headers)
        assert answer.status == 400 and answer.json["id"] is None


def test_a_signal_ends_what_waits_for_an_answer(served: Begin, workspace: Path) -> None:
    one = served()
    client = Client(one)
    client.greet(elicitation={})
    ended: list[float] = []
    with client.stream(
        client.message("tools/call", name="delete_file", arguments={"path": ASKED[0]})
    ) as said:
        next(said)
        stopping = threading.Thread(target=lambda: ended.append(one.stop()))
        began = time.monotonic()
        stopping.start()
        assert next(said)["result"]["isError"]
    stopping.join(30)
    assert ended == [0] and time.monotonic() - began < 25
    assert (workspace / ASKED[0]).exists()
