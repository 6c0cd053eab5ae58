"""Where deletions are caught: beside the state, or in the workspace, where git and people may clean up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local.backend import Local
from tests.storage.quarantine import caught

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\n')
FILES = {f"d/{n}": f"{n}\n".encode() * 3 for n in range(100)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "d").mkdir(parents=True)
    for path, data in FILES.items():
        (root / path).write_bytes(data)
    return root


@pytest.fixture
def elsewhere(root: Path) -> Iterator[Path]:
    """A directory for the state on another file system than the workspace's."""
    for place in ("/dev/shm", "/run", "/var/tmp"):
        if os.access(place, os.W_OK) and os.stat(place).st_dev != os.stat(root).st_dev:
            folder = Path(tempfile.mkdtemp(dir=place))
            yield folder
            shutil.rmtree(folder)
            return
    pytest.skip("no second file system to write to")


def call(session: Session, tool: str, **arguments: Any) -> Result:
    return session.call({"tool": tool, "arguments": arguments})


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(root), *arguments], check=True, capture_output=True, text=True
    ).stdout


def there(root: Path) -> dict[str, bytes]:
    return {str(place.relative_to(root)): place.read_bytes() for place in (root / "d").glob("*")}


def test_cleaning_up_reaches_nothing_that_was_deleted(root: Path) -> None:
    git(root, "init", "-q")
    with Session(root, ALLOW, state=root.parent / "state", session="s") as session:
        deleted = call(session, "delete", path="d")
        assert deleted.ok
        assert "kept_in" not in deleted.data
        assert caught(root, "kept-*")
        git(root, "clean", "-fdxq")
        assert not (root / ".ringfence").exists()
        assert not any(version.forgotten for version in session.versions("d/1"))
        undone = session.undo(deleted.data["call_id"])
        assert undone.ok, undone.content
    assert there(root) == FILES


def test_a_deletion_that_is_kept_in_the_workspace_says_so(root: Path, elsewhere: Path) -> None:
    git(root, "init", "-q")
    with Session(root, ALLOW, state=elsewhere, session="s") as session:
        deleted = call(session, "delete", path="d")
        assert deleted.data["kept_in"] == ".ringfence"
        assert ".ringfence/" in deleted.content
        assert [record["kept_in"] for record in audit.records(session.state)] == [".ringfence"]
        assert git(root, "status", "--porcelain", "--untracked-files=all") == ""
        assert not session.versions("d/1")[0].forgotten
        git(root, "clean", "-fdxq")
        first, gone = session.versions("d/1")
        assert first.forgotten
        assert gone.gone
        assert not gone.forgotten
        lost = session.restore("d/1", "initial")
        assert lost.error is not None
        assert lost.error["code"] == "not_recoverable"


def test_what_is_small_is_in_the_history_wherever_it_was_caught(root: Path, elsewhere: Path) -> None:
    with Session(root, ALLOW, state=elsewhere, session="s") as session:
        assert "kept_in" not in call(session, "delete_file", path="d/1").data
        shutil.rmtree(root / ".ringfence")
        assert session.restore("d/1", "initial").ok


def test_what_an_earlier_version_kept_in_the_workspace_is_found(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Local, "quarantine_beside", lambda *_, **__: None)
        with Session(root, ALLOW, state=root.parent / "state", session="s") as session:
            deleted = call(session, "delete", path="d")
    assert [place.parent.name for place in caught(root, "kept-*")] == [".ringfence"]
    with Session(root, ALLOW, state=root.parent / "state", session="s") as session:
        assert session.undo(deleted.data["call_id"]).ok
        assert there(root) == FILES
    with monkeypatch.context() as patch:
        patch.setattr(Local, "quarantine_beside", lambda *_, **__: None)
        with Session(root, ALLOW, state=root.parent / "state", session="s") as session:
            assert call(session, "delete", path="d").ok
    with Session(root, ALLOW, state=root.parent / "state", session="s") as session:
        assert session.prune(keep=0).data["trees"] == 1
    assert caught(root, "kept-*") == []


def test_two_states_of_one_workspace_keep_their_own(root: Path) -> None:
    with Session(root, ALLOW, state=root.parent / "one", session="s") as one:
        first = call(one, "delete", path="d")
        with Session(root, ALLOW, state=root.parent / "two", session="s") as two:
            assert two.prune(keep=0).data["trees"] == 0
        assert one.undo(first.data["call_id"]).ok
    assert there(root) == FILES


@pytest.mark.parametrize("content", [None, b"", b"*", b"!kept-x\n"])
def test_what_is_kept_in_the_workspace_is_never_committed(
    root: Path, elsewhere: Path, content: bytes | None
) -> None:
    """The note for git may be missing or short: the disk was full when it was made."""
    git(root, "init", "-q")
    (root / ".ringfence").mkdir()
    if content is not None:
        (root / ".ringfence" / ".gitignore").write_bytes(content)
    with Session(root, ALLOW, state=elsewhere, session="s") as session:
        assert call(session, "delete", path="d").ok
    assert git(root, "status", "--porcelain", "--untracked-files=all") == ""
    assert [place.name for place in (root / ".ringfence").glob(".ringfence-*")] == []


def test_a_note_for_git_that_a_killed_process_left_half_made_goes(root: Path, elsewhere: Path) -> None:
    process = os.fork()
    if process == 0:
        with Session(root, ALLOW, state=elsewhere, session="s") as session:
            os.rename = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore
            call(session, "delete", path="d")
        os._exit(1)
    os.waitpid(process, 0)
    with Session(root, ALLOW, state=elsewhere, session="s") as session:
        assert call(session, "delete", path="d").ok
    left = [place.name for place in (root / ".ringfence").iterdir()]
    assert [name for name in left if not name.startswith("kept-")] == [".gitignore"]


def test_nothing_is_caught_where_git_would_take_it(
    root: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / ".ringfence").mkdir()
    (root / ".ringfence" / ".gitignore").write_bytes(b"")
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    with Session(root, ALLOW, state=elsewhere, session="s") as session:
        write = os.write

        def full(fd: int, data: bytes) -> int:
            if data == b"*\n":
                raise OSError(28, "No space left on device")
            return write(fd, data)

        monkeypatch.setattr(os, "write", full)
        error = call(session, "delete", path="d").error
        monkeypatch.undo()
        assert error is not None
        assert (error["code"], "free space" in error["hint"]) == ("history_unavailable", True)
    assert there(root) == FILES
    assert [place.name for place in (root / ".ringfence").iterdir()] == [".gitignore"]
    if before:
        assert set(os.listdir("/proc/self/fd")) == before
