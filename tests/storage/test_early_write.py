"""A single write on a local disk: in which order its file, its intent and its name reach the disk."""

from __future__ import annotations

import _thread
import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local import syscalls

pytestmark = pytest.mark.skipif(not syscalls.UNNAMED, reason="this system has no files without a name")
DURABLE = Policy.loads('version: 1\nrules: {"*": allow}\n')
LAZY = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\n')
NEW = {"path": "d/new", "content": "new"}
OLD = {"path": "d/old", "content": "new", "allow_overwrite": True}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws/d").mkdir(parents=True)
    (tmp_path / "ws/d/old").write_text("old")
    (tmp_path / "ws/d/old").chmod(0o750)
    return tmp_path / "ws"


def opened(root: Path, policy: Policy = DURABLE) -> Session:
    return Session(root, policy, state=root.parent / "state")


def create(session: Session, arguments: dict[str, Any]) -> str:
    result = session.call({"tool": "create_file", "arguments": arguments})
    return result.error["code"] if result.error else "ok"


def names(root: Path) -> list[str]:
    return sorted(place.name for place in (root / "d").iterdir())


def failing(code: int) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(code, os.strerror(code))

    return fail


class Steps(list[str]):
    """What happened, in order; until the file has a name, the directory is what it was before."""

    def __init__(self, root: Path, session: Session, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        before = names(root)
        sync, link, rename = os.fsync, os.link, os.rename

        def synced(fd: int) -> None:
            folder = os.path.isdir(f"/proc/self/fd/{fd}")
            sync(fd)
            self.append("directory synced" if folder else "file synced")

        def linked(*values: Any, **options: Any) -> None:
            assert names(root) == before
            link(*values, **options)
            self.append("named")

        def renamed(*values: Any, **options: Any) -> None:
            rename(*values, **options)
            self.append("renamed")

        def ran(sql: str) -> None:
            if sql == "COMMIT":
                assert [name for name in names(root) if "ringfence" in name] == []
                self.append("committed")

        patch.setattr(os, "fsync", synced)
        patch.setattr(os, "link", linked)
        patch.setattr(os, "rename", renamed)
        session.state.db.set_trace_callback(ran)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("arguments", "then"), [(NEW, []), (OLD, ["renamed"])], ids=["new", "replaced"])
def test_file_and_intent_are_on_the_disk_before_the_name(
    root: Path, arguments: dict[str, Any], then: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(root) as session:
        steps = Steps(root, session, monkeypatch)
        assert create(session, arguments) == "ok"
    monkeypatch.undo()
    assert sorted(steps[:2]) == ["committed", "file synced"]  # side by side, in either order
    assert steps[2:6] == ["named", *then, "directory synced", "committed"][:4]
    assert (root / arguments["path"]).read_text() == "new"
    assert (root / "d/old").stat().st_mode & 0o777 == 0o750
    assert not [name for name in names(root) if name.startswith(".ringfence")]


@pytest.mark.parametrize("policy", [DURABLE, LAZY], ids=["durable", "lazy"])
def test_a_thread_is_started_only_for_one_durable_write(
    root: Path, policy: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = []
    real = _thread.start_new_thread

    def start(*values: Any) -> int:
        started.append(values)
        return real(*values)

    with opened(root, policy) as session:
        monkeypatch.setattr(_thread, "start_new_thread", start)
        assert create(session, NEW) == "ok"
        session.call({"tool": "read_file", "arguments": {"path": "d/new"}})
        session.call({"tool": "delete_file", "arguments": {"path": "d/old"}})
    assert len(started) == (policy is DURABLE)


@pytest.mark.parametrize("arguments", [NEW, OLD], ids=["new", "replaced"])
@pytest.mark.parametrize("without", ["unnamed files", "linking", "threads"])
def test_where_it_cannot_be_done_the_write_is_as_before(
    root: Path, arguments: dict[str, Any], without: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_open = os.open

    def open_(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags == syscalls.UNNAMED:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return real_open(path, flags, *more, **options)

    def no_thread(*_: Any) -> None:
        raise RuntimeError("can't start new thread")

    with opened(root) as session:
        match without:
            case "unnamed files":
                monkeypatch.setattr(os, "open", open_)
            case "linking":
                monkeypatch.setattr(os, "link", failing(errno.EXDEV))
            case "threads":
                monkeypatch.setattr(_thread, "start_new_thread", no_thread)
        assert create(session, arguments) == "ok"
    monkeypatch.undo()
    assert (root / arguments["path"]).read_text() == "new"
    assert (root / "d/old").stat().st_mode & 0o777 == 0o750
    assert names(root) == (["new", "old"] if arguments is NEW else ["old"])


@pytest.mark.parametrize("policy", [DURABLE, LAZY], ids=["durable", "lazy"])
@pytest.mark.parametrize(("error", "tries"), [(errno.EXDEV, 1), (errno.ENOSPC, 2), (errno.EDQUOT, 2)])
def test_a_file_that_cannot_be_named_is_written_in_vain_only_once(
    root: Path, policy: Policy, monkeypatch: pytest.MonkeyPatch, error: int, tries: int
) -> None:
    """But a full disk says nothing of the next file."""
    opened_unnamed = []
    real_open = os.open

    def open_(path: Any, flags: int, *more: Any, **options: Any) -> int:
        opened_unnamed.extend([path] if flags == syscalls.UNNAMED else [])
        return real_open(path, flags, *more, **options)

    with opened(root, policy) as session:
        monkeypatch.setattr(os, "open", open_)
        monkeypatch.setattr(os, "link", failing(error))
        for name in ("new", "newer"):
            assert create(session, {"path": f"d/{name}", "content": name}) == "ok"
    monkeypatch.undo()
    # After an early file that got no name, the write that follows tries once more.
    assert len(opened_unnamed) == (1 if tries == 1 else 4 if policy is DURABLE else 2)
    assert names(root) == ["new", "newer", "old"]


def test_a_new_file_that_is_not_waited_for_has_no_name_before_its_own(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    link = os.link

    def linked(*values: Any, **options: Any) -> None:
        seen.append(names(root))
        link(*values, **options)

    with opened(root, LAZY) as session:
        monkeypatch.setattr(os, "link", linked)
        assert create(session, NEW) == "ok"
    assert seen == [["old"]]
    assert names(root) == ["new", "old"]


@pytest.mark.parametrize("arguments", [NEW, OLD], ids=["new", "replaced"])
def test_a_file_that_cannot_be_synced_is_not_named(
    root: Path, arguments: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(root) as session:
        monkeypatch.setattr(os, "fsync", failing(errno.EIO))
        assert create(session, arguments) == "io_error"
        monkeypatch.undo()
        assert session.state.rows("SELECT state FROM item") == [("aborted",)]
    assert names(root) == ["old"]
    assert (root / "d/old").read_text() == "old"


def test_an_intent_that_is_not_committed_leaves_no_file(root: Path) -> None:
    free = len(os.listdir("/proc/self/fd"))
    with opened(root) as session:
        session.state.db.execute(
            "CREATE TEMP TRIGGER full BEFORE INSERT ON item BEGIN SELECT RAISE(ABORT, 'disk full'); END"
        )
        assert create(session, NEW) != "ok"
        assert names(root) == ["old"]
    assert len(os.listdir("/proc/self/fd")) == free


def test_a_name_taken_during_the_commit_is_not_replaced(root: Path) -> None:
    with opened(root) as session:

        def take(sql: str) -> None:
            if sql == "COMMIT":
                (root / "d/new").write_text("somebody's")

        session.state.db.set_trace_callback(take)  # type: ignore[attr-defined]
        assert create(session, NEW) == "already_exists"
        session.state.db.set_trace_callback(None)  # type: ignore[attr-defined]
    assert (root / "d/new").read_text() == "somebody's"
    assert names(root) == ["new", "old"]
