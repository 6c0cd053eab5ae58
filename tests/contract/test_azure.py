"""Azure blobs on the emulator that Azure's makers publish: the call cases, through the common store."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policy import Policy
from tests.services.servers import AZURE_CONTAINER, azure_file_system, azurite
from toolkit.contract import ALLOW, Contract, Remote, content

pytestmark = pytest.mark.xdist_group("azure")
NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def connection(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with azurite(tmp_path_factory.mktemp("azurite")) as found:
        yield found


@pytest.fixture(scope="session")
def file_system(connection: str) -> Any:
    return azure_file_system(connection)


@pytest.fixture(scope="session")
def container(connection: str, file_system: Any) -> Iterator[Any]:
    from azure.storage.blob import ContainerClient

    with ContainerClient.from_connection_string(connection, AZURE_CONTAINER) as client:
        yield client


@dataclass(frozen=True)
class Blobs(Remote):
    """A prefix of a container, filled and looked at by the store's own client."""

    container: Any

    @property
    def prefix(self) -> str:
        return self.root.partition("/")[2] + "/"

    def put(self, path: str, what: Any) -> None:
        empty = isinstance(what, dict) and "dir" in what
        name = self.prefix + (path.rstrip("/") + "/" if empty else path)
        self.container.upload_blob(name, b"" if empty else content(what))

    def tree(self) -> dict[str, Any]:
        names = [blob.name[len(self.prefix) :] for blob in self.container.list_blobs(self.prefix)]
        names = [name for name in names if not name.startswith(".ringfence")]
        found: dict[str, Any] = {}
        for name in names:
            if not name.endswith("/"):
                found[name] = self.container.download_blob(self.prefix + name).readall()
            elif not any(other != name and other.startswith(name) for other in names):
                found[name.rstrip("/")] = {"dir": True}
        return found


class TestAzure(Contract):
    @pytest.fixture
    def workspace(self, file_system: Any, container: Any) -> Blobs:
        return Blobs(file_system, f"{AZURE_CONTAINER}/w{next(NUMBERS)}", container)


def test_from_the_command_line(
    connection: str, container: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection)
    root = f"az://{AZURE_CONTAINER}/w{next(NUMBERS)}"
    policy = tmp_path / "p.yaml"
    policy.write_text(ALLOW)
    call = ["call", "create_file", '{"path": "a.txt", "content": "hi"}', "--root", root]
    command = [sys.executable, "-m", "toolkit.cli", *call, "--policy", str(policy)]
    command += ["--state", str(tmp_path / "s")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert container.download_blob(root.partition("//")[2].partition("/")[2] + "/a.txt").readall() == b"hi"


def test_what_is_in_a_directory_with_a_marker_is_seen(file_system: Any, container: Any) -> None:
    root = Blobs(file_system, f"{AZURE_CONTAINER}/w{next(NUMBERS)}", container)
    root.put("d", {"dir": True})
    root.put("d/a.txt", "hi")
    with root.open(Policy.loads(ALLOW), "default") as session:
        listed = session.call({"tool": "list_directory", "arguments": {"path": "d"}})
        assert "a.txt" in listed.content
        session.call({"tool": "delete", "arguments": {"path": "d"}})
    assert root.tree() == {}


def test_a_name_that_the_client_would_cut(file_system: Any, container: Any) -> None:
    root = Blobs(file_system, f"{AZURE_CONTAINER}/w{next(NUMBERS)}", container)
    root.put("a", "kept")
    with root.open(Policy.loads(ALLOW), "default") as session:
        call = {"path": "a?versionid=1", "content": "", "allow_overwrite": True}
        refused = session.call({"tool": "create_file", "arguments": call})
    assert refused.error is not None
    assert refused.error["code"] == "path_invalid"
    assert root.tree() == {"a": b"kept"}


def test_a_store_that_fails_is_not_a_store_without_files(file_system: Any, container: Any) -> None:
    root = Blobs(file_system, "no-such-container/w", container)
    with root.open(Policy.loads(ALLOW), "default") as session:
        for tool in ("get_file_info", "read_file", "delete_file"):
            answer = session.call({"tool": tool, "arguments": {"path": "a"}})
            assert answer.status == "error", answer
