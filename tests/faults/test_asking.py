"""A person is asked only about what can be done: what is not there or not permitted is answered at once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.call import Result
from ringfence.toolkit.session.session import Session

U, V, W = (f"{n * 8}-e5f6-7890-abcd-ef1234567890" for n in "abc")
ASK = 'version: 1\ndurable: false\nrules: {"*": ask, read: allow}\n'
LOCKED = "Permission denied - task directory is locked"
Close = Callable[[Path], None]


@pytest.fixture(params=["injected", "really"])
def close(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Close]:
    """Closes a directory for changes: really, where that works for this user, and by an injected fault."""
    closed: list[Path] = []
    access = os.access

    def accessible(path: Any, mode: int, **options: Any) -> bool:
        if mode & os.W_OK:
            there = os.stat(path, dir_fd=options.get("dir_fd"))
            if any(os.path.samestat(there, place.stat()) for place in closed):
                return False
        return access(path, mode, **options)

    def really(place: Path) -> None:
        closed.append(place)
        if os.geteuid():
            place.chmod(0o555)
        elif (
            shutil.which("chattr") is None or subprocess.run(["chattr", "+i", place], check=False).returncode
        ):
            pytest.skip("this file system makes no directory immutable for root")

    if request.param == "injected":
        monkeypatch.setattr(os, "access", accessible)
    yield really if request.param == "really" else closed.append
    if request.param == "really":
        for place in closed:
            if os.geteuid():
                place.chmod(0o755)
            else:
                subprocess.run(["chattr", "-i", place], check=False)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    for task in (U, V):
        place = tmp_path / "storage" / "tasks" / task
        place.mkdir(parents=True)
        (place / "ui_messages.json").write_text("[]")
    return tmp_path / "storage" / "tasks"


@pytest.fixture
def session(tmp_path: Path, store: Path) -> Iterator[Session]:
    with Session(tmp_path / "ws", Policy.loads(ASK), state=":memory:", tasks=store, task=V) as made:
        yield made


def call(session: Session, tool: str, **arguments: Any) -> Result:
    return session.call({"tool": tool, "arguments": arguments})


def code(result: Result) -> str | None:
    return result.error["code"] if result.error else None


def questions(session: Session) -> list[str]:
    return [request.title for request in session.approvals.listing()]


@pytest.mark.parametrize("atomic", [False, True])
@pytest.mark.parametrize("permanent", [False, True])
@pytest.mark.parametrize(("task", "why"), [(W, "not_found"), (V, "protected_path")])
def test_nobody_is_asked_to_delete_no_task(
    session: Session, task: str, why: str, permanent: bool, atomic: bool
) -> None:
    answer = call(session, "delete_tasks", task_ids=[task], permanent=permanent, atomic=atomic)
    assert (answer.status, code(answer)) == ("error", why)
    assert questions(session) == []
    assert code(call(session, "restore_tasks", task_ids=[W])) == "not_found"
    assert questions(session) == []


def test_a_mixed_list_asks_about_what_can_be_done(session: Session, store: Path) -> None:
    asked = call(session, "delete_tasks", task_ids=[W, U, V])
    assert asked.status == "approval_required"
    assert questions(session) == ["Delete 1 task"]
    session.approvals.answer(asked.data["approval"]["id"], Answer(True))
    answer = call(session, "delete_tasks", task_ids=[W, U, V])
    assert [row["code"] for row in answer.data["results"]] == ["not_found", None, "protected_path"]
    assert not (store / U).exists()


def test_a_trial_of_nothing_shows_the_answer(tmp_path: Path, store: Path) -> None:
    with Session(tmp_path / "ws", Policy.loads(ASK), state=":memory:", tasks=store, dry_run=True) as session:
        assert "It would ask" in call(session, "delete_tasks", task_ids=[U]).content
        assert "Task not found" in call(session, "delete_tasks", task_ids=[W]).content


@pytest.mark.parametrize("permanent", [False, True])
@pytest.mark.parametrize("place", ["store", "task"])
def test_a_task_that_cannot_go_is_no_question(
    session: Session, store: Path, close: Close, place: str, permanent: bool
) -> None:
    close(store if place == "store" else store / U)
    answer = call(session, "delete_tasks", task_ids=[U], permanent=permanent)
    assert code(answer) == "permission_denied"
    assert answer.data["results"][0]["why"] == LOCKED
    assert questions(session) == []
    assert (store / U).exists()


def test_a_task_that_cannot_come_back_is_no_question(tmp_path: Path, store: Path, close: Close) -> None:
    allow = Policy.loads(ASK.replace("ask,", "allow,"))
    with Session(tmp_path / "ws", allow, state=":memory:", tasks=store) as session:
        assert call(session, "delete_tasks", task_ids=[U]).ok
    close(store)
    with Session(tmp_path / "ws", Policy.loads(ASK), state=":memory:", tasks=store) as session:
        assert code(call(session, "restore_tasks", task_ids=[U])) == "permission_denied"
        assert questions(session) == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("delete", {"path": "shut/f"}),
        ("delete", {"path": "shut"}),
        ("delete_file", {"path": "shut/f"}),
        ("move_file", {"source": "shut/f", "destination": "g"}),
        ("move_file", {"source": "f", "destination": "shut/g"}),
        ("move_file", {"source": "shut", "destination": "open/shut"}),
        ("create_file", {"path": "shut/new", "content": "x"}),
        ("create_file", {"path": "shut/deep/er/new", "content": "x"}),
        ("create_file", {"path": "shut/f", "content": "x", "allow_overwrite": True}),
        ("edit_file", {"path": "shut/f", "old_str": "old", "new_str": "new"}),
        ("insert_at_line", {"path": "shut/f", "content": "x", "line": 0}),
        ("copy_file", {"source": "f", "destination": "shut/g"}),
        ("create_directory", {"path": "shut/d"}),
    ],
)
def test_what_the_system_refuses_is_no_question(
    session: Session, tmp_path: Path, close: Close, tool: str, arguments: dict[str, Any]
) -> None:
    root = tmp_path / "ws"
    for folder in ("shut", "open"):
        (root / folder).mkdir()
        (root / folder / "f").write_text("old")
    (root / "f").write_text("old")
    close(root / "shut")
    assert code(call(session, tool, **arguments)) == "permission_denied"
    assert questions(session) == []
    # What is beside it is asked about as ever.
    opened = {
        name: value.replace("shut", "open") for name, value in arguments.items() if isinstance(value, str)
    }
    if tool == "move_file" and arguments["source"] == "shut":
        opened = {"source": "open", "destination": "elsewhere"}
    opened |= {name: arguments[name] for name in ("line", "allow_overwrite") if name in arguments}
    assert call(session, tool, **opened).status == "approval_required"
