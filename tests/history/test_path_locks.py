"""A call at a path keeps others from that path, from what is below a tree that goes, and from no more."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.execution import apply
from ringfence.toolkit.history.session_condition import of_session
from ringfence.toolkit.session.session import Session

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')

DELETE_TREE = ("remove", "delete", {"path": "d"})
MOVE_TREE = ("move", "move_file", {"source": "d", "destination": "e"})
MOVE = ("move", "move_file", {"source": "f", "destination": "g"})
CREATE = ("create", "create_file", {"path": "d/new", "content": ""})
BELOW = ("create_file", {"path": "d/s/new", "content": ""})


@pytest.fixture
def root(tmp_path: Path, state_place: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(apply, "_PATIENCE", 0.05)
    (tmp_path / "ws" / "d" / "s").mkdir(parents=True)
    for path in ("d/a", "d/s/b", "f"):
        (tmp_path / "ws" / path).write_text(path)
    (tmp_path / "state_place").write_text(state_place)
    return tmp_path / "ws"


def opened(root: Path) -> Session:
    return Session(root, ALLOW, state=(root.parent / "state_place").read_text())


def stop(*_: Any) -> Any:
    raise KeyboardInterrupt


@pytest.fixture
def at_work(root: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    """A session that is in the middle of a call, where the backend would make the change."""
    step, tool, arguments = request.param
    with opened(root) as session:
        setattr(session.workspace.backend, step, stop)
        session.history.abandon = lambda op: None  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            session.call({"tool": tool, "arguments": arguments})
        yield session


@pytest.mark.parametrize(
    ("at_work", "tool", "arguments"),
    [
        (DELETE_TREE, *BELOW),
        (DELETE_TREE, "delete", {"path": "d/s"}),
        (DELETE_TREE, "move_file", {"source": "f", "destination": "d/g"}),
        (MOVE_TREE, *BELOW),
        (MOVE_TREE, "create_file", {"path": "e/x", "content": ""}),
        (MOVE, "create_file", {"path": "g", "content": ""}),
        (MOVE, "delete_file", {"path": "f"}),
        (CREATE, "delete", {"path": "d"}),
        (CREATE, "move_file", {"source": "d", "destination": "e"}),
    ],
    indirect=["at_work"],
)
def test_who_is_kept_off(root: Path, at_work: Session, tool: str, arguments: dict[str, Any]) -> None:
    with opened(root) as other:
        result = other.call({"tool": tool, "arguments": arguments})
    assert (result.error or {}).get("code") == "path_changed", result.content


@pytest.mark.parametrize(
    ("at_work", "tool", "arguments"),
    [
        (DELETE_TREE, "create_file", {"path": "e/x", "content": ""}),
        (DELETE_TREE, "read_file", {"path": "d/a"}),
        (MOVE, "create_file", {"path": "h", "content": ""}),
        (CREATE, "create_file", {"path": "d/other", "content": ""}),
        (CREATE, "delete", {"path": "d/s"}),
    ],
    indirect=["at_work"],
)
def test_who_goes_on_side_by_side(root: Path, at_work: Session, tool: str, arguments: dict[str, Any]) -> None:
    with opened(root) as other:
        assert other.call({"tool": tool, "arguments": arguments}).ok


def test_what_came_into_a_directory_since_it_was_listed_is_not_moved_along(root: Path) -> None:
    with opened(root) as session:
        real = session.history.begin

        def begin(*given: Any) -> int:
            (root / "d" / "late").write_text("theirs")
            return real(*given)

        session.history.begin = begin  # type: ignore[method-assign]
        result = session.call({"tool": "move_file", "arguments": {"source": "d", "destination": "e"}})
    assert (result.error or {}).get("code") == "path_changed"
    assert (root / "d" / "late").exists()
    assert not (root / "e").exists()


def test_nothing_is_made_at_a_parents_name_when_the_parent_is_gone(root: Path) -> None:
    (root / "x").mkdir()
    with opened(root) as session:
        real = session.history.begin

        def begin(*given: Any) -> int:
            (root / "x").rmdir()
            return real(*given)

        session.history.begin = begin  # type: ignore[method-assign]
        result = session.call({"tool": "create_file", "arguments": {"path": "x/y/z", "content": "1"}})
    assert (result.error or {}).get("code") == "path_changed"
    assert not (root / "x").exists()


def test_a_session_counts_itself_and_what_is_below_it_by_name(root: Path) -> None:
    names = ["".join(name) for length in (1, 2, 3) for name in product("a/.-0Z", repeat=length)]
    row = "INSERT INTO op(call, session, owner, agent, tool, started, state, durable) VALUES(?,?,?,?,?,?,?,?)"
    with opened(root) as session:
        with session.state.transaction() as db:
            db.executemany(row, [("c", name, "", "", "", 0.0, "done", 0) for name in names])
        for top in ("a", "a/", "a-", "a.", "0", "/", "Z/a", "a/0"):
            within, values = of_session(top)
            found = session.state.rows(f"SELECT session FROM op WHERE {within}", values)
            assert {str(row[0]) for row in found} == {
                name for name in names if name == top or name.startswith(f"{top}/")
            }


def test_a_start_waits_for_others_that_are_just_making_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[str] = []

    class Locked(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if sql == "PRAGMA journal_mode=WAL" and len(refused) < 3:
                refused.append(sql)
                raise sqlite3.OperationalError("database is locked")
            return super().execute(sql, *values)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Locked))
    with Session(tmp_path, ALLOW, state=tmp_path / "state") as session:
        assert session.call({"tool": "create_file", "arguments": {"path": "f", "content": ""}}).ok
    assert len(refused) == 3
