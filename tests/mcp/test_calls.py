"""What a `tools/call` of MCP becomes: null arguments, and the client's id of the message."""

from __future__ import annotations

from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit import Session
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.mcp.jsonrpc import HANDSHAKE, MESSAGE_KEY, Peer
from ringfence.toolkit.mcp.server import Flight, Server

POLICY = Policy.loads('version: 1\nrules: {"*": allow}\n')


def sent(session: Session, name: str, arguments: Any, **more: Any) -> Any:
    params = {"name": name, "arguments": arguments, **more}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = Server(session).answer(message, Peer(HANDSHAKE[-1], {}), Flight())
    assert isinstance(answer, dict)
    return answer["result"]


def test_null_means_left_out() -> None:
    with Session("memory://", POLICY, state=":memory:") as session:
        given = {"path": "a", "content": "x", "create_parents": None, "description": None}
        assert not sent(session, "create_file", given)["isError"]
        assert not sent(session, "get_project_root", None)["isError"]


@pytest.mark.parametrize(
    ("meta", "kept"),
    [
        ({MESSAGE_KEY: "m-17"}, "m-17"),
        ({MESSAGE_KEY: 17}, None),
        ({MESSAGE_KEY: "m" * 257}, None),
        ({}, None),
        ("no object", None),
    ],
)
def test_the_message_id_is_put_on_record(meta: Any, kept: str | None) -> None:
    with Session("memory://", POLICY, state=":memory:") as session:
        assert not sent(session, "list_directory", {"path": "."}, _meta=meta)["isError"]
        assert [record["message"] for record in audit.records(session.state)] == [kept]
