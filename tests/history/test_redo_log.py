"""`durable: log`: what is noted and synced, what a power cut leaves, and what is made again over what."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.policy.analysis.diff import compare
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.settlement import LATEST, is_left_of
from ringfence.toolkit.history import redo_log
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local import late_sync, syscalls

LOG = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: log\n')
NEW = b"new\n" * 1000


def _is_known(folder: Path) -> bool:
    fd = os.open(folder, os.O_RDONLY)
    try:
        return syscalls.file_system_of(fd) in redo_log._KNOWN
    finally:
        os.close(fd)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    if not _is_known(tmp_path):
        pytest.skip("needs ext4 or XFS")
    (tmp_path / "ws/d").mkdir(parents=True)
    (tmp_path / "ws/d/old").write_text("old")
    return tmp_path / "ws"


@pytest.fixture
def session(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session whose files are not synced in the background."""
    monkeypatch.setattr(redo_log, "AFTER", 3600.0)
    with Session(root, LOG, state=root.parent / "state") as opened:
        yield opened


def call(session: Session, tool: str, **arguments: Any) -> str:
    result = session.call({"tool": tool, "arguments": arguments})
    return result.error["code"] if result.error else "ok"


def write(session: Session, path: str, data: bytes = NEW) -> str:
    return call(session, "create_file", path=path, content=data.decode(), allow_overwrite=True)


def rows(session: Session) -> int:
    return len(session.state.rows("SELECT op FROM unsynced"))


def after_power_cut(root: Path, patch: pytest.MonkeyPatch) -> Session:
    patch.setattr(redo_log, "boot_id", lambda: "the next boot")
    return Session(root, LOG, state=root.parent / "state")


def test_only_single_changes_are_logged_and_others_sync_them_first(session: Session) -> None:
    assert [write(session, "a"), write(session, "d/old"), call(session, "delete_file", path="a")] == [
        "ok"
    ] * 3
    assert rows(session) == 3
    assert write(session, "new/folder/b") == "ok"
    assert rows(session) == 0
    durable = [r[0] for r in session.state.rows("SELECT json_extract(body, '$.durable') FROM audit")]
    assert durable == ["log", "log", "log", 1]


def test_a_flush_removes_the_rows_after_the_sync(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    write(session, "a")
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(rows(session)))
    session.history.redo.flush()
    assert synced == [1, 1]  # the file and its directory, before the row is removed
    assert rows(session) == 0


def test_a_failed_sync_marks_nothing_and_ends_the_logging(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Any, __: int) -> None:
        raise OSError(errno.EIO, "failed")

    write(session, "a")
    monkeypatch.setattr(late_sync.LateSync, "sync", fail)
    session.history.redo.flush()
    monkeypatch.undo()
    assert write(session, "b") == "ok"
    assert session.state.rows("SELECT boot FROM unsynced") == [("",)]
    inode = (root / "a").stat().st_ino
    with Session(root, LOG, state=root.parent / "state") as again:
        assert [one.outcome for one in again.settled] == ["made again"]  # in the same boot, whatever is read
        assert rows(again) == 0
    assert (root / "a").read_bytes() == NEW
    assert (root / "a").stat().st_ino != inode


def test_a_failure_is_on_the_disk_before_it_is_answered(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.rename

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "no space")

    statements: list[str] = []
    session.state.db.set_trace_callback(statements.append)  # type: ignore[attr-defined]
    monkeypatch.setattr(os, "rename", fail)
    assert write(session, "d/old") == "io_error"
    monkeypatch.setattr(os, "rename", real)
    assert statements[-1] == "COMMIT"
    settings = [one for one in statements if one.startswith("PRAGMA synchronous")]
    assert settings[-1:] in ([], ["PRAGMA synchronous=FULL"])
    assert rows(session) == 0
    assert (root / "d/old").read_text() == "old"


@pytest.mark.parametrize(
    ("found", "then", "outcome"),
    [
        (None, NEW, "made again"),
        (b"", NEW, "made again"),
        (b"\0" * 4000, NEW, "made again"),
        (NEW[:1024], NEW, "made again"),
        (NEW[:512] + b"\0" * 512 + NEW[1024:], NEW, "made again"),
        (NEW, NEW, None),
        (b"somebody else's", b"somebody else's", "unknown"),
        (NEW + b"more", NEW + b"more", "unknown"),
        (b"old", b"old", "unknown"),  # the same content, and another file
    ],
)
def test_only_what_is_ours_is_written_over(
    session: Session,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    found: bytes | None,
    then: bytes,
    outcome: str | None,
) -> None:
    write(session, "d/old")
    (root / "d/old").unlink()
    if found is not None:
        (root / "d/old").write_bytes(found)
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ([outcome] if outcome else [])
        assert rows(again) == 0
    assert (root / "d/old").read_bytes() == then


def test_the_old_file_is_replaced_and_a_deleted_one_removed(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.link(root / "d/old", root.parent / "kept")
    os.unlink(root.parent / "kept")  # so that its time of change is another one
    kept = root.parent / "old file"
    (root / "d/old").rename(kept)
    kept.rename(root / "d/old")
    os.link(root / "d/old", kept)
    call(session, "delete_file", path="d/old")
    if not (root / "d/old").exists():
        kept.rename(root / "d/old")  # the deletion did not reach the disk
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["made again"]
    assert not (root / "d/old").exists()


def test_nothing_is_made_again_after_a_day(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(session, "a")
    (root / "a").unlink()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + LATEST + 60)
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["unknown"]
    assert not (root / "a").exists()


def test_nothing_is_written_into_another_directory(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(session, "a")
    root.rename(root.with_name("before"))
    root.mkdir()
    with pytest.raises(CallError) as refused:
        after_power_cut(root, monkeypatch)
    assert refused.value.code == "not_settled"
    assert list(root.iterdir()) == []
    root.rmdir()
    root.with_name("before").rename(root)
    after_power_cut(root, monkeypatch).close()


def test_a_later_change_of_another_kind_overtakes(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(session, "d/a")
    kept = session.state.rows("SELECT * FROM unsynced")
    call(session, "move_file", source="d", destination="e")
    with session.state.transaction() as db:  # as if the row's removal had been lost
        db.executemany("INSERT INTO unsynced VALUES(?,?,?,?)", [tuple(row) for row in kept])
    with after_power_cut(root, monkeypatch) as again:
        assert again.settled == []
    assert not (root / "d").exists()
    assert (root / "e/a").read_bytes() == NEW


@pytest.mark.parametrize("where", ["workspace", "state"])
def test_a_file_system_in_memory_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    kinds = iter([0xEF53, 0x01021994] if where == "state" else [0x01021994])
    monkeypatch.setattr(syscalls, "file_system_of", lambda _: next(kinds))
    with pytest.raises(CallError) as refused:
        Session(root, LOG, state=root.parent / "state")
    assert refused.value.code == "log_unavailable"
    assert where in refused.value.message


def test_a_store_is_refused() -> None:
    with pytest.raises(CallError) as refused:
        Session("memory://", LOG, state=":memory:")
    assert refused.value.code == "log_unavailable"


def test_what_is_left_of_a_file_is_no_longer_than_it_and_has_its_sectors() -> None:
    assert is_left_of(NEW, b"")
    assert not is_left_of(NEW, b"new\nnex")
    assert not is_left_of(b"", b"x")


@pytest.mark.parametrize(
    ("old", "new", "looser"),
    [
        ("true", "log", True),
        ("true", "false", True),
        ("log", "false", True),
        ("log", "true", False),
        ("false", "log", False),
    ],
)
def test_to_wait_less_is_a_looser_policy(old: str, new: str, looser: bool) -> None:
    one, other = (Policy.loads(f"version: 1\ndurable: {value}\n") for value in (old, new))
    assert compare(one, other).looser is looser
