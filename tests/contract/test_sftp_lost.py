"""SFTP over a connection that goes: whatever request it goes at, the answer and the history are true."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policy import Policy
from tests.services.cut_sftp import Cut
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


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "create": ("create_file", {"path": "new/n", "content": "new"}),
    "replace": ("create_file", {"path": "a", "content": "other", "allow_overwrite": True}),
    "edit": ("edit_file", {"path": "a", "old_str": "one", "new_str": "1"}),
    "copy": ("copy_file", {"source": "a", "destination": "c"}),
    "move": ("move_file", {"source": "a", "destination": "c"}),
    "move over": ("move_file", {"source": "a", "destination": "b", "allow_overwrite": True}),
    "move tree": ("move_file", {"source": "d", "destination": "f"}),
    "delete": ("delete_file", {"path": "a"}),
    "delete tree": ("delete", {"path": "d"}),
    "directory": ("create_directory", {"path": "new/m"}),
}


def requests_of(server: SftpServer, root: Path, call: str) -> tuple[int, int, dict[str, str | None]]:
    """Where the requests of a call begin and end, and what the tree is after it."""
    with pytest.MonkeyPatch.context() as patch:
        cut = Cut()
        cut.install(patch)
        with session(server, root, ":memory:") as open_session:
            first = len(cut.seen)
            tool, arguments = CALLS[call]
            result = open_session.call({"tool": tool, "arguments": arguments})
            assert result.ok, result
            return first + 1, len(cut.seen), tree(root)


@pytest.mark.parametrize("call", CALLS)
def test_a_connection_that_goes_once_changes_no_answer(server: SftpServer, root: Path, call: str) -> None:
    fill(root)
    before = tree(root)
    first, last, after = requests_of(server, root, call)
    tool, arguments = CALLS[call]
    for at in range(first, last + 1):
        for acted in (True, False):
            place = root / f"{at}-{acted}"
            place.mkdir()
            fill(place)
            with pytest.MonkeyPatch.context() as patch:
                cut = Cut(at, acted)
                cut.install(patch)
                with session(server, place, ":memory:") as open_session:
                    result = open_session.call({"tool": tool, "arguments": arguments})
                    assert result.ok, (at, acted, result)
                    assert len(cut.seen) >= at
                    assert tree(place) == after, (at, acted)
                    undone = open_session.undo(result.data["call_id"])
                    assert undone.ok, (at, acted, undone)
                    assert tree(place) == before, (at, acted)
