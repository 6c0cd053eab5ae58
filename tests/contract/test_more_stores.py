"""The call cases on stores that fsspec alone reaches: FTP, WebDAV, caches, directories, archives."""

from __future__ import annotations

import io
import itertools
import socket
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from ftplib import FTP, error_temp
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.cached import CachingFileSystem, SimpleCacheFileSystem, WholeFileCacheFileSystem
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.ftp import FTPFileSystem

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory
from ringfence.toolkit.testing.backend_contract import (
    OWN_TASK,
    Contract,
    Disk,
    ReadOnlyContract,
    Remote,
    content,
)
from tests.services.servers import FolderServer, ftp, webdav

NUMBERS = itertools.count()
ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


@dataclass(frozen=True)
class Served(Disk):
    """A directory of the server, which runs here: filled by `os`, worked in through the store."""

    fs: Any

    def open(self, policy: Policy, agent: str) -> Session:
        tasks = f"{self.root.name}-storage/tasks" if self.store.is_dir() else None
        return Session(
            self.root.name, policy, fs=self.fs, agent=agent, state=":memory:", tasks=tasks, task=OWN_TASK
        )


def served(server: FolderServer, fs: Any) -> Served:
    root = server.folder / f"w{next(NUMBERS)}"
    root.mkdir()
    return Served(root, fs)


@pytest.fixture(scope="session")
def ftp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FolderServer]:
    with ftp(tmp_path_factory.mktemp("ftp")) as found:
        yield found


@pytest.fixture
def ftp_files(ftp_server: FolderServer) -> Iterator[Any]:
    fs = FTPFileSystem("127.0.0.1", ftp_server.port, "agent", "secret", skip_instance_cache=True)
    yield fs
    fs.ftp.close()


@pytest.fixture(scope="session")
def dav_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FolderServer]:
    with webdav(tmp_path_factory.mktemp("dav")) as found:
        yield found


@pytest.fixture
def dav_files(dav_server: FolderServer) -> Iterator[Any]:
    fs = fsspec.filesystem("webdav", base_url=f"http://127.0.0.1:{dav_server.port}", skip_instance_cache=True)
    yield fs
    fs.client.http.close()


class TestFtp(Contract):
    @pytest.fixture
    def workspace(self, ftp_server: FolderServer, ftp_files: Any) -> Served:
        return served(ftp_server, ftp_files)


class TestWebdav(Contract):
    no_names_with = "?"

    @pytest.fixture
    def workspace(self, dav_server: FolderServer, dav_files: Any) -> Served:
        return served(dav_server, dav_files)


class TestTopOfAStore(Contract):
    """A root of "" is a workspace as any other; there is nothing beside it."""

    @pytest.fixture
    def workspace(self) -> Remote:
        return Remote(private_memory(), "")


class TestDirectory(Contract):
    @pytest.fixture
    def workspace(self) -> Remote:
        fs = private_memory()
        fs.makedirs("/base/workspace")
        return Remote(DirFileSystem("/base", fs), "workspace")


class TestTopOfADirectory(Contract):
    @pytest.fixture
    def workspace(self) -> Remote:
        fs = private_memory()
        fs.makedirs("/base")
        return Remote(DirFileSystem("/base", fs), "")


CACHES = {"simple": SimpleCacheFileSystem, "files": WholeFileCacheFileSystem, "blocks": CachingFileSystem}


@dataclass(frozen=True)
class Cached(Remote):
    """A store that is worked in through a cache, and looked at past it."""

    cache: Any

    def open(self, policy: Policy, agent: str) -> Session:
        return Remote(self.cache, self.root).open(policy, agent)


@pytest.fixture(params=CACHES)
def through_a_cache(request: pytest.FixtureRequest) -> Cached:
    fs = private_memory()
    fs.makedirs("/workspace")
    return Cached(fs, "/workspace", CACHES[request.param](fs=fs, skip_instance_cache=True))


class TestCached(Contract):
    @pytest.fixture
    def workspace(self, through_a_cache: Cached) -> Cached:
        return through_a_cache


@dataclass(frozen=True)
class Archive:
    """A zip archive, which is filled and then read."""

    root: str
    files: dict[str, bytes] = field(default_factory=dict)

    def open(self, policy: Policy, agent: str) -> Session:
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            for name, found in self.files.items():
                archive.writestr(name, found)
        data.seek(0)
        fs = fsspec.filesystem("zip", fo=data)
        return Session(self.root, policy, fs=fs, agent=agent, state=":memory:", place="archive")

    def put(self, path: str, what: Any) -> None:
        name = f"{self.root}/{path}".strip("/")
        made = isinstance(what, dict) and "dir" in what
        self.files[f"{name}/" if made else name] = b"" if made else content(what)

    def tree(self) -> dict[str, Any]:
        return dict(self.files)


class TestZip(ReadOnlyContract):
    @pytest.fixture
    def workspace(self) -> Archive:
        return Archive("")


class TestZipFolder(ReadOnlyContract):
    @pytest.fixture
    def workspace(self) -> Archive:
        found = Archive("in/side")
        found.put("", {"dir": True})
        return found


def test_a_store_without_exclusive_creation_says_so(dav_server: FolderServer, dav_files: Any) -> None:
    tree = served(dav_server, dav_files)
    with tree.open(ALLOW, "default") as session:
        created = session.call({"tool": "create_file", "arguments": {"path": "new/x", "content": "1"}})
        assert created.ok
        assert created.data["unconditional"] == ["create"]
        again = session.call({"tool": "create_file", "arguments": {"path": "new/x", "content": "2"}})
        assert again.error and again.error["code"] == "already_exists"
    assert tree.tree() == {"new/x": b"1"}


@pytest.mark.parametrize("name", ["x.tx%74", "x%2e", "x?", "x#y", "x%25", " x", "x ", "x", "é", "a+b&c;d=e"])
@pytest.mark.parametrize("kind", ["ftp", "dav"])
def test_what_is_written_has_the_name_that_was_judged(
    request: pytest.FixtureRequest, kind: str, name: str
) -> None:
    tree = served(request.getfixturevalue(f"{kind}_server"), request.getfixturevalue(f"{kind}_files"))
    with tree.open(ALLOW, "default") as session:
        result = session.call({"tool": "create_file", "arguments": {"path": name, "content": "1"}})
        if result.ok:
            assert tree.tree() == {name: b"1"}
        else:
            assert result.error["code"] == "path_invalid"
            assert tree.tree() == {}


@pytest.mark.parametrize("when", ["closed here", "closed there"])
def test_a_connection_that_went_is_made_again_for_a_look(
    ftp_server: FolderServer, ftp_files: Any, when: str
) -> None:
    tree = served(ftp_server, ftp_files)
    tree.put("a", "one")
    with tree.open(ALLOW, "default") as session:
        hang_up(ftp_files, when)
        assert session.call({"tool": "read_file", "arguments": {"path": "a"}}).data["content"] == "one"


@pytest.mark.parametrize("made", [True, False])
def test_a_change_whose_connection_goes_is_looked_for_and_not_made_twice(
    ftp_server: FolderServer, ftp_files: Any, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    tree = served(ftp_server, ftp_files)
    sent: list[str] = []
    put = ftp_files.pipe_file

    def lost(path: str, *more: Any, **options: Any) -> None:
        sent.append(path)
        if made:
            put(path, *more, **options)
        raise EOFError

    with tree.open(ALLOW, "default") as session:
        with monkeypatch.context() as broken:
            broken.setattr(ftp_files, "pipe_file", lost)
            answer = session.call({"tool": "create_file", "arguments": {"path": "n", "content": "new"}})
        assert len(sent) == 1
        assert tree.tree() == ({"n": b"new"} if made else {})
        if made:
            assert answer.data["resolved"] == ["n"]
        else:
            assert answer.error and answer.error["code"] == "no_reply", answer


@pytest.mark.parametrize("answer", ["421 Service is closing down", "450 Busy", "425 No data connection"])
def test_a_passing_failure_is_not_taken_for_absence(
    ftp_server: FolderServer, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """fsspec alone says of these that there is no such file."""

    def failed(*_: Any, **__: Any) -> Any:
        raise error_temp(answer)

    monkeypatch.setattr(FTP, "mlsd", failed)
    monkeypatch.setattr(FTP, "retrbinary", failed)
    fs = FTPFileSystem("127.0.0.1", ftp_server.port, "agent", "secret", skip_instance_cache=True)
    tree = served(ftp_server, fs)
    tree.put("a", "one")
    with tree.open(ALLOW, "default") as session:
        for tool, more in (("read_file", {}), ("create_file", {"content": "new"})):
            result = session.call({"tool": tool, "arguments": {"path": "a", **more}})
            assert result.error and result.error["code"] == "io_error", result
    fs.ftp.close()
    assert tree.tree() == {"a": b"one"}


def test_many_threads_share_the_one_connection(ftp_server: FolderServer, ftp_files: Any) -> None:
    tree = served(ftp_server, ftp_files)
    for number in range(16):
        tree.put(f"f{number}", str(number) * 1000)
    with tree.open(ALLOW, "default") as session, ThreadPoolExecutor(8) as pool:
        view = session.workspace.backend

        def read(number: int) -> bytes:
            return bytes(view.read(view.resolve((f"f{number}",), follow=True)))

        assert list(pool.map(read, range(16))) == [str(number).encode() * 1000 for number in range(16)]


def hang_up(fs: Any, when: str) -> None:
    if when == "closed here":
        fs.ftp.close()
    else:
        fs.ftp.sock.shutdown(socket.SHUT_RDWR)


def test_a_connection_sees_what_another_one_made(ftp_server: FolderServer, ftp_files: Any) -> None:
    tree = served(ftp_server, ftp_files)
    with tree.open(ALLOW, "default") as session:
        assert session.call({"tool": "list_directory", "arguments": {"path": "."}}).data["files"] == 0
        with FTP() as other:
            other.connect("127.0.0.1", ftp_server.port)
            other.login("agent", "secret")
            other.storbinary(f"STOR {tree.root.name}/theirs", io.BytesIO(b"1"))
        assert session.call({"tool": "list_directory", "arguments": {"path": "."}}).data["files"] == 1
        made = session.call({"tool": "create_file", "arguments": {"path": "theirs", "content": "2"}})
        assert made.error and made.error["code"] == "already_exists"
    assert Path(tree.root, "theirs").read_bytes() == b"1"
