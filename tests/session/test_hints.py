"""What a decision advises: only what helps with the answer that it comes with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit import Session
from ringfence.toolkit.approvals.requests import Answer

GRANT = "a person has to grant this; send the same call again once it is granted"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "f").write_text("x")
    return tmp_path / "ws"


@pytest.fixture
def session(root: Path) -> Iterator[Session]:
    with Session(root, state=":memory:") as opened:
        yield opened


def delete(session: Session, path: str) -> Any:
    return session.call({"tool": "delete", "arguments": {"path": path}})


def test_a_grant_is_advised_only_where_it_is_waited_for(session: Session) -> None:
    assert delete(session, "nothing").decision["hint"] == ""
    asked = delete(session, "f")
    assert asked.decision["hint"] == GRANT
    session.approvals.answer(asked.data["approval"]["id"], Answer(False))
    refused = delete(session, "f")
    assert (refused.error["code"], refused.decision["hint"]) == ("approval_refused", "")
    session.approvals.reopen(asked.data["approval"]["id"])
    session.approvals.answer(asked.data["approval"]["id"], Answer(True))
    assert delete(session, "f").decision["hint"] == ""


def test_nor_where_nobody_can_be_asked(root: Path) -> None:
    with Session(root, state=":memory:", ask="deny") as session:
        assert delete(session, "f").decision["hint"] == ""
    with Session(root, state=":memory:", dry_run=True) as session:
        assert delete(session, "f").decision["hint"] == GRANT


@pytest.mark.parametrize("path", [".", "./", "f/.."])
def test_the_root_is_the_root_whether_or_not_it_has_a_policy(root: Path, path: str) -> None:
    with Session(root, state=":memory:") as without:
        assert delete(without, path).error["code"] == "root_protected"
    (root / "ringfence.yaml").write_text("version: 1\n")
    with Session(root, root / "ringfence.yaml", state=":memory:") as session:
        error = delete(session, path).error
        assert (error["code"], error["message"]) == (
            "root_protected",
            "The project root itself cannot be changed",
        )
