"""A change that fails half-way: the answer, the record, the totals and the disk say the same."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Amount, Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local.backend import Local
from ringfence.toolkit.storage.open import private_memory

U, V, W = (f"{n * 8}-e5f6-7890-abcd-ef1234567890" for n in "abc")
ALLOW = 'version: 1\ndurable: false\nrules: {"*": allow}\n'
Lock = Callable[[Path], None]


@pytest.fixture(params=["injected", "chattr"])
def lock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lock]:
    """Makes a file that the system does not remove: really, where that works, and by an injected fault."""
    locked: list[Path] = []
    names: set[str] = set()

    def refusing(act: Callable[..., None]) -> Callable[..., None]:
        def acting(path: Any, *more: Any, **options: Any) -> None:
            if os.path.basename(os.fspath(path)) in names:
                raise PermissionError(errno.EPERM, "Operation not permitted")
            act(path, *more, **options)

        return acting

    def inject(file: Path) -> None:
        names.add(file.name)

    def really(file: Path) -> None:
        if shutil.which("chattr") is None or subprocess.run(["chattr", "+i", file], check=False).returncode:
            pytest.skip("this file system, or this user, makes no file immutable")
        locked.append(file)

    if request.param == "injected":
        for name in ("unlink", "rename"):
            monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    yield really if request.param == "chattr" else inject
    names.clear()
    for file in locked:
        for found in file.parents[3].rglob(file.name):
            subprocess.run(["chattr", "-i", found], check=False)


def put(store: Path, task: str, title: str = "A title") -> None:
    (store / task).mkdir(parents=True)
    rows = [{"ts": 1736260222000, "type": "say", "say": "text", "text": title}]
    (store / task / "ui_messages.json").write_text(json.dumps(rows))
    (store / task / "api_conversation_history.json").write_text(json.dumps(["<slug>code</slug>"]))
    (store / task / f"own-{task[0]}").write_text("locked")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    for task in (U, V, W):
        put(tmp_path / "storage" / "tasks", task, f"Task {task[0]}")
    return tmp_path / "storage" / "tasks"


def opened(tmp_path: Path, policy: str = ALLOW, **options: Any) -> Session:
    options.setdefault("state", tmp_path / "state")
    return Session(tmp_path / "ws", Policy.loads(policy), **options)


def call(session: Session, tool: str, **arguments: Any) -> Result:
    return session.call({"tool": tool, "arguments": arguments})


def last(session: Session) -> dict[str, Any]:
    return [record for record in audit.records(session.state) if record["event"] in ("call", "settled")][-1]


def counted(session: Session) -> tuple[int, int, int]:
    record = last(session)
    return record["files"], record["written"], record["freed"]


def code(result: Result) -> str | None:
    return result.error["code"] if result.error else None


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".ringfence" not in path.parts
    }


# ------------------------------------------------------------- what is on record


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "a" / "g").mkdir(parents=True)
    for name in ("one", "two", "h"):
        (root / "a" / "g" / name).write_text("xx")
    return root


def test_a_deletion_that_failed_frees_nothing(tmp_path: Path, tree: Path, lock: Lock) -> None:
    lock(tree / "a/g/h")
    with opened(tmp_path) as session:
        failed = call(session, "delete_file", path="a/g/h")
        assert failed.status == "error"
        assert counted(session) == (0, 0, 0)


def test_half_a_deletion_counts_what_went(tmp_path: Path, tree: Path, lock: Lock) -> None:
    lock(tree / "a/g/h")
    (tree / "b").write_text("b")
    (tree / "c").write_text("c")
    policy = ALLOW + "limits: {delete: {max_files: 4, per: session, over: deny}}\n"
    with opened(tmp_path, policy) as session:
        assert code(call(session, "delete", path="a")) == "partial_failure"
        assert files(tree / "a") == {"g/h": b"xx"}
        assert last(session)["outcome"] == "partial"
        assert counted(session) == (2, 0, 4)
        assert call(session, "delete_file", path="b").ok
        assert call(session, "delete_file", path="c").ok
        # Four went by now.
        (tree / "d").write_text("d")
        assert code(call(session, "delete_file", path="d")) == "limit_exceeded"


def test_a_move_changes_files_and_writes_nothing(tmp_path: Path, tree: Path) -> None:
    (tree / "over").write_text("12345")
    with opened(tmp_path) as session:
        assert call(session, "move_file", source="a", destination="z").ok
        assert counted(session) == (3, 0, 0)
        assert call(session, "move_file", source="z/g/one", destination="over", allow_overwrite=True).ok
        assert counted(session) == (1, 0, 5)  # what was replaced went
        assert session.undo(last(session)["call"]).ok
        assert counted(session)[0] == 2


def test_a_tree_of_which_nothing_went_says_why(tmp_path: Path, lock: Lock) -> None:
    (tmp_path / "ws" / "a").mkdir(parents=True)
    (tmp_path / "ws" / "a" / "h").write_text("xx")
    lock(tmp_path / "ws/a/h")
    with opened(tmp_path) as session:
        assert code(call(session, "delete", path="a")) == "permission_denied"
        assert counted(session) == (0, 0, 0)
        failed = last(session)["failed"][0]
        assert (failed["path"], failed["code"]) == ("a/h", "permission_denied")


# ------------------------------------------------------------------------- tasks


def test_a_task_that_cannot_go_whole_stays_whole(tmp_path: Path, store: Path, lock: Lock) -> None:
    lock(store / V / "own-b")
    before = files(store)
    with opened(tmp_path, tasks=store) as session:
        answer = call(session, "delete_tasks", task_ids=[V], permanent=True)
        assert files(store) == before
        assert code(answer) == "permission_denied"
        assert answer.content == (
            "Task Deletion Results:\n\n"
            f"❌ Failed to delete: Task b ({V})\n"
            "   Error: Permission denied - task directory is locked\n"
            "   File: own-b\n\n"
            "Summary: 0 tasks deleted successfully, 1 failed"
        )
        assert answer.data["results"][0]["file"] == "own-b"
        assert counted(session) == (0, 0, 0)
        assert last(session)["failed"][0]["path"] == f"@tasks/{V}/own-b"
        assert call(session, "list_tasks").data["total"] == 3
        # What was taken back already is not done again, and takes nothing away.
        session.undo(last(session)["call"])
        session.undo_to("initial")
        assert files(store) == before


def test_one_task_that_stays_stops_no_other(tmp_path: Path, store: Path, lock: Lock) -> None:
    lock(store / V / "own-b")
    before = files(store)
    with opened(tmp_path, tasks=store, session="s") as session:
        answer = call(session, "delete_tasks", task_ids=[U, V, W], permanent=True)
        assert code(answer) == "partial_failure"
        assert [row["code"] for row in answer.data["results"]] == [None, "permission_denied", None]
        assert files(store) == {path: data for path, data in before.items() if path.startswith(V)}
        gone = [data for path, data in before.items() if not path.startswith(V)]
        assert counted(session) == (len(gone), 0, sum(map(len, gone)))
        assert session.history.totals("s", "default", "delete").bytes == sum(map(len, gone))
        assert session.undo(answer.data["call_id"]).ok
        assert files(store) == before


@pytest.mark.parametrize("permanent", [True, False])
def test_with_atomic_each_task_has_its_own_reason(
    tmp_path: Path, store: Path, lock: Lock, monkeypatch: pytest.MonkeyPatch, permanent: bool
) -> None:
    lock(store / V / "own-b")
    before = files(store)
    if not permanent:
        lock_folder(monkeypatch, V)
    with opened(tmp_path, tasks=store, session="s") as session:
        answer = call(session, "delete_tasks", task_ids=[U, V, W], permanent=permanent, atomic=True)
        assert files(store) == before
        assert code(answer) == "permission_denied"
        assert [(row["code"], row["why"]) for row in answer.data["results"]] == [
            ("partial_failure", "Taken back, because another failed"),
            ("permission_denied", "Permission denied - task directory is locked"),
            ("partial_failure", "Left alone, because another failed"),
        ]
        assert counted(session) == (0, 0, 0)
        assert session.history.totals("s", "default", "*").bytes == 0


def lock_folder(monkeypatch: pytest.MonkeyPatch, task: str) -> None:
    move = Local.move

    def moving(self: Local, source: Any, destination: Any, change: Any) -> None:
        if task in source.path and ".trash" not in self.root:
            raise CallError("permission_denied", "Permission denied", where=source.path)
        move(self, source, destination, change)

    monkeypatch.setattr(Local, "move", moving)


@pytest.mark.parametrize("atomic", [False, True])
def test_what_cannot_be_taken_back_is_said(
    tmp_path: Path, store: Path, lock: Lock, monkeypatch: pytest.MonkeyPatch, atomic: bool
) -> None:
    lock(store / V / "own-b")
    before = files(store)

    def full(*_: Any, **__: Any) -> None:
        raise CallError("io_error", "No space left on device")

    with opened(tmp_path, tasks=store) as session:
        with monkeypatch.context() as faults:
            faults.setattr(Local, "create", full)
            answer = call(session, "delete_tasks", task_ids=[V], permanent=True, atomic=atomic)
        name = answer.data["call_id"]
        gone = len([path for path in before if path not in files(store) and path.startswith(V)])
        assert gone == 2
        assert code(answer) == "partial_failure"
        assert answer.error is not None
        assert answer.error["hint"] == f"`ringfence undo {name}` takes back what was done"
        assert f"2 entries of it changed all the same, and `ringfence undo {name}`" in answer.content
        assert last(session)["outcome"] == "partial"
        assert counted(session)[0] == 2
        assert session.undo(name).ok
        assert files(store) == before


def test_what_is_purged_goes_whole_or_stays_whole(tmp_path: Path, store: Path, lock: Lock) -> None:
    with opened(tmp_path, tasks=store) as session:
        assert call(session, "delete_tasks", task_ids=[U, V]).ok
        trash = store.parent / "tasks.trash"
        before = files(trash)
        lock(trash / V / "own-b")
        answer = session.purge_tasks(0)
        assert code(answer) == "partial_failure"
        assert files(trash) == {path: data for path, data in before.items() if path.startswith(V)}
        assert call(session, "restore_tasks", task_ids=[V]).ok


def test_a_move_to_the_trash_and_back_counts_its_files(tmp_path: Path, store: Path) -> None:
    with opened(tmp_path, tasks=store) as session:
        assert call(session, "delete_tasks", task_ids=[U]).ok
        assert counted(session) == (3, 0, 0)
        assert call(session, "restore_tasks", task_ids=[U]).ok
        assert counted(session) == (3, 0, 0)


# ------------------------------------------------------------------------- stores


@pytest.fixture
def memory() -> Any:
    fs = private_memory()
    fs.makedirs("/ws/d/deep")
    fs.makedirs(f"/st/{U}")
    for name in ("a", "deep/b", "c"):
        fs.pipe_file(f"/ws/d/{name}", name.encode())
    for name in ("ui_messages.json", "own", "z"):
        fs.pipe_file(f"/st/{U}/{name}", b"[]")
    return fs


def contents(fs: Any) -> dict[str, bytes]:
    return {path: file.getvalue() for path, file in fs.store.items()}


@pytest.mark.parametrize(
    ("tool", "arguments", "at"),
    [
        ("delete_tasks", {"task_ids": [U]}, f"/{U}/own"),
        ("move_file", {"source": "d", "destination": "e"}, "/deep/b"),
        ("move_file", {"source": "d/a", "destination": "e"}, "/d/a"),
    ],
)
@pytest.mark.parametrize("method", ["rm_file", "pipe_file"])
def test_a_move_that_a_store_cannot_finish_moves_nothing(
    memory: Any, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any], at: str, method: str
) -> None:
    before = contents(memory)
    real = getattr(memory, method)

    def failing(path: str, *more: Any, **options: Any) -> Any:
        # What is copied cannot be removed at its old place, or not be written at the new one.
        here = path.startswith(("/ws/d", "/st/"))
        if (path.endswith(at) and here) if method == "rm_file" else not here:
            raise OSError(errno.EIO, "Input/output error")
        return real(path, *more, **options)

    with Session(
        "/ws", Policy.loads(ALLOW), fs=memory, state=":memory:", tasks="/st", session="s"
    ) as session:
        with monkeypatch.context() as faults:
            faults.setattr(memory, method, failing)
            assert code(call(session, tool, **arguments)) == "io_error"
        assert contents(memory) == before
        assert counted(session) == (0, 0, 0)
        assert session.history.totals("s", "default", "*") == Amount()
        assert call(session, tool, **arguments).ok


@pytest.mark.parametrize(("at", "lost"), [("d/a", False), ("d/c", True)])
def test_what_a_store_moved_by_half_is_told_and_comes_back(
    memory: Any, monkeypatch: pytest.MonkeyPatch, at: str, lost: bool
) -> None:
    """What is in the way is not removed, or it is and the reply is lost; and the store is full by then."""
    before = contents(memory)
    removed: list[str] = []
    remove, put = memory.rm_file, memory.pipe_file

    def failing(path: str) -> None:
        if lost or not path.endswith(at):
            removed.append(path)
            remove(path)
        if path.endswith(at):
            raise OSError(errno.EIO, "Input/output error")

    def full(path: str, *more: Any, **options: Any) -> None:
        if removed:
            raise OSError(errno.ENOSPC, "No space left on device")
        put(path, *more, **options)

    with Session("/ws", Policy.loads(ALLOW), fs=memory, state=":memory:") as session:
        with monkeypatch.context() as faults:
            faults.setattr(memory, "rm_file", failing)
            faults.setattr(memory, "pipe_file", full)
            answer = call(session, "move_file", source="d", destination="e")
        assert code(answer) == "partial_failure"
        assert last(session)["outcome"] == "partial"
        assert set(before.values()) <= set(contents(memory).values())
        session.undo(answer.data["call_id"])
        now = contents(memory)
        assert {path: now.get(path) for path in before} == before


def test_what_the_second_look_puts_back_is_not_called_half_done(
    memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(memory)
    removed: list[str] = []
    refused: list[str] = []
    remove, put = memory.rm_file, memory.pipe_file

    def failing(path: str) -> None:
        if path.endswith("d/a"):
            raise OSError(errno.EIO, "Input/output error")
        if path.startswith("/ws/d/"):
            removed.append(path)
        remove(path)

    def full_for_a_while(path: str, *more: Any, **options: Any) -> None:
        if len(refused) < len(removed):
            refused.append(path)
            raise OSError(errno.ENOSPC, "No space left on device")
        put(path, *more, **options)

    with Session("/ws", Policy.loads(ALLOW), fs=memory, state=":memory:", session="s") as session:
        with monkeypatch.context() as faults:
            faults.setattr(memory, "rm_file", failing)
            faults.setattr(memory, "pipe_file", full_for_a_while)
            answer = call(session, "move_file", source="d", destination="e")
        assert removed and refused
        assert contents(memory) == before
        assert code(answer) == "io_error"
        assert "could not be put back" not in answer.content
        assert last(session)["outcome"] == "io_error"
        assert last(session)["failed"][0]["code"] == "io_error"
        assert counted(session) == (0, 0, 0)


@pytest.mark.parametrize(
    ("tool", "arguments", "method", "after"),
    [
        ("delete_file", {"path": "d/a"}, "rm_file", {"/ws/d/a": None}),
        ("create_file", {"path": "n", "content": "new"}, "pipe_file", {"/ws/n": b"new"}),
        ("delete", {"path": "d"}, "rm_file", {"/ws/d/a": None, "/ws/d/c": None, "/ws/d/deep/b": None}),
    ],
)
def test_what_a_store_did_and_called_failed_is_done(
    memory: Any,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    arguments: dict[str, Any],
    method: str,
    after: dict[str, Any],
) -> None:
    before, real = contents(memory), getattr(memory, method)

    def failing(path: str, *more: Any, **options: Any) -> None:
        real(path, *more, **options)
        if path in after:
            raise OSError(errno.EIO, "Input/output error")

    with Session("/ws", Policy.loads(ALLOW), fs=memory, state=":memory:") as session:
        with monkeypatch.context() as faults:
            faults.setattr(memory, method, failing)
            answer = call(session, tool, **arguments)
        assert answer.ok, answer
        assert set(answer.data["resolved"]) >= {path.removeprefix("/ws/") for path in after}
        assert last(session)["outcome"] == "done"
        assert "failed" not in last(session)
        wanted = {**before, **after}
        now = contents(memory)
        assert {path: now.get(path) for path in wanted} == wanted
        assert session.undo(answer.data["call_id"]).ok
        assert {path: contents(memory).get(path) for path in before} == before


def test_what_cannot_be_looked_at_either_stays_open(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    def failing(path: str) -> None:
        memory.info = memory.ls = down
        down()

    with Session("/ws", Policy.loads(ALLOW), fs=memory, state=":memory:") as session:
        with monkeypatch.context() as faults:
            faults.setattr(memory, "rm_file", failing)
            answer = call(session, "delete_file", path="d/a")
        assert code(answer) == "no_reply"
        assert last(session)["outcome"] == "no_reply"
        [item] = session.history.items("op.call = ?", (answer.data["call_id"],))
        assert item.state == "pending"
        del memory.info, memory.ls
        assert call(session, "read_file", path="d/a").ok
        [item] = session.history.items("op.call = ?", (answer.data["call_id"],))
        assert item.state == "aborted"


def test_what_was_caught_and_cannot_go_back_is_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody changes a file that is being deleted, and somebody makes it again meanwhile."""
    from ringfence.toolkit.storage.local.deletion import Removal

    (tmp_path / "ws").mkdir()
    file = tmp_path / "ws/a"
    file.write_text("one")

    def made_again(_: Removal) -> str:
        file.write_text("theirs")
        return "a"

    monkeypatch.setattr(Removal, "_differs", made_again)
    with opened(tmp_path) as session:
        answer = call(session, "delete_file", path="a")
        assert code(answer) == "path_changed"
        [left] = last(session)["left"]
        assert left["path"] == "a"
        assert left["caught"] in answer.content
        assert [found.read_text() for found in tmp_path.rglob(left["caught"])] == ["one"]
    assert file.read_text() == "theirs"


# ------------------------------------------------- directories made on the way


@pytest.mark.parametrize("failing", [errno.ENOSPC, errno.EACCES])
def test_parents_that_were_made_are_named_and_undo_takes_them_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    from ringfence.toolkit.storage import sparse_files

    def full(*_: Any, **__: Any) -> None:
        raise OSError(failing, os.strerror(failing))

    (tmp_path / "ws").mkdir()
    with opened(tmp_path) as session:
        with monkeypatch.context() as broken:
            broken.setattr(sparse_files, "write_all", full)
            failed = call(session, "create_file", path="a/b/c", content="x")
        assert failed.error is not None
        assert failed.error["code"] == "partial_failure"
        assert failed.error["message"].startswith("only 'a', 'a/b' made, 1 failed: 'a/b/c' (")
        assert failed.data["done"] == ["a", "a/b"]
        assert failed.data["counts"] == {"done": 2, "failed": 1}
        assert (tmp_path / "ws/a/b").is_dir()
        assert session.undo(failed.data["call_id"]).ok
        assert not (tmp_path / "ws/a").exists()


def test_parents_that_somebody_else_made_meanwhile_are_not_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringfence.toolkit.storage import sparse_files

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    made = Local.make_directory

    def after_another(self: Local, spot: Any) -> None:
        if spot.path == "a":
            os.mkdir(spot.name, dir_fd=spot.fd)
        made(self, spot)

    monkeypatch.setattr(sparse_files, "write_all", full)
    monkeypatch.setattr(Local, "make_directory", after_another)
    (tmp_path / "ws").mkdir()
    with opened(tmp_path) as session:
        failed = call(session, "create_file", path="a/b/c", content="x")
        assert failed.error is not None
        assert failed.error["message"].startswith("only 'a/b' made, 1 failed")
