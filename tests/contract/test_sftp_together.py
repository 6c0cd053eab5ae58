"""SFTP requests that go out together: nothing is opened without a look, and what is swapped is found out."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import StoragePlace
from ringfence.toolkit.plan.changes import FILE, Delete, Entry, Stat
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.backend import at, complete
from ringfence.toolkit.storage.sftp import Sftp
from ringfence.toolkit.storage.sftp.connection import Connection
from ringfence.toolkit.storage.sftp.requests import PART
from ringfence.toolkit.storage.tree_walk import walk
from ringfence.toolkit.testing.backend_contract import ALLOW
from tests.services.counted_trips import counted
from tests.services.servers import SftpServer, sshd

NUMBERS = itertools.count()
LARGE = b"".join(b"%15d\n" % number for number in range(20_000))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SftpServer]:
    with sshd(tmp_path_factory.mktemp("sshd")) as found:
        yield found


@pytest.fixture
def root(server: SftpServer) -> Path:
    found = Path(server.root) / f"w{next(NUMBERS)}"
    (found / "d/e").mkdir(parents=True)
    (found / "d/e/x").write_text("one")
    return found


@pytest.fixture
def tree(server: SftpServer, root: Path) -> Iterator[Sftp]:
    with connected(server, root) as found:
        yield found


class connected:
    """A tree of the server, over a connection of its own."""

    def __init__(self, server: SftpServer, root: Path) -> None:
        from fsspec.implementations.sftp import SFTPFileSystem

        self._fs: Any = SFTPFileSystem(**server.options(), skip_instance_cache=True)
        self.tree = Sftp(Connection(self._fs.ftp), str(root), StoragePlace(("sftp",), "test", ""))

    def __enter__(self) -> Sftp:
        return self.tree

    def __exit__(self, *_: object) -> None:
        self._fs.client.close()


def judged(tree: Sftp, path: str) -> Stat:
    with at(tree, path) as spot:
        found = tree.stat(spot)
    assert found is not None
    return found


def test_content_of_the_same_size_and_time_is_not_replaced_when_it_is_another(tree: Sftp, root: Path) -> None:
    file = root / "d/e/x"
    stat, before = judged(tree, "d/e/x"), file.stat()
    file.write_text("two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    with at(tree, "d/e/x") as spot:
        with pytest.raises(CallError) as raised:
            tree.replace(spot, b"new", stat, None, ".ringfence-t", before=b"one")
        assert raised.value.code == "path_changed"
        assert os.listdir(root / "d/e") == ["x"] and file.read_text() == "two"
        assert tree.replace(spot, b"new", stat, None, ".ringfence-t", before=b"two") == ()
    assert file.read_text() == "new"


def test_another_file_than_the_judged_one_is_not_read(tree: Sftp, root: Path) -> None:
    spot = tree.resolve(("d", "e", "x"), follow=False)
    stat = tree.stat(spot)
    (root / "d/e/x").write_text("longer")
    with pytest.raises(CallError) as raised:
        tree.read(spot, judged=stat)
    assert raised.value.code == "path_changed"
    assert tree.read(spot) == b"longer"


def test_what_this_session_has_changed_is_looked_at_again(tree: Sftp) -> None:
    spot, new = (tree.resolve(("d", "e", name), follow=False) for name in ("x", "new"))
    stat = judged(tree, "d/e/x")
    tree.create(new, b"1", None, "")
    tree.replace(spot, b"other", stat, None, "")
    assert (tree.read(new), tree.read(spot)) == (b"1", b"other")
    found = tree.stat(spot)
    assert found is not None and found.size == 5


@pytest.mark.parametrize("change", ["create", "replace", "delete", "mkdir", "link", "move", "mode"])
def test_a_directory_that_became_a_link_is_not_gone_through(tree: Sftp, root: Path, change: str) -> None:
    (outside := root.with_name(f"{root.name}-outside")).mkdir()
    (outside / "x").write_text("one")
    os.utime(outside / "x", ns=((root / "d/e/x").stat().st_atime_ns, (root / "d/e/x").stat().st_mtime_ns))
    stat, spot = judged(tree, "d/e/x"), tree.resolve(("d", "e", "x"), follow=False)
    new = tree.resolve(("d", "e", "new"), follow=False)
    (root / "d/e").rename(root / "d/former")
    (root / "d/e").symlink_to(outside)
    acts: dict[str, Any] = {
        "create": lambda: tree.create(new, b"1", None, ""),
        "replace": lambda: tree.replace(spot, b"1", stat, None, "", before=b"one"),
        "delete": lambda: complete(tree.remove(spot, Delete("d/e/x", stat), "")),
        "mkdir": lambda: tree.make_directory(new),
        "link": lambda: tree.make_link(new, "x"),
        "move": lambda: tree.move(spot, new, _move(stat)),
        "mode": lambda: tree.set_mode(spot, stat, 0o600),
    }
    with pytest.raises(CallError) as raised:
        acts[change]()
    assert raised.value.code == "path_changed"
    assert os.listdir(outside) == ["x"] and (outside / "x").read_text() == "one"


def _move(stat: Stat) -> Any:
    from ringfence.toolkit.plan.changes import Move

    return Move("d/e/x", "d/e/new", stat)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_only_a_regular_file_is_opened(server: SftpServer, root: Path, kind: str) -> None:
    """Opening a pipe would never end, and opening a link would read what it leads to."""
    (root / "secret").write_text("secret")
    if kind == "pipe":
        os.mkfifo(root / "odd")
    else:
        (root / "odd").symlink_to("secret")
    with connected(server, root) as tree, counted() as made:
        spot = tree.resolve(("odd",), follow=False)
        with pytest.raises(CallError) as raised:
            tree.read(spot)
        assert raised.value.code == "not_regular_file"
        assert not [sent for sent in made.messages if sent.startswith("open")]


def test_the_open_of_a_name_follows_the_reply_about_it(server: SftpServer, root: Path) -> None:
    with connected(server, root) as tree, counted() as made:
        assert tree.read(tree.resolve(("d", "e", "x"), follow=False)) == b"one"
        stat = judged(tree, "d/e/x")
        made.clear()
        with at(tree, "d/e/x") as spot:
            tree.replace(spot, b"1", stat, None, "", before=b"one")
    sent = list(zip(made.trips, made.messages, strict=True))
    looks = [trip for trip, message in sent if message.startswith("lstat") and message.endswith("/x")]
    [opened] = [trip for trip, message in sent if message.startswith("open") and message.endswith("/x")]
    [renamed] = [trip for trip, message in sent if "posix-rename" in message]
    assert min(looks) < opened < max(looks) < renamed, sent


def test_a_large_file_comes_and_goes_whole(tree: Sftp, root: Path) -> None:
    tree.create(tree.resolve(("d", "large"), follow=False), LARGE, None, "")
    assert (root / "d/large").read_bytes() == LARGE
    assert tree.read(tree.resolve(("d", "large"), follow=False)) == LARGE


def test_a_directory_of_many_entries_is_listed_whole(tree: Sftp, root: Path) -> None:
    names = sorted(f"f{number}" for number in range(1100))
    (root / "many").mkdir()
    for name in names:
        (root / "many" / name).touch()
    with at(tree, "many") as spot, tree.folder(spot) as folder:
        assert [name for name, _ in folder.scan()] == names


def test_a_tree_with_more_files_than_go_together_is_deleted_and_comes_back(
    server: SftpServer, root: Path
) -> None:
    for number in range(150):
        (root / f"d/e/f{number % 7}").mkdir(exist_ok=True)
        (root / f"d/e/f{number % 7}/{number}").write_text(str(number))
    from fsspec.implementations.sftp import SFTPFileSystem

    fs = SFTPFileSystem(**server.options(), skip_instance_cache=True)
    with Session(str(root), Policy.loads(ALLOW), fs=fs, state=":memory:") as session:
        deleted = session.call({"tool": "delete", "arguments": {"path": "d"}})
        assert deleted.ok and not (root / "d").exists() and os.listdir(root / ".ringfence") == [".gitignore"]
        assert session.undo(deleted.data["call_id"]).ok
    assert {int(path.read_text()) for path in root.glob("d/e/f*/*")} == set(range(150))
    fs.client.close()


def test_a_server_that_does_not_permit_syncing_is_written_to(tmp_path: Path) -> None:
    with sshd(tmp_path, "-P fsync") as server:
        (root := Path(server.root, "w")).mkdir()
        with connected(server, root) as tree:
            assert tree.create(tree.resolve(("a",), follow=False), b"1", 0o600, "") == ()
        assert (root / "a").read_text() == "1"


def test_only_judged_files_are_read_together(tree: Sftp, root: Path) -> None:
    for name in ("same", "changed", "gone", "linked", "piped", "empty"):
        (root / "d/e" / name).write_text("" if name == "empty" else name)
    (root / "d/large").write_bytes(LARGE)
    (outside := root.with_name(f"{root.name}-elsewhere")).mkdir()
    with at(tree, "d") as spot:
        entries = [entry for entry, _ in walk(tree, spot, "d") if entry.stat.kind == FILE]
    (root / "d/e/changed").write_text("something else")
    for name in ("gone", "linked", "piped"):
        (root / "d/e" / name).unlink()
    (root / "d/e/linked").symlink_to("same")
    os.mkfifo(root / "d/e/piped")
    found = dict(zip([e.path for e in entries], tree.read_together(entries, 1 << 20), strict=True))
    assert {path.rpartition("/")[2]: read and read.data for path, read in found.items()} == {
        "x": b"one", "same": b"same", "empty": b"", "large": LARGE,
        "changed": None, "gone": None, "linked": None, "piped": None,
    }  # fmt: skip
    assert tree.read_together(entries, 3)[[e.path for e in entries].index("d/large")] is None
    (root / "d/e").rename(outside / "e")
    (root / "d/e").symlink_to(outside / "e")
    below_link = [entry for entry in entries if entry.path.startswith("d/e/")]
    assert not any(tree.read_together(below_link, 1 << 20))


@pytest.mark.parametrize("together", [False, True])
def test_a_file_that_is_written_while_it_is_read_is_not_taken_for_the_judged_one(
    tree: Sftp, root: Path, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from paramiko.sftp import CMD_READ
    from paramiko.sftp_client import SFTPClient

    (file := root / "d/large").write_bytes(LARGE)
    stat, sent = judged(tree, "d/large"), SFTPClient._async_request

    def write_between(client: Any, taker: Any, code: int, *given: Any) -> Any:
        if code == CMD_READ and given[-1] < PART:  # the last part: what was sent before it is answered
            while len(taker.found) < len(LARGE) // PART:
                client._read_response()
            with file.open("r+b") as other:
                other.write(b"x" * len(LARGE))
            os.utime(file, (0, 0))
        return sent(client, taker, code, *given)

    monkeypatch.setattr(SFTPClient, "_async_request", write_between)
    spot = tree.resolve(("d", "large"), follow=False)
    if together:
        assert tree.read_together([Entry("d/large", stat)], len(LARGE)) == [None]
        return
    with pytest.raises(CallError) as raised:
        tree.read(spot, judged=stat)
    assert raised.value.code == "path_changed"
