"""SFTP over a connection that goes: whatever request it goes at, the answer and the history are true."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.testing.backend_contract import ALLOW
from ringfence.toolkit.testing.faults import Fault, Faulty
from tests.services.cut_sftp import READS, Cut
from tests.services.faulty import faulty_sftp
from tests.services.lost_replies import CALLS
from tests.services.servers import SftpServer, sshd

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    with sshd(tmp_path_factory.mktemp("sshd")) as found:
        yield found


@pytest.fixture(scope="module")
def behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faulty]:
    with faulty_sftp(tmp_path_factory.mktemp("proxied")) as found:
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
    server: SftpServer, root: Path, call: str, *, reads: bool = False
) -> tuple[list[int], dict[str, str | None]]:
    """The requests of a call that change something, by number from 1, or all; and the tree after it."""
    with pytest.MonkeyPatch.context() as patch, session(server, root, ":memory:") as open_session:
        cut = Cut()
        cut.install(patch)
        tool, arguments = CALLS[call]
        result = open_session.call({"tool": tool, "arguments": arguments})
        assert result.ok, result
        numbers = [n for n, code in enumerate(cut.seen, 1) if reads or code not in READS]
        assert numbers
        return numbers, tree(root)


@pytest.mark.parametrize("call", CALLS)
def test_a_connection_that_goes_once_changes_no_answer(server: SftpServer, root: Path, call: str) -> None:
    fill(root)
    before = tree(root)
    numbers, after = requests_of(server, root, call, reads=call == "edit")
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
        return {**fields_of(metadata), "owner": [4242, 4343]}

    from ringfence.toolkit.storage.sftp import temporary_files
    from ringfence.toolkit.storage.sftp import view as sftp_view
    from ringfence.toolkit.storage.sftp.metadata import fields_of

    fill(root)
    monkeypatch.setattr(paramiko.SFTPClient, "chown", refused)
    monkeypatch.setattr(sftp_view, "fields_of", another)
    monkeypatch.setattr(temporary_files, "fields_of", another)
    with session(server, root, ":memory:") as open_session:
        edited = open_session.call({"tool": "edit_file", "arguments": CALLS["edit"][1]})
        assert edited.ok and edited.data["metadata_not_kept"] == ["group", "owner"], edited
        (root / "a").chmod(0o4755)
        again = open_session.call(
            {"tool": "insert_at_line", "arguments": {"path": "a", "line": 1, "content": "0"}}
        )
        assert again.ok and "set-id bits" in again.data["metadata_not_kept"], again
        assert (root / "a").stat().st_mode & 0o7777 == 0o755


def test_the_library_prints_nothing_of_a_connection_that_goes(server: SftpServer, root: Path) -> None:
    fill(root)
    program = (
        "import sys, socket\nfrom ringfence import Policy, Session\n"
        "allow = Policy.loads('version: 1\\nrules: {\"*\": allow}\\n')\n"
        "more = {'state': ':memory:', 'options': {'key_filename': sys.argv[2]}}\n"
        "with Session(sys.argv[1], allow, **more) as session:\n"
        "    transport = session.workspace.backend._connection._client.get_channel().get_transport()\n"
        "    transport.sock.close()\n"
        "    print(session.call({'tool': 'read_file', 'arguments': {'path': 'a'}}).content)\n"
    )
    url = f"sftp://{server.user}@127.0.0.1:{server.port}{root}"
    command = [sys.executable, "-c", program, url, str(server.key)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert "one" in done.stdout


@pytest.mark.parametrize("nth", [1, 2, 7])
def test_a_large_file_is_whole_or_not_there(behind_proxy: Faulty, tmp_path: Path, nth: int) -> None:
    """Each of its parts is a request of its own, and the library passes over what a server says to one."""
    raw, before, content = behind_proxy.fresh(), "a user's own text\n", "0123456789abcde\n" * 14_000
    raw.put("u", before)
    arguments = {"path": "u", "content": content, "allow_overwrite": True}
    with behind_proxy.open(raw, Policy.loads(ALLOW), tmp_path) as session:
        behind_proxy.proxy.arm(Fault("refuse before", nth=nth, methods=("write",)))
        result = session.call({"tool": "create_file", "arguments": arguments})
        met = [seen for seen in behind_proxy.proxy.seen() if seen.fault]
        behind_proxy.proxy.arm(None)
    assert len(met) == 1
    # Where the refusal comes before the replies to earlier parts, all of it is sent again.
    assert raw.tree() == {"u": (content if result.ok else before).encode()}
    assert result.ok or result.error["code"] == "io_error"  # type: ignore[index]


@pytest.mark.parametrize("nth", [1, 2, 7])
def test_a_large_file_is_read_whole_or_not_at_all(behind_proxy: Faulty, tmp_path: Path, nth: int) -> None:
    raw, content = behind_proxy.fresh(), "0123456789abcde\n" * 14_000
    raw.put("u", content)
    with behind_proxy.open(raw, Policy.loads(ALLOW), tmp_path) as session:
        behind_proxy.proxy.arm(Fault("refuse before", nth=nth, methods=("read",)))
        result = session.call({"tool": "read_file", "arguments": {"path": "u"}})
        met = [seen for seen in behind_proxy.proxy.seen() if seen.fault]
        behind_proxy.proxy.arm(None)
        assert len(met) == 1
        assert result.data["content"] == content if result.ok else result.error["code"] == "io_error"  # type: ignore[index]
