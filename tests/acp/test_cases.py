"""The cases of permissions.yaml and files.yaml, played between a scripted editor and a scripted agent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.toolkit.approvals.requests import PENDING, Answer
from ringfence.toolkit.session.session import Session
from tests.acp.both_ends import SESSION, Ends, Message, fits, placed, records

HERE = Path(__file__).parent
OPTIONS = [
    {"optionId": "once", "kind": "allow_once", "name": "Once"},
    {"optionId": "always", "kind": "allow_always", "name": "Always"},
    {"optionId": "no", "kind": "reject_once", "name": "No"},
    {"optionId": "never", "kind": "reject_always", "name": "Never"},
]


def cases(name: str) -> list[Any]:
    found = yaml.safe_load((HERE / name).read_text(encoding="utf-8"))
    assert len(found) > 20
    return [pytest.param(case, id=case["case"]) for case in found]


def selected(option: str) -> Message:
    return {"outcome": {"outcome": "selected", "optionId": option}}


def permission(ends: Ends, case: Message, call: Message) -> Any:
    """Send a permission request and return its id."""
    params = case.get("params", {"toolCall": {"toolCallId": "t", **call}})
    params |= {"sessionId": SESSION, "options": case.get("options", OPTIONS)}
    return ends.agent.request("session/request_permission", params)


def outcomes(root: Path) -> list[str]:
    return [record["outcome"] for record in records(root)]


def grant_all(root: Path) -> None:
    with Session(root, None, state=root.parent / "state") as session:
        for request in session.approvals.listing():
            assert request.state == PENDING
            session.approvals.answer(request.id, Answer(True, by="somebody"))


@pytest.mark.parametrize("case", cases("permissions.yaml"))
def test_permission(case: Message, root: Path, ends_of: Callable[..., Ends]) -> None:
    case = placed(case, root)
    ends = ends_of(case.get("ask", "client"))
    ends.begin(version=case.get("version", 1))
    for update in case.get("before", []):
        ends.agent.send(
            {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": SESSION, "update": update}}
        )
        assert ends.editor.get()["params"]["update"] == update
    asked = permission(ends, case, case.get("asks", {}))
    _play(ends, case, asked, case.get("person"), case["gets"])
    if case.get("grant"):
        grant_all(root)
    if "again" in case:
        asked = permission(ends, case, case["again"])
        _play(ends, case, asked, case.get("again_person"), case["again_gets"])
    ends.settle()
    ends.close()
    assert outcomes(root) == case["log"]


def _play(ends: Ends, case: Message, asked: Any, person: Any, wanted: Message) -> None:
    if person is not None:
        question = ends.editor.get()
        assert question["method"] == "session/request_permission"
        assert question["id"] != asked, "an agent could answer for the person"
        if "offered" in case:
            assert [option["optionId"] for option in question["params"]["options"]] == case["offered"]
        says = case.get("says", person)
        ends.editor.answer(question, selected(says) if isinstance(says, str) else says)
    answer = ends.agent.get()
    assert answer["id"] == asked
    assert fits(answer["result"], wanted), answer


@pytest.mark.parametrize("case", cases("files.yaml"))
def test_file_call(case: Message, root: Path, ends_of: Callable[..., Ends]) -> None:
    case = placed(case, root)
    ends = ends_of(case.get("ask", "client"))
    ends.begin(reads=case.get("editor") == "reads")
    if "first" in case:
        ends.agent.request("fs/read_text_file", {"sessionId": SESSION, **case["first"]})
        assert "result" in ends.agent.get()
    if "asks" in case:
        asked = permission(ends, {}, case["asks"])
        _play(ends, {}, asked, "once", selected("once"))
    method = "fs/read_text_file" if "reads" in case else "fs/write_text_file"
    params = {"sessionId": SESSION, **case.get("reads", case.get("writes"))}
    sent = ends.agent.request(method, params, "a call")
    if "editor_gets" in case:
        question = ends.editor.get()
        assert fits(question, case["editor_gets"]), question
        ends.editor.answer(question, case["editor_says"])
    if "person" in case:
        _answer_for_ringfence(ends, case["person"])
    answer = ends.agent.get()
    assert answer["id"] == sent
    assert fits(answer, case["gets"]), answer
    ends.settle()
    ends.close()
    if "file" in case:
        name, content = case["file"]
        found = (root / name).read_bytes().decode() if (root / name).exists() else None
        assert found == content
    if "log" in case:
        assert outcomes(root) == case["log"]


def _answer_for_ringfence(ends: Ends, person: str) -> None:
    """Answer a question of Ringfence's own, and see that it ends in the editor."""
    question = ends.editor.get()
    assert question["method"] == "session/request_permission"
    call = question["params"]["toolCall"]
    ends.editor.answer(
        question, {"outcome": {"outcome": "cancelled"}} if person == "cancelled" else selected(person)
    )
    update = ends.editor.get()["params"]["update"]
    assert update == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call["toolCallId"],
        "status": "completed" if person.startswith("allow") else "failed",
    }
