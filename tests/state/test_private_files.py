"""The state is private to its owner, whatever the umask and however it was made."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit import private_files
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.session.session import Session

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/.env").write_text("PASSWORD=hunter2\n")
    (tmp_path / "ws/large").write_bytes(os.urandom(2 * LARGE))
    return tmp_path / "ws"


@pytest.fixture(params=[0o000, 0o022, 0o027], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def work(root: Path) -> Session:
    """A session that has kept small and large content; its log is still beside the database."""
    session = Session(root, ALLOW, state=root.parent / "state")
    for tool, arguments in (
        ("create_file", {"path": ".env", "content": "PASSWORD=new", "allow_overwrite": True}),
        ("create_file", {"path": "large", "content": "small", "allow_overwrite": True}),
    ):
        assert session.call({"tool": tool, "arguments": arguments}).ok
    return session


def place(root: Path) -> Path:
    (found,) = (root.parent / "state").iterdir()
    return found


def open_to_others(top: Path) -> list[str]:
    every = [top, *(Path(at, name) for at, folders, files in os.walk(top) for name in folders + files)]
    return [f"{path} {oct(path.lstat().st_mode)}" for path in every if path.lstat().st_mode & 0o077]


def test_a_new_state_is_for_its_owner_alone(root: Path, umask: int) -> None:
    session = work(root)
    names = {path.name for path in place(root).iterdir()}
    assert {"state.db", "state.db-wal", "owners", "content"} <= names
    assert open_to_others(root.parent / "state") == []
    session.close()
    assert open_to_others(root.parent / "state") == []


def test_the_modes_of_an_older_state_are_corrected(root: Path) -> None:
    with work(root):
        for path in place(root).iterdir():
            path.chmod(0o755 if path.is_dir() else 0o644)
        place(root).chmod(0o755)
        with Session(root, ALLOW, state=root.parent / "state"):
            assert open_to_others(place(root)) == []


@pytest.mark.parametrize("name", [".", "state.db", "content"])
def test_a_state_that_others_may_write_to_is_refused(root: Path, name: str) -> None:
    work(root).close()
    path = place(root) / name
    path.chmod(0o777)
    with pytest.raises(CallError, match="can be written to by other users") as caught:
        Session(root, ALLOW, state=root.parent / "state")
    assert caught.value.code == "history_unavailable"
    assert "chmod" in str(caught.value.hint)
    assert str(root.parent) not in caught.value.message
    assert stat.S_IMODE(path.stat().st_mode) == 0o777, "nothing is changed in what is not trusted"


def test_a_state_of_another_user_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work(root).close()
    other = os.geteuid() + 1
    monkeypatch.setattr(private_files.os, "geteuid", lambda: other)
    with pytest.raises(CallError, match="belongs to another user"):
        Session(root, ALLOW, state=root.parent / "state")


def test_a_link_in_the_state_is_refused(root: Path) -> None:
    work(root).close()
    file = place(root) / "state.db"
    file.rename(root.parent / "theirs.db")
    file.symlink_to(root.parent / "theirs.db")
    with pytest.raises(CallError, match="is a link"):
        Session(root, ALLOW, state=root.parent / "state")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_cannot_read_what_was_kept() -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        (top / "ws").mkdir()
        (top / "ws/.env").write_text("PASSWORD=hunter2\n")
        (top / "ws/large").write_bytes(os.urandom(2 * LARGE))
        work(top / "ws").close()
        database = place(top / "ws") / "state.db"
        assert as_nobody(top / "ws/large") == "read", "the way there is open"
        assert as_nobody(database) == "refused"


def as_nobody(file: Path) -> str:
    """What a process of another user gets who reads the file."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        try:
            file.read_bytes()
            os.write(writer, b"read")
        except PermissionError:
            os.write(writer, b"refused")
        os._exit(0)
    os.wait()
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        return answer.read().decode()
