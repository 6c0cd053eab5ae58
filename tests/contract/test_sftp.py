"""SFTP to a real sshd: the call cases, as on disk."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import SetMode
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.backend import at
from ringfence.toolkit.testing.backend_contract import OWN_TASK, Contract, Disk
from tests.execution.planned import carried_out
from tests.services.byte_named import CHANGES, RAW, SHOWN, make, raw_files
from tests.services.servers import SftpServer, sshd

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    with sshd(tmp_path_factory.mktemp("sshd")) as found:
        yield found


@pytest.fixture(scope="session")
def file_system(server: SftpServer) -> Iterator[Any]:
    # By name: other packages may have taken over the protocol.
    from fsspec.implementations.sftp import SFTPFileSystem

    fs = SFTPFileSystem(**server.options(), skip_instance_cache=True)
    yield fs
    fs.ftp.close()
    fs.client.close()


@dataclass(frozen=True)
class Server(Disk):
    """A directory of the server, which runs here: filled by `os`, worked in through SFTP."""

    fs: Any

    def open(self, policy: Policy, agent: str) -> Session:
        tasks = str(self.store) if self.store.is_dir() else None
        return Session(
            str(self.root), policy, fs=self.fs, agent=agent, state=":memory:", tasks=tasks, task=OWN_TASK
        )


class TestSftp(Contract):
    kind = "local"

    @pytest.fixture
    def workspace(self, server: SftpServer, file_system: Any) -> Server:
        root = Path(server.root) / f"w{next(NUMBERS)}"
        root.mkdir()
        return Server(root, file_system)


def test_a_server_whose_key_is_not_known_is_refused(server: SftpServer) -> None:
    url = f"sftp://{server.user}@127.0.0.1:{server.port}{server.root}"
    with pytest.raises(CallError, match="cannot be reached by SFTP"):
        Session(url, state=":memory:", options={"key_filename": str(server.key)})


@pytest.fixture
def known(server: SftpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".ssh").mkdir()
    host_key = server.key.with_name("host.pub").read_text()
    (tmp_path / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{server.port} {host_key}")
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.usefixtures("known")
def test_a_url_is_enough_where_the_key_is_known(server: SftpServer) -> None:
    Path(server.root, "by-url").mkdir()
    url = f"sftp://{server.user}@127.0.0.1:{server.port}{server.root}/by-url"
    allow = Policy.loads('version: 1\nrules: {"*": allow}\n')
    with Session(url, allow, state=":memory:", options={"key_filename": str(server.key)}) as session:
        assert session.call({"tool": "create_file", "arguments": {"path": "a", "content": "1"}}).ok
    assert Path(server.root, "by-url/a").read_text() == "1"


def test_a_file_system_that_was_given_is_connected_again(server: SftpServer) -> None:
    from fsspec.implementations.sftp import SFTPFileSystem

    (root := Path(server.root, "again")).mkdir()
    fs = SFTPFileSystem(**server.options(), skip_instance_cache=True)
    allow = Policy.loads('version: 1\nrules: {"*": allow}\n')
    with Session(str(root), allow, fs=fs, state=":memory:") as session:
        fs.client.close()
        assert session.call({"tool": "create_file", "arguments": {"path": "a", "content": "1"}}).ok
    assert (root / "a").read_text() == "1"
    fs.client.close()


def test_threads_that_ask_at_once_each_get_their_answer(server: SftpServer, file_system: Any) -> None:
    """The client by itself loses the reply to one of two that ask at once, which then waits for ever."""
    from concurrent.futures import ThreadPoolExecutor

    (root := Path(server.root, "at-once")).mkdir()
    for n in range(8):
        (root / f"f{n}").write_text(str(n) * (n + 1))
    allow = Policy.loads('version: 1\nrules: {"*": allow}\n')
    with Session(str(root), allow, fs=file_system, state=":memory:") as session:
        tree = session.workspace.backend
        with ThreadPoolExecutor(8) as pool:
            spots = [tree.resolve((f"f{n}",), follow=False) for n in range(8)] * 20
            assert list(pool.map(tree.read, spots)) == [str(n).encode() * (n + 1) for n in range(8)] * 20


@pytest.mark.usefixtures("known")
def test_a_password_in_the_url_is_refused(server: SftpServer) -> None:
    with pytest.raises(CallError, match="There is a password") as raised:
        Session(f"sftp://{server.user}:S3CRET@127.0.0.1:{server.port}{server.root}", state=":memory:")
    assert "S3CRET" not in f"{raised.value}{raised.value.hint}"


@pytest.mark.usefixtures("known")
def test_the_account_is_part_of_the_place_however_it_is_given(server: SftpServer, file_system: Any) -> None:
    url, key = f"127.0.0.1:{server.port}{server.root}", {"key_filename": str(server.key)}
    with (
        Session(f"sftp://{server.user}@{url}", state=":memory:", options=key) as in_url,
        Session(f"ssh://{url}", state=":memory:", options={**key, "username": server.user}) as in_options,
        Session(server.root, state=":memory:", fs=file_system) as as_object,
    ):
        names = {session.workspace.place.name for session in (in_url, in_options, as_object)}
        assert names == {f"sftp://{server.user}@{url}"}
        assert in_url.workspace.place.former == "" and in_options.workspace.place.former == f"sftp://{url}"
        assert in_url.workspace.url == f"sftp://{url}"


@pytest.mark.usefixtures("known")
def test_a_task_store_on_a_server_is_confined_as_a_root_is(server: SftpServer, tmp_path: Path) -> None:
    task, gone = "a1b2c3d4-e5f6-7890-abcd-ef1234567890", "b1b2c3d4-e5f6-7890-abcd-ef1234567890"
    store = Path(server.root, "of-tasks")
    for name in (task, gone):
        (store / name).mkdir(parents=True)
        (store / name / "ui_messages.json").write_text('[{"ts": 1736260222000, "text": "Fix the login"}]')
        (store / name / "api_conversation_history.json").write_text("[]")
    (tmp_path / "outside").mkdir()
    (store / "c1b2c3d4-e5f6-7890-abcd-ef1234567890").symlink_to(tmp_path / "outside")
    (tmp_path / "ws").mkdir()
    tasks = f"sftp://{server.user}@127.0.0.1:{server.port}{store}"
    allow = Policy.loads('version: 1\nrules: {"*": allow}\n')
    key = {"key_filename": str(server.key)}
    with Session(tmp_path / "ws", allow, state=":memory:", tasks=tasks, options=key) as session:
        listed = session.call({"tool": "list_tasks", "arguments": {}})
        assert listed.ok and "Fix the login" in listed.content
        deleted = session.call({"tool": "delete_tasks", "arguments": {"task_ids": [gone]}})
        assert deleted.ok, deleted.content
        assert not (store / gone).exists() and list(Path(f"{store}.trash").iterdir())
        assert session.call({"tool": "restore_tasks", "arguments": {"task_ids": [gone]}}).ok
        assert (store / gone / "ui_messages.json").exists()
    with pytest.raises(CallError, match="cannot be reached by SFTP"):  # not known by this name
        Session(
            tmp_path / "ws",
            allow,
            state=":memory:",
            tasks=tasks.replace("127.0.0.1", "localhost"),
            options=key,
        )


@pytest.fixture
def byte_named(server: SftpServer) -> Path:
    place = Path(server.root) / f"n{next(NUMBERS)}"
    make(place)
    return place


ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


def test_names_that_are_not_utf_8_are_listed_searched_and_read(byte_named: Path, file_system: Any) -> None:
    with Session(str(byte_named), ALLOW, fs=file_system, state=":memory:") as session:

        def call(tool: str, **arguments: Any) -> Any:
            return session.call({"tool": tool, "arguments": arguments})

        listed = call("list_directory", path=".")
        names = {row["name"] for row in listed.data["entries"]}
        assert names == {SHOWN, "d\\xff", "back\\x5cxe9", "link\\xe9"}
        assert "link\\xe9 -> d\\xff/caf\\xe9.txt" in listed.content
        found = call("search_text", query="needle", path="d\\xff")
        assert {row["path"] for row in found.data["matches"]} == {"d\\xff/in/\\x80\\xfe", f"d\\xff/{SHOWN}"}
        assert call("read_file", path="link\\xe9").data["content"].startswith("needle")


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
def test_names_that_are_not_utf_8_are_changed_and_come_back(
    byte_named: Path, file_system: Any, tool: str, arguments: dict[str, Any]
) -> None:
    before = raw_files(byte_named)
    with Session(str(byte_named), ALLOW, fs=file_system, state=":memory:") as session:
        done = session.call({"tool": tool, "arguments": arguments})
        assert done.ok, done.error
        changed = raw_files(byte_named)
        assert changed != before or tool == "create_directory"
        back = session.undo(done.data["call_id"])
        assert back.ok, back.error
        assert raw_files(byte_named) == before
        assert session.undo(back.data["call_id"]).ok
        assert raw_files(byte_named) == changed


@pytest.mark.usefixtures("known")
def test_a_root_may_have_such_a_name(server: SftpServer, byte_named: Path, tmp_path: Path) -> None:
    url = f"sftp://{server.user}@127.0.0.1:{server.port}{byte_named}/d%FF"
    options = {"key_filename": str(server.key)}
    with Session(url, ALLOW, state=str(tmp_path / "state"), options=options) as session:
        assert session.call({"tool": "delete_file", "arguments": {"path": SHOWN}}).ok
        inside = f"{byte_named}/d\\xff/in/\\x80\\xfe"
        assert session.call({"tool": "delete_file", "arguments": {"path": inside}}).ok
    assert b"d\xff/" + RAW not in raw_files(byte_named)


@pytest.mark.usefixtures("known")
def test_executable_bits_are_set_and_taken_back(server: SftpServer, tmp_path: Path) -> None:
    (root := Path(server.root, "modes")).mkdir()
    url = f"sftp://{server.user}@127.0.0.1:{server.port}{root}"
    allow = Policy.loads('version: 1\nrules: {"*": allow}\n')
    options = {"key_filename": str(server.key)}
    with Session(url, allow, state=tmp_path / "state", session="s", options=options) as session:
        session.call({"tool": "create_file", "arguments": {"path": "run", "content": "x"}})
        with at(session.workspace.backend, "run") as spot:
            stat = session.workspace.backend.stat(spot)
        assert stat is not None
        assert stat.mode is not None
        late = carried_out(session, SetMode("run", stat._replace(identity="another"), stat.mode | 0o111))
        assert late.error is not None
        assert late.error["code"] == "path_changed"
        result = carried_out(session, SetMode("run", stat, stat.mode | 0o111))
        assert result.ok, result.content
        assert (root / "run").stat().st_mode & 0o777 == stat.mode | 0o111
        assert session.undo(result.data["call_id"]).ok
        assert (root / "run").stat().st_mode & 0o777 == stat.mode
