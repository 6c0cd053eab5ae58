"""SFTP over a connection that goes: whatever request it goes at, the answer and the history are true."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policy import Policy
from tests.services.cut_sftp import LOOKS, Cut
from tests.services.lost_replies import CALLS
from tests.services.servers import SftpServer, sshd
from toolkit.contract import ALLOW
from toolkit.session import Session

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    with sshd(tmp_path_factory.mktemp("sshd")) as found:
        yield found


@pytest.fixture
def root(server: SftpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".ssh").mkdir()
    host_key = server.key.with_name("host.pub").read_text()
    (tmp_path / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{server.port} {host_key}")
    monkeypatch.setenv("HOME", str(tmp_path))
    found = Path(server.root) / f"lost{next(NUMBERS)}"
    found.mkdir()
    return found


def session(server: SftpServer, root: Path, state: Path | str) -> Session:
    url = f"sftp://{server.user}@127.0.0.1:{server.port}{root}"
    options = {"key_filename": str(server.key)}
    return Session(url, Policy.loads(ALLOW), state=str(state), options=options)


def fill(root: Path) -> None:
    (root / "a").write_text("one\ntwo\n")
    (root / "a").chmod(0o640)
    (root / "b").write_text("b")
    (root / "d/e").mkdir(parents=True)
    (root / "d/x").write_text("x")
    (root / "d/e/y").write_text("y")


def tree(root: Path) -> dict[str, str | None]:
    return {
        str(path.relative_to(root)): path.read_text() if path.is_file() else None
        for path in sorted(root.rglob("*"))
        if ".ringfence" not in path.relative_to(root).parts
    }


def requests_of(
    server: SftpServer, root: Path, call: str, *, looks: bool = False
) -> tuple[list[int], dict[str, str | None]]:
    """The requests of a call that change something, by number from 1, or all; and the tree after it."""
    with pytest.MonkeyPatch.context() as patch, session(server, root, ":memory:") as open_session:
        cut = Cut()
        cut.install(patch)
        tool, arguments = CALLS[call]
        result = open_session.call({"tool": tool, "arguments": arguments})
        assert result.ok, result
        numbers = [n for n, code in enumerate(cut.seen, 1) if looks or code not in LOOKS]
        assert numbers
        return numbers, tree(root)


@pytest.mark.parametrize("call", CALLS)
def test_a_connection_that_goes_once_changes_no_answer(server: SftpServer, root: Path, call: str) -> None:
    fill(root)
    before = tree(root)
    numbers, after = requests_of(server, root, call, looks=call == "edit")
    tool, arguments = CALLS[call]
    for at, acted in itertools.product(numbers, (True, False)):
        place = root / f"{at}-{acted}"
        place.mkdir()
        fill(place)
        with session(server, place, ":memory:") as open_session, pytest.MonkeyPatch.context() as patch:
            cut = Cut(at, acted)
            cut.install(patch)
            result = open_session.call({"tool": tool, "arguments": arguments})
            assert result.ok, (at, acted, result)
            assert len(cut.seen) >= at
            assert tree(place) == after, (at, acted)
            undone = open_session.undo(result.data["call_id"])
            assert undone.ok, (at, acted, undone)
            assert tree(place) == before, (at, acted)


@pytest.mark.parametrize("call", CALLS)
def test_a_connection_that_stays_away_leaves_what_the_next_start_settles(
    server: SftpServer, root: Path, tmp_path: Path, call: str
) -> None:
    """Whatever it goes at: what is said to be done is, what is not is not, and undo leads to where it was."""
    fill(root)
    before = tree(root)
    numbers, after = requests_of(server, root, call)
    tool, arguments = CALLS[call]
    silent = 0
    for at, acted in itertools.product(numbers, (True, False)):
        place, state = root / f"{at}-{acted}", tmp_path / f"state-{at}-{acted}"
        place.mkdir()
        fill(place)
        with session(server, place, state) as open_session, pytest.MonkeyPatch.context() as patch:
            Cut(at, acted, stays=True).install(patch)
            result = open_session.call({"tool": tool, "arguments": arguments})
        silent += bool(result.error and result.error["code"] == "no_reply")
        with session(server, place, state) as open_session:
            items = list(open_session.history.items("1 = 1", ()))
            states = {item.state for item in items}
            assert states <= {"done", "aborted"}, (at, acted, items)
            if result.ok or states == {"done"}:
                assert tree(place) == after, (at, acted)
            if tree(place) != before:
                assert "done" in states, (at, acted)
                assert open_session.undo(items[0].call).ok, (at, acted)
            assert tree(place) == before, (at, acted)
        assert not list(place.rglob(".ringfence-*")), (at, acted)
    assert silent


def test_the_next_call_settles_what_was_left_open(server: SftpServer, root: Path) -> None:
    fill(root)
    numbers, _ = requests_of(server, root, "edit")
    place = root / "again"
    place.mkdir()
    fill(place)
    with session(server, place, ":memory:") as open_session:
        with pytest.MonkeyPatch.context() as patch:
            Cut(numbers[-1], acted=True, stays=True).install(patch)
            tool, arguments = CALLS["edit"]
            result = open_session.call({"tool": tool, "arguments": arguments})
        assert result.error and result.error["code"] == "no_reply", result
        assert open_session.call({"tool": "read_file", "arguments": {"path": "a"}}).ok
        assert {item.state for item in open_session.history.items("1 = 1", ())} == {"done"}
        assert (place / "a").read_text() == "1\ntwo\n"


def test_what_a_look_alone_has_shown_is_said(server: SftpServer, root: Path) -> None:
    fill(root)
    numbers, _ = requests_of(server, root, "edit")
    place = root / "again"
    place.mkdir()
    fill(place)
    with session(server, place, ":memory:") as open_session, pytest.MonkeyPatch.context() as patch:
        Cut(numbers[-1], acted=True).install(patch)
        tool, arguments = CALLS["edit"]
        result = open_session.call({"tool": tool, "arguments": arguments})
        assert result.ok and result.data["resolved"] == ["a"], result


def test_another_server_is_not_taken_for_the_one_that_went(server: SftpServer, root: Path) -> None:
    fill(root)
    with session(server, root, ":memory:") as open_session, pytest.MonkeyPatch.context() as patch:
        open_session.workspace.backend._connection._host_key = "another"  # type: ignore[attr-defined]
        Cut(1).install(patch)
        result = open_session.call({"tool": "read_file", "arguments": {"path": "a"}})
        assert result.error and result.error["code"] == "io_error", result


def test_owner_group_mode_and_times_come_along_and_back(server: SftpServer, root: Path) -> None:
    fill(root)
    file, owner = root / "a", (4242, 4343) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(file, *owner)
    os.utime(file, (1_500_000_000, 1_500_000_000))

    def found() -> tuple[int, int, int]:
        info = file.stat()
        return info.st_uid, info.st_gid, info.st_mode & 0o7777

    with session(server, root, ":memory:") as open_session:
        edited = open_session.call({"tool": "edit_file", "arguments": CALLS["edit"][1]})
        assert edited.ok and "metadata_not_kept" not in edited.data, edited
        assert found() == (*owner, 0o640)
        assert open_session.undo(edited.data["call_id"]).ok
        assert (found(), file.stat().st_mtime) == ((*owner, 0o640), 1_500_000_000)
        deleted = open_session.call({"tool": "delete_file", "arguments": {"path": "a"}})
        assert open_session.undo(deleted.data["call_id"]).ok
        assert (found(), file.stat().st_mtime) == ((*owner, 0o640), 1_500_000_000)
        (root / "d").chmod(0o750)
        os.utime(root / "d", (1_400_000_000, 1_400_000_000))
        deleted = open_session.call({"tool": "delete", "arguments": {"path": "d"}})
        assert open_session.undo(deleted.data["call_id"]).ok
        assert (root / "d").stat().st_mode & 0o7777 == 0o750
        assert (root / "d").stat().st_mtime == 1_400_000_000


def test_what_the_server_does_not_give_back_is_named(
    server: SftpServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import paramiko

    def refused(client: Any, path: str, uid: int, gid: int) -> None:
        raise PermissionError(path)

    def another(metadata: Any, *given: Any) -> Any:
        return {**attached(metadata), "owner": [4242, 4343]}

    from toolkit.sftp import looking
    from toolkit.sftp.attributes import attached

    fill(root)
    monkeypatch.setattr(paramiko.SFTPClient, "chown", refused)
    monkeypatch.setattr(looking, "attached", another)
    with session(server, root, ":memory:") as open_session:
        edited = open_session.call({"tool": "edit_file", "arguments": CALLS["edit"][1]})
        assert edited.ok and edited.data["metadata_not_kept"] == ["group", "owner"], edited
        (root / "a").chmod(0o4755)
        again = open_session.call(
            {"tool": "insert_at_line", "arguments": {"path": "a", "line": 1, "content": "0"}}
        )
        assert again.ok and "set-id bits" in again.data["metadata_not_kept"], again
        assert (root / "a").stat().st_mode & 0o7777 == 0o755
