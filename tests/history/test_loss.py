"""What nothing here can keep is never taken away without asking, and the question says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policy import Policy
from toolkit.approvals import Answer
from toolkit.backends import BACKENDS
from toolkit.call import Result
from toolkit.loss import unkept
from toolkit.plan import FILE, Delete, Entry, Move, Stat
from toolkit.session import Session
from toolkit.workspace import MAX_FILE

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
SMALL = 1000  # what can be kept in these tests


@pytest.fixture(params=["memory://", "local"])
def session(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Session]:
    monkeypatch.setattr("toolkit.loss.MAX_FILE", SMALL)
    root = request.param
    if root == "local":
        root = str(tmp_path / "ws")
        Path(root).mkdir()
    with Session(root, ALLOW, state=":memory:") as session:
        for path, size in {"t/large": SMALL + 1, "t/small": 10, "small": 10, "other": SMALL + 1}.items():
            assert call(session, "create_file", path=path, content="x" * size).ok
        yield session


def call(session: Session, tool: str, **arguments: Any) -> Result:
    return session.call({"tool": tool, "arguments": arguments})


CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "a file": ("delete_file", {"path": "other"}, "other"),
    "a tree": ("delete", {"path": "t"}, "t/large"),
    "a file moved over it": (
        "move_file",
        {"source": "small", "destination": "other", "allow_overwrite": True},
        "other",
    ),
}


def keeps(session: Session) -> bool:
    return session.workspace.backend.traits.catches


@pytest.mark.parametrize("what", CALLS)
def test_a_loss_is_asked_about_where_nothing_can_be_kept(session: Session, what: str) -> None:
    tool, arguments, lost = CALLS[what]
    result = call(session, tool, **arguments)
    if keeps(session):
        assert result.ok
        assert session.undo(result.data["call_id"]).ok
        return
    assert result.status == "approval_required"
    assert result.error is not None
    assert result.error["code"] == "not_recoverable"
    assert "CANNOT BE RESTORED" in result.data["approval"]["title"]
    assert call(session, "read_file", path=lost).ok
    request = session.approvals.get(result.data["approval"]["id"])
    assert request.decision["not_recoverable"] == [lost]
    session.approvals.answer(request.id, Answer(True))
    result = call(session, tool, **arguments)
    assert result.ok
    assert result.data["not_recoverable"] == [lost]
    assert "cannot be restored" in result.content
    back = session.undo(result.data["call_id"])
    assert not back.ok or lost != "other"
    assert call(session, "read_file", path=lost).error is not None or what == "a file moved over it"


def test_a_loss_is_agreed_to_once(session: Session) -> None:
    if keeps(session):
        pytest.skip("nothing is lost here")
    approval = call(session, "delete_file", path="other").data["approval"]["id"]
    with pytest.raises(Exception, match="once"):
        session.approvals.answer(approval, Answer(True, scope="session"))


def test_what_can_be_kept_is_not_asked_about(session: Session) -> None:
    assert call(session, "delete_file", path="small").ok


def test_a_dry_run_says_that_it_would_ask(session: Session) -> None:
    session.dry_run = True
    result = call(session, "delete_file", path="other")
    assert ("CANNOT BE RESTORED" in result.content) is not keeps(session)


@pytest.mark.parametrize("kind", sorted(BACKENDS))
def test_each_kind_of_store_asks_above_what_it_can_keep(kind: str) -> None:
    large, small = (Stat(FILE, size) for size in (MAX_FILE + 1, MAX_FILE))
    tree = Delete("d", Stat("directory"), (Entry("d/l", large), Entry("d/s", small)))
    over = Move("a", "b", small, large)
    in_tasks = Delete("@tasks/1", large)
    kept = BACKENDS[kind].catches
    assert unkept((tree, over), BACKENDS[kind]) == (() if kept else ("d/l", "b"))
    assert unkept((in_tasks,), BACKENDS[kind]) == ("@tasks/1",)
