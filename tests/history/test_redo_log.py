"""`durable: log`: what is noted and synced, what a power cut leaves, and what is made again over what."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.policy.analysis.diff import compare
from ringfence.toolkit.cli import main
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution import settlement
from ringfence.toolkit.execution.change_maker import ChangeMaker
from ringfence.toolkit.execution.recovery import recover
from ringfence.toolkit.execution.settlement import LATEST, is_left_of
from ringfence.toolkit.history import redo_log
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local import deletion, late_sync, syscalls

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
LOG = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: log\n')
NEW = b"new\n" * 1000


def is_ext4_or_xfs(folder: Path) -> bool:
    fd = os.open(folder, os.O_RDONLY)
    try:
        return syscalls.file_system_of(fd) in redo_log._KNOWN
    finally:
        os.close(fd)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    if not is_ext4_or_xfs(tmp_path):
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


def fail_to_sync(_: int) -> None:
    raise OSError(errno.EIO, "failed")


def fail_to_begin(**_: Any) -> Any:
    raise CallError("history_unavailable", "failed")


def left_by_a_dead_process(root: Path, path: str, end: str = "os.kill(os.getpid(), 9)") -> None:
    """Write NEW to the path in another process, whose files are not synced in the background."""
    program = f"""
import os
from tests.history.test_redo_log import LOG, Session, redo_log, write
redo_log.AFTER = 3600.0
session = Session({str(root)!r}, LOG, state={str(root.parent / "state")!r})
assert write(session, {path!r}) == "ok"
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], timeout=60, check=False
    )
    assert done.returncode == (-9 if end else 0)


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
        (NEW[:40], NEW[:40], "unknown"),  # somebody's: a disk writes whole sectors
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


def test_an_undo_that_did_not_reach_the_disk_is_made_again(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = session.call({"tool": "create_file", "arguments": {"path": "a", "content": NEW.decode()}})
    assert session.undo(made.data["call_id"]).ok
    assert (rows(session), (root / "a").exists()) == (2, False)
    (root / "a").write_bytes(NEW)  # as the creation left it
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["made again"]
    assert not (root / "a").exists()


def test_a_link_in_the_place_of_a_file_is_neither_followed_nor_replaced(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(session, "d/old")
    (root / "aside").write_bytes(b"")  # what a power cut leaves of a new file, if it was one
    (root / "d/old").unlink()
    (root / "d/old").symlink_to("../aside")
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["unknown"]
    assert (root / "d/old").readlink() == Path("../aside")
    assert (root / "aside").read_bytes() == b""


def test_a_directory_on_the_way_that_is_a_link_is_not_followed(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(session, "d/new")
    (root / "d").rename(root / "e")
    (root / "e/new").unlink()
    (root / "d").symlink_to("e")
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["unknown"]
    assert not (root / "e/new").exists()


def test_another_name_of_the_replaced_file_keeps_its_content(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.link(root / "d/old", root / "other")
    write(session, "d/old")
    (root / "d/old").unlink()
    (root / "other").rename(root / "d/old")  # the replacement did not reach the disk
    os.link(root / "d/old", root / "other")
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["made again"]
    assert (root / "d/old").read_bytes() == NEW
    assert (root / "other").read_text() == "old"


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


def test_a_person_gives_up_what_was_in_another_directory(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(session, "a")
    root.rename(root.with_name("before"))
    root.mkdir()
    monkeypatch.setattr(redo_log, "boot_id", lambda: "the next boot")
    place = "--root", str(root), "--state", str(root.parent / "state")
    assert main(["state", "settle", *place]) != 0
    assert "--give-up" in capsys.readouterr().err
    assert main(["state", "settle", "--give-up", *place]) == 1
    assert "create_file" in capsys.readouterr().out
    assert main(["state", "settle", "--give-up", *place]) == 0
    assert list(root.iterdir()) == []


def test_to_give_up_gives_up_nothing_in_the_same_directory(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(session, "a")
    (root / "a").unlink()
    monkeypatch.setattr(redo_log, "boot_id", lambda: "the next boot")
    place = "--root", str(root), "--state", str(root.parent / "state")
    assert main(["state", "settle", "--give-up", *place]) == 0
    assert (root / "a").read_bytes() == NEW


def test_the_state_of_a_copied_workspace_is_adopted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left_by_a_dead_process(root, "a")
    copy = shutil.copytree(root, root.with_name("copy"))
    shutil.rmtree(root)
    monkeypatch.setattr(redo_log, "boot_id", lambda: "the next boot")
    place = "--root", str(copy), "--state", str(root.parent / "state")
    assert main(["state", "adopt", "--yes", "--from", str(root), *place]) == 0
    assert main(["state", "settle", *place]) == 0


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


def test_what_is_written_to_while_it_is_settled_stays(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(session, "a")
    write(session, "a", b"newer")
    (root / "a").write_bytes(NEW)
    judge = settlement._Path._is_own

    def grow(self: Any, *judged: Any) -> bool:
        own = judge(self, *judged)
        (root / "a").write_bytes(b"somebody else's")
        return own

    monkeypatch.setattr(settlement._Path, "_is_own", grow)
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["unknown"]
    assert (root / "a").read_bytes() == b"somebody else's"


def test_what_was_made_again_and_not_synced_is_not_taken_for_synced(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system says once that a sync failed; after that it reads from memory what may be on no disk."""
    write(session, "a")
    (root / "a").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(late_sync, "sync_all", fail_to_sync)
        with pytest.raises(CallError) as failed:
            after_power_cut(root, patch)
        assert failed.value.code == "io_error"
    assert (root / "a").read_bytes() == NEW
    inode = (root / "a").stat().st_ino
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["made again"]
    assert (root / "a").stat().st_ino != inode


@pytest.mark.parametrize("word", ["log", "true"])
def test_nor_is_what_a_dead_process_left(root: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    policy = Policy.loads(f'version: 1\nrules: {{"*": allow}}\ndurable: {word}\n')
    left_by_a_dead_process(root, "a")
    with monkeypatch.context() as patch:
        patch.setattr(late_sync, "sync_all", fail_to_sync)
        with pytest.raises(CallError):
            Session(root, policy, state=root.parent / "state")
    with Session(root, policy, state=root.parent / "state") as again:
        assert [one.outcome for one in again.settled] == ["made again"]
        assert rows(again) == 0


def test_nor_is_it_where_another_session_fails_to_sync_it(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(root, ALLOW, state=root.parent / "state") as other:
        write(session, "a")
        monkeypatch.setattr(late_sync, "sync_all", fail_to_sync)
        assert write(other, "b") == "io_error"
        assert session.state.rows("SELECT boot FROM unsynced") == [("",)]


def test_what_another_session_is_changing_is_settled_later(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(session, "a")
    session.history.redo.give_up(OSError(errno.EIO, "failed"))
    make = ChangeMaker.make
    found: list[Any] = []

    def look(self: Any, *given: Any) -> None:
        with Session(root, LOG, state=root.parent / "state") as again:
            found.append((again.settled, rows(again)))
        make(self, *given)

    monkeypatch.setattr(ChangeMaker, "make", look)
    assert write(session, "a", b"newer") == "ok"
    assert found == [([], 1)]
    monkeypatch.undo()
    with Session(root, LOG, state=root.parent / "state") as again:
        assert rows(again) == 0
    assert (root / "a").read_bytes() == b"newer"


def test_what_another_session_is_changing_when_a_sync_fails_is_left_to_it(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = ChangeMaker.make
    found: list[Any] = []

    def look(self: Any, *given: Any) -> None:
        session.history.redo.mark_failed()  # as another process does
        with Session(root, LOG, state=root.parent / "state") as again:
            found.append((again.settled, rows(again), (root / "d/old").read_text()))
        make(self, *given)

    monkeypatch.setattr(ChangeMaker, "make", look)
    assert write(session, "d/old") == "ok"
    assert found == [([], 1, "old")]
    assert (root / "d/old").read_bytes() == NEW


@pytest.mark.parametrize("taken", [False, True], ids=["name free", "name taken"])
def test_a_file_that_a_deletion_took_by_mistake_is_put_back(
    session: Session,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    taken: bool,
) -> None:
    def cut(self: Any) -> None:
        (root / "theirs").rename(root.parent / "theirs")
        os.rename(root.parent / "theirs", self._quarantined.name, dst_dir_fd=self._quarantined.fd)
        raise KeyboardInterrupt

    (root / "theirs").write_text("somebody else's")
    with monkeypatch.context() as patch:
        patch.setattr(deletion.Removal, "_differs", cut)
        patch.setattr(deletion.Removal, "_put_back", lambda _: None)
        with pytest.raises(KeyboardInterrupt):
            call(session, "delete_file", path="d/old")
    if taken:
        (root / "d/old").mkdir()
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["unknown"]
        assert rows(again) == 0
    if taken:
        assert "is kept in the directory `quarantine`" in caplog.text
    else:
        assert (root / "d/old").read_text() == "somebody else's"


def test_settling_that_was_interrupted_leaves_nothing_in_the_quarantine(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    call(session, "delete_file", path="d/old")
    write(session, "d/old")
    (root / "d/old").write_bytes(b"\0" * 512)
    with monkeypatch.context() as patch:
        patch.setattr(deletion.Removal, "discard", cut)
        with pytest.raises(KeyboardInterrupt):
            after_power_cut(root, monkeypatch)
    (quarantine,) = root.parent.glob("state/*/quarantine")
    assert len(list(quarantine.iterdir())) == 1
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["made again"]
    assert list(quarantine.iterdir()) == []
    assert (root / "d/old").read_bytes() == NEW


def test_what_cannot_be_read_for_a_day_is_given_up(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise CallError("permission_denied", "refused")

    write(session, "d/a")
    now = time.time()
    monkeypatch.setattr(settlement.RecoveryFiles, "state_at", refuse)
    with pytest.raises(CallError):
        after_power_cut(root, monkeypatch)
    monkeypatch.setattr(time, "time", lambda: now + LATEST + 60)
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["unknown"]


def test_the_removal_of_a_row_is_on_the_disk(session: Session) -> None:
    """Else a row would be back after a power cut, and with it a file that somebody has removed since."""
    write(session, "a")
    statements: list[str] = []
    session.state.db.set_trace_callback(statements.append)  # type: ignore[attr-defined]
    session.history.redo.flush()
    assert statements[-1] == "COMMIT"
    assert "PRAGMA synchronous=FULL" in statements


def test_what_was_recovered_during_a_session_is_synced(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ChangeMaker, "release", stop)
        with pytest.raises(KeyboardInterrupt):
            write(session, "a")
    recover(session.history, session.workspace)
    assert session.state.rows("SELECT state FROM op") == [("done",)]
    assert rows(session) == 1
    session.history.redo.flush()
    assert rows(session) == 0


def test_rows_that_could_not_be_removed_are_removed_later(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(session, "a")
    with monkeypatch.context() as patch:
        patch.setattr(session.state, "transaction", fail_to_begin)
        session.history.redo.flush()
    assert rows(session) == 1
    session.history.redo.flush()
    assert rows(session) == 0


def test_what_is_not_synced_is_not_pruned(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(session, "a")
    session.prune(max_bytes=0, keep=0)
    (root / "a").unlink()
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["made again"]
    assert (root / "a").read_bytes() == NEW


def test_a_row_without_its_change_is_removed(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(session, "a")
    with session.state.transaction() as db:
        for table, column in (("item", "op"), ("op", "id")):
            db.execute(f"DELETE FROM {table} WHERE {column} > 0")
    with after_power_cut(root, monkeypatch) as again:
        assert (again.settled, rows(again)) == ([], 0)


def test_a_process_that_ends_without_closing_syncs_first(root: Path) -> None:
    left_by_a_dead_process(root, "a", "")
    with Session(root, LOG, state=root.parent / "state", read_only=True) as found:
        assert rows(found) == 0


def test_a_change_of_the_future_does_not_close_the_workspace(
    session: Session, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: now + 365 * LATEST)
        write(session, "a")
    root.rename(root.with_name("before"))
    root.mkdir()
    with after_power_cut(root, monkeypatch) as again:
        assert [one.outcome for one in again.settled] == ["unknown"]
    assert list(root.iterdir()) == []


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
    assert is_left_of(NEW, NEW[:512])
    assert is_left_of(NEW[:40], b"\0" * 40)
    assert not is_left_of(NEW, NEW[:40])
    assert not is_left_of(NEW, b"new\nnex" * 64)
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
