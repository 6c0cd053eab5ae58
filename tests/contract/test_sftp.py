"""SFTP to a real sshd: the call cases, as on disk."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policy import Policy
from tests.services.servers import SftpServer, sshd
from toolkit.contract import OWN_TASK, Contract, Disk
from toolkit.errors import CallError
from toolkit.session import Session

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


def test_a_url_is_enough_where_the_key_is_known(
    server: SftpServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    host_key = server.key.with_name("host.pub").read_text()
    (tmp_path / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{server.port} {host_key}")
    monkeypatch.setenv("HOME", str(tmp_path))
    Path(server.root, "by-url").mkdir()
    url = f"sftp://{server.user}@127.0.0.1:{server.port}{server.root}/by-url"
    allow = Policy.loads('version: 1\nrules: {"*": allow}\n')
    with Session(url, allow, state=":memory:", options={"key_filename": str(server.key)}) as session:
        assert session.call({"tool": "create_file", "arguments": {"path": "a", "content": "1"}}).ok
    assert Path(server.root, "by-url/a").read_text() == "1"
