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


@pytest.mark.parametrize("call", CALLS)
def test_a_connection_that_stays_away_leaves_what_the_next_start_settles(
    server: SftpServer, root: Path, tmp_path: Path, call: str
) -> None:
    """Whatever it goes at: what is said to be done is, what is not is not, and undo leads to where it was."""
    fill(root)
    before = tree(root)
    first, last, after = requests_of(server, root, call)
    tool, arguments = CALLS[call]
    silent = 0
    for at in range(first, last + 1):
        for acted in (True, False):
            place, state = root / f"{at}-{acted}", tmp_path / f"state-{at}-{acted}"
            place.mkdir()
            fill(place)
            with session(server, place, state) as open_session, pytest.MonkeyPatch.context() as patch:
                Cut(at - first + 1, acted, stays=True).install(patch)
                result = open_session.call({"tool": tool, "arguments": arguments})
            silent += bool(result.error and result.error["code"] == "no_reply")
            with session(server, place, state) as open_session:
                items = list(open_session.history.items("1 = 1", ()))
                assert {item.state for item in items} <= {"done", "aborted"}, (at, acted, items)
                if result.ok:
                    assert tree(place) == after, (at, acted)
                if {item.state for item in items} == {"done"}:
                    assert tree(place) == after, (at, acted)
                if items and tree(place) != before:
                    assert "done" in {item.state for item in items}, (at, acted)
                    assert open_session.undo(items[0].call).ok, (at, acted)
                assert tree(place) == before, (at, acted)
            assert not list(place.rglob(".ringfence-*")), (at, acted)
    assert silent


def test_the_next_call_settles_what_was_left_open(server: SftpServer, root: Path) -> None:
    fill(root)
    first, last, _ = requests_of(server, root, "edit")
    place = root / "again"
    place.mkdir()
    fill(place)
    with session(server, place, ":memory:") as open_session:
        with pytest.MonkeyPatch.context() as patch:
            Cut(last - first + 1, acted=True, stays=True).install(patch)
            tool, arguments = CALLS["edit"]
            result = open_session.call({"tool": tool, "arguments": arguments})
        assert result.error and result.error["code"] == "no_reply", result
        assert open_session.call({"tool": "read_file", "arguments": {"path": "a"}}).ok
        assert {item.state for item in open_session.history.items("1 = 1", ())} == {"done"}
        assert (place / "a").read_text() == "1\ntwo\n"


def test_what_a_look_alone_has_shown_is_said(server: SftpServer, root: Path) -> None:
    fill(root)
    first, last, _ = requests_of(server, root, "edit")
    place = root / "again"
    place.mkdir()
    fill(place)
    with session(server, place, ":memory:") as open_session, pytest.MonkeyPatch.context() as patch:
        Cut(last - first + 1, acted=True).install(patch)
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
