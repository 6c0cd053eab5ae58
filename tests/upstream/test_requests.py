"""What a person reads before answering a request for another server's call: nothing that is not true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence import Session
from ringfence.toolkit.approvals.requests import SESSION, Answer, Request
from ringfence.toolkit.granting.effects import reach_of
from ringfence.toolkit.granting.losses import kind, loss, loss_line, needs_second_look
from tests.upstream.answering import Answering, servers, tool

POLICY = """\
version: 1
upstreams:
  s:
    tools:
      show: {path: read}
      put: {path: write}
      drop: {path: {action: delete, below: tree}}
"""


UNKNOWN = "✕ the server s does this; what it changes CANNOT BE RESTORED"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    root = tmp_path / "ws"
    (root / "d").mkdir(parents=True)
    for name in ("a", "d/x", "d/y"):
        (root / name).write_text("x", encoding="utf-8")
    (root / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
    with Session(str(root), str(root / "ringfence.yaml"), state=":memory:") as found:
        found.forward_to(servers(Answering([tool(name) for name in ("show", "put", "drop", "act")])))
        yield found


def asked(session: Session, name: str, **arguments: Any) -> Request:
    result = session.call({"tool": f"s.{name}", "arguments": arguments})
    return session.approvals.get(result.data["approval"]["id"])


@pytest.mark.parametrize(
    ("name", "arguments", "says", "does", "twice"),
    [
        ("show", {"path": "a"}, "· nothing is deleted or replaced", "reads", False),
        (
            "put",
            {"path": "new"},
            "✕ the server s does this; what it changes CANNOT BE RESTORED",
            "calls",
            False,
        ),
        ("put", {"path": "a"}, "✕ replaces 1 file: a; CANNOT BE RESTORED: a", "replaces", True),
        ("drop", {"path": "a"}, "✕ deletes 1 file: a; CANNOT BE RESTORED: a", "deletes", True),
        (
            "drop",
            {"path": "d"},
            "✕ deletes the whole directory d (2 files); CANNOT BE RESTORED: d",
            "deletes",
            True,
        ),
        ("act", {}, UNKNOWN, "calls", False),
    ],
)
def test_the_loss_is_told_as_it_is(
    session: Session, name: str, arguments: dict[str, Any], says: str, does: str, twice: bool
) -> None:
    request = asked(session, name, **arguments)
    line, _ = loss_line(request)
    assert line.startswith(says)
    assert "undo can" not in line
    assert (kind(request), needs_second_look(request)) == (does, twice)
    assert loss(request).rank == (0 if name != "show" else 4)
    assert "cannot be undone" in request.preview


def test_a_grant_for_the_session_says_what_it_opens(session: Session) -> None:
    request = asked(session, "put", path="new")
    found = reach_of(session, request, Answer(True, SESSION))
    assert found is not None
    assert (found.paths, found.judged) == (0, True), "new files only: none of them is there yet"
    over = reach_of(session, asked(session, "put", path="a"), Answer(True, SESSION))
    assert over is not None
    assert over.paths >= 3


def test_a_grant_for_the_session_covers_the_tool_alone(session: Session) -> None:
    request = asked(session, "act")
    session.approvals.answer(request.id, Answer(True, SESSION, confirmed=True))
    assert session.call({"tool": "s.act", "arguments": {"n": 1}}).ok
    assert session.call({"tool": "s.act", "arguments": {"file": "x"}}).status == "approval_required"
    assert session.call({"tool": "s.show", "arguments": {"path": "a"}}).status == "approval_required"


def test_a_grant_does_not_outlive_a_changed_definition(tmp_path: Path) -> None:
    transport = Answering([tool("act")])
    behind = servers(transport)
    with Session(str(tmp_path), None, state=":memory:") as session:
        session.forward_to(behind)
        request = asked(session, "act")
        session.approvals.answer(request.id, Answer(True))
        transport.tools = [tool("act", description="does something else now")]
        transport.say("notifications/tools/list_changed")
        again = session.call({"tool": "s.act", "arguments": {}})
        assert again.error is not None
        assert again.error["code"] == "approval_stale"
        assert transport.calls == []


def test_a_dry_run_sends_nothing(tmp_path: Path) -> None:
    transport = Answering([tool("act")])
    policy = tmp_path / "ringfence.yaml"
    policy.write_text("version: 1\nupstreams: {s: {}}\nrules: {s.act: allow}\n", encoding="utf-8")
    with Session(str(tmp_path), str(policy), state=":memory:", dry_run=True) as session:
        session.forward_to(servers(transport))
        result = session.call({"tool": "s.act", "arguments": {}})
    assert result.ok
    assert "nothing was changed" in result.content
    assert transport.calls == []
