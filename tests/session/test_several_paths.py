"""Calls with a list of paths: what is recorded of those that failed, what is known afterwards, and grants."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals import Answer
from ringfence.toolkit.call import Result
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory

POLICY: dict[str, Any] = {
    "version": 1,
    "mandatory": [{"ask": "read", "paths": "m*", "content": {"match": "pw-[0-9]+"}, "mask": True}],
    "rules": {
        "write": "allow",
        "read": {"*": "allow", "b*": "ask", "keys/**": {"effect": "deny", "reason": "no"}},
    },
}


@pytest.fixture
def store() -> Any:
    fs = private_memory()
    for path, text in {"a": "one", "b": "two", "c": "three", "m": "pw-1", "keys/k": "TOP"}.items():
        fs.makedirs(f"/w/{path}".rpartition("/")[0], exist_ok=True)
        fs.pipe_file(f"/w/{path}", text.encode())
    return fs


@pytest.fixture
def session(store: Any) -> Iterator[Session]:
    with Session("/w", Policy.loads(json.dumps(POLICY)), fs=store, state=":memory:") as opened:
        yield opened


def call(session: Session, *paths: str) -> Result:
    return session.call({"tool": "read_files", "arguments": {"paths": list(paths)}})


def last_record(session: Session) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        session.state.rows("SELECT body FROM audit ORDER BY seq DESC LIMIT 1")[0][0]
    )
    return found


def test_the_record_has_what_was_refused_and_why(session: Session) -> None:
    result = call(session, "a", "keys/k", "nope", "keys/none")
    record = last_record(session)
    assert result.ok and result.decision is not None and result.decision["effect"] == "allow"
    assert (record["status"], record["outcome"]) == ("ok", "answered")
    assert record["paths"] == ["a", "keys/k", "nope", "keys/none"]
    assert (record["decision"]["effect"], record["decision"]["path"]) == ("deny", "keys/k")
    assert record["decision"]["rule"]["pattern"] == "keys/**"
    assert record["failures"] == 3
    assert [(row["path"], row["code"]) for row in record["failed"]] == [
        ("keys/k", "denied_by_policy"),
        ("nope", "not_found"),
        ("keys/none", "denied_by_policy"),
    ]


def test_a_call_of_which_all_fails_is_recorded_as_denied(session: Session) -> None:
    assert call(session, "keys/k", "keys/none").status == "denied"
    record = last_record(session)
    assert (record["decision"]["effect"], record["outcome"], record["failures"]) == (
        "deny",
        "denied_by_policy",
        2,
    )


def test_every_file_that_was_read_is_known(session: Session, store: Any) -> None:
    assert call(session, "a", "c").ok
    store.pipe_file("/w/c", b"another")
    edit = {"path": "c", "content": "mine", "allow_overwrite": True}
    result = session.call({"tool": "create_file", "arguments": edit})
    assert result.error is not None and result.error["code"] == "stale_read"


def test_a_grant_is_for_these_files(session: Session) -> None:
    asked = call(session, "a", "b")
    (request,) = session.approvals.listing()
    assert request.asking == ("b",) and request.title == "Read 2 files: a, b"
    session.approvals.answer(asked.data["approval"]["id"], Answer(True, by="ann"))
    assert call(session, "b", "c").status == "approval_required"
    assert "two" in call(session, "./a", "b", "a").content
    assert call(session, "a", "b").status == "approval_required"


def test_no_digest_gives_a_masked_secret_away(session: Session) -> None:
    alone = session.call({"tool": "read_file", "arguments": {"path": "m"}})
    masked, plain = call(session, "m", "a").data["files"]
    assert "pw-1" not in masked["content"]
    assert masked["digest"] == alone.data["digest"] != hashlib.sha256(b"pw-1").hexdigest()
    assert plain["content"] == "one"


def test_in_monitor_mode_nothing_is_left_out() -> None:
    fs = private_memory()
    fs.makedirs("/w")
    fs.pipe_file("/w/a", b"one")
    policy = Policy.loads('{"version": 1, "mode": "monitor", "rules": {"read": "deny"}}')
    with Session("/w", policy, fs=fs, state=":memory:") as session:
        assert "one" in call(session, "a").content
        assert last_record(session)["decision"]["effect"] == "deny"
