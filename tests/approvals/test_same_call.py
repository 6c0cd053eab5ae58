"""When a call is the one that was granted: neither a reason's wording nor a path's spelling counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit import Session
from ringfence.toolkit.approvals.requests import Answer, arguments_digest
from ringfence.toolkit.audit import log as audit

POLICY = 'version: 1\nrules: {"*": ask, read: allow}\n'
ASKED = {"path": "d", "description": "Remove old dir"}
NEW = {"path": "n", "content": "x"}
MOVED = {"source": "d/f", "destination": "g"}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    (tmp_path / "ws" / "d").mkdir(parents=True)
    (tmp_path / "ws" / "d" / "f").write_text("x\n")
    (tmp_path / "ws" / "other").mkdir()
    (tmp_path / "policy.yaml").write_text(POLICY)
    with Session(tmp_path / "ws", tmp_path / "policy.yaml", state=":memory:") as opened:
        yield opened


def ask(session: Session, tool: str, arguments: dict[str, Any]) -> str:
    result = session.call({"tool": tool, "arguments": arguments})
    assert result.status == "approval_required", result.content
    return str(result.data["approval"]["id"])


def spellings(root: Path) -> list[dict[str, Any]]:
    paths = ["d", "d/", "./d", "d/.", "other/../d", str(root / "ws" / "d"), f"{root / 'ws'}//d/"]
    reasons: list[dict[str, Any]] = [{}, {"description": "Removing the old directory"}, {"description": None}]
    return [{"path": path, **reason} for path in paths for reason in reasons]


@pytest.mark.parametrize("n", range(21))
def test_a_grant_fits_the_same_call_in_other_words(session: Session, tmp_path: Path, n: int) -> None:
    session.approvals.answer(ask(session, "delete", ASKED), Answer(True))
    result = session.call({"tool": "delete", "arguments": spellings(tmp_path)[n]})
    assert result.ok, result.content


def test_another_wording_asks_no_second_time(session: Session, tmp_path: Path) -> None:
    first = ask(session, "delete", ASKED)
    assert {ask(session, "delete", arguments) for arguments in spellings(tmp_path)} == {first}


def test_a_refusal_holds_in_other_words(session: Session) -> None:
    session.approvals.answer(ask(session, "delete", ASKED), Answer(False))
    result = session.call({"tool": "delete", "arguments": {"path": "d/", "description": "please"}})
    assert result.error is not None and result.error["code"] == "approval_refused"


@pytest.mark.parametrize(
    ("tool", "asked", "sent", "same"),
    [
        ("create_file", NEW, {**NEW, "create_parents": True}, True),
        ("create_file", NEW, {**NEW, "allow_overwrite": None}, True),
        ("create_file", NEW, {**NEW, "content": "y"}, False),
        ("create_file", NEW, {**NEW, "create_parents": False}, False),
        ("create_file", NEW, {**NEW, "path": "m"}, False),
        ("delete", {"path": "d"}, {"path": "other"}, False),
        ("move_file", MOVED, {**MOVED, "source": "./d/f"}, True),
        ("move_file", MOVED, {**MOVED, "destination": "h"}, False),
    ],
)
def test_what_makes_two_calls_the_same(
    session: Session, tool: str, asked: dict[str, Any], sent: dict[str, Any], same: bool
) -> None:
    session.approvals.answer(ask(session, tool, asked), Answer(True))
    assert session.call({"tool": tool, "arguments": sent}).ok is same


def test_the_record_has_both_wordings(session: Session) -> None:
    approval = ask(session, "delete", ASKED)
    session.approvals.answer(approval, Answer(True))
    done = session.call({"tool": "delete", "arguments": {"path": "d", "description": "Tidy"}})
    record = next(one for one in audit.records(session.state) if one.get("call") == done.data["call_id"])
    assert (record["approval"], record["reason"], record["asked_as"]) == (approval, "Tidy", "Remove old dir")


def test_a_request_kept_by_an_older_version_is_asked_again_or_fits(session: Session) -> None:
    """Its row has the digest of the arguments as they were sent, and its body no `same_as`."""
    plain, worded = (
        ask(session, "delete", {"path": "d"}),
        ask(session, "delete", {"path": "other/", "description": "x"}),
    )
    with session.state.transaction() as db:
        for approval, arguments in ((plain, {"path": "d"}), (worded, {"path": "other/", "description": "x"})):
            body = session.approvals.get(approval).to_json()
            del body["same_as"]
            db.execute(
                "UPDATE approval SET request=?, arguments=? WHERE id=?",
                (json.dumps(body), arguments_digest(arguments), approval),
            )
    for approval in (plain, worded):
        session.approvals.answer(approval, Answer(True))
    assert session.call({"tool": "delete", "arguments": {"path": "d", "description": "why"}}).ok
    assert session.call({"tool": "delete", "arguments": {"path": "other"}}).status == "approval_required"


@pytest.mark.parametrize("message", ["m-17", None])
def test_the_record_has_the_message_that_the_channel_names(session: Session, message: str | None) -> None:
    call = {"tool": "read_file", "arguments": {"path": "d/f"}, "id": "1", "message": message}
    assert session.call(call).ok
    assert session.call(json.dumps(call)).ok
    assert [one["message"] for one in audit.records(session.state)] == [message, message]


@pytest.mark.parametrize("message", [7, ["m"], "m" * 257])
def test_a_message_id_is_short_text(session: Session, message: Any) -> None:
    result = session.call({"tool": "read_file", "arguments": {"path": "d/f"}, "message": message})
    assert result.error is not None
    assert (result.error["code"], result.error["where"]) == ("invalid_arguments", "message")
