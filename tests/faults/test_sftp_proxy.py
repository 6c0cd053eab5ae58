"""The fault proxy for SFTP before a real sshd: each fault does what its name says."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.testing.faults import KINDS, Fault
from tests.services.servers import SftpServer, sshd

paramiko = pytest.importorskip("paramiko", reason="no paramiko: pip install 'ringfence[sftp]'")

LOST = (EOFError, OSError, paramiko.SSHException)  # what paramiko raises when a connection ends


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    with sshd(tmp_path_factory.mktemp("sshd")) as found:
        yield found


@pytest.fixture(scope="module")
def proxy(server: SftpServer) -> Iterator[Any]:
    from ringfence.toolkit.testing.faults.sftp_proxy import SftpProxy

    options = server.options()
    options["hostname"] = options.pop("host")
    with SftpProxy(**options) as found:
        yield found


@pytest.fixture
def root(server: SftpServer, tmp_path: Path) -> Path:
    found = Path(server.root) / tmp_path.name
    found.mkdir()
    return found


@contextlib.contextmanager
def client(proxy: Any) -> Iterator[Any]:
    with contextlib.closing(paramiko.Transport(("127.0.0.1", proxy.port))) as transport:
        transport.connect(username="anybody", password="anything")
        yield paramiko.SFTPClient.from_transport(transport)


# kind -> what the client gets, whether the directory is there, whether the server was asked
OF_A_MKDIR = [
    ("drop before", LOST, False, False, "dropped"),
    ("refuse before", OSError, False, False, "status 4"),
    ("drop after", LOST, True, True, "dropped"),
    ("refuse after", OSError, True, True, "status 4"),
    ("cut", LOST, True, True, "half"),
    ("slow", None, True, True, "status 0"),
    ("late", None, True, True, "status 0"),
]


@pytest.mark.parametrize(("kind", "error", "there", "reached", "received"), OF_A_MKDIR)
def test_a_fault_of_a_change(
    proxy: Any, root: Path, kind: str, error: Any, there: bool, reached: bool, received: str
) -> None:
    with client(proxy) as ftp:
        proxy.arm(Fault(kind, seconds=0.01))
        with contextlib.nullcontext() if error is None else pytest.raises(error):
            ftp.mkdir(f"{root}/d")
    proxy.wait()
    assert (root / "d").exists() == there
    [seen] = proxy.seen()
    assert (seen.method, seen.target, seen.reached, seen.acted, seen.received) == (
        "mkdir", f"{root}/d", reached, there, received,
    )  # fmt: skip


def test_each_kind_is_tried_here(proxy: Any) -> None:
    assert {row[0] for row in OF_A_MKDIR} == set(KINDS) - {"stale"}
    with pytest.raises(ValueError, match="no stale answers"):
        proxy.arm(Fault("stale"))


def test_what_is_forwarded_is_what_came(proxy: Any, root: Path) -> None:
    data = bytes(range(256)) * 4096
    proxy.arm(None)
    with client(proxy) as ftp:
        with ftp.open(f"{root}/é", "wb") as file:
            file.set_pipelined(True)
            file.write(data)
        ftp.posix_rename(f"{root}/é", f"{root}/b")
        with ftp.open(f"{root}/b", "rb") as file:
            file.prefetch(len(data))
            assert file.read() == data
        assert ftp.listdir(str(root)) == ["b"]
        with pytest.raises(FileNotFoundError):
            ftp.lstat(f"{root}/é")
    proxy.wait()
    by = {seen.method: seen for seen in proxy.seen()}
    assert (root / "b").read_bytes() == data
    assert by["posix-rename"].target == by["write"].target == f"{root}/é"
    assert (by["lstat"].answer, by["lstat"].acted) == ("status 2", False)


def test_the_nth_that_fits_and_the_end_of_the_connection(proxy: Any, root: Path) -> None:
    with client(proxy) as ftp:
        proxy.arm(Fault("drop after", nth=2, methods=("mkdir",), down=True))
        ftp.mkdir(f"{root}/a")
        ftp.lstat(f"{root}/a")
        with pytest.raises(LOST):
            ftp.mkdir(f"{root}/b")
        with pytest.raises(LOST):
            ftp.mkdir(f"{root}/c")
    with client(proxy) as ftp, pytest.raises(LOST):
        ftp.mkdir(f"{root}/d")
    assert sorted(place.name for place in root.iterdir()) == ["a", "b"]
    proxy.arm(None)
    with client(proxy) as ftp:
        ftp.mkdir(f"{root}/e")
    assert (root / "e").exists()
