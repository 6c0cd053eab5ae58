"""What is large stays where it was caught or in a file beside the database, and comes back byte for byte."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state import sqlite as state
from tests.crash.harness import digest, files_of, kept
from tests.storage.quarantine import caught

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\nlimits: {delete: {max_files: 9999}}\n')
DELETIONS = int(os.environ.get("RACING_DELETIONS", "300"))
ENOUGH = 5


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    root.mkdir()
    return root


@pytest.fixture
def session(root: Path) -> Iterator[Session]:
    with Session(root, ALLOW, state=root.parent / "state") as session:
        yield session


def call(session: Session, tool: str, **arguments: Any) -> Result:
    return session.call({"tool": tool, "arguments": arguments})


def tree(root: Path, files: int = 200) -> None:
    for n in range(files):
        place = root / f"tree/d{n % 7}/f{n}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(f"{n}\n".encode() * n)
        place.chmod(0o600 if n % 3 else 0o755)
    (root / "tree/link").symlink_to("d0/f0")
    (root / "tree/empty").mkdir()


def facts(root: Path) -> dict[str, tuple[Any, ...]]:
    return {
        str(place.relative_to(root)): (place.lstat().st_mode, place.is_symlink() and place.readlink())
        for place in root.rglob("*")
        if ".ringfence" not in place.parts
    }


def test_a_large_tree_goes_by_a_rename_and_comes_back_whole(root: Path, session: Session) -> None:
    tree(root)
    before, modes = files_of(root), facts(root)
    deleted = call(session, "delete", path="tree")
    assert deleted.ok
    assert not (root / "tree").exists()
    assert len(caught(root)) == 1
    assert session.state.rows("SELECT count(*) FROM blob") == [(0,)]
    undone = session.undo(deleted.data["call_id"])
    assert undone.ok, undone.content
    assert files_of(root) == before
    assert facts(root) == modes
    again = session.undo(undone.data["call_id"])
    assert again.ok, again.content
    assert files_of(root) == {}


class Asked:
    """How much the database does for what is asked of it: rows it gives, and steps of its machine."""

    def __init__(self, session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = self.steps = 0
        rows = session.state.rows

        def counted(sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
            found = rows(sql, values)
            self.rows += len(found)
            return found

        monkeypatch.setattr(session.state, "rows", counted)
        session.state.db.set_progress_handler(self._step, 100)  # type: ignore[attr-defined]

    def _step(self) -> int:
        self.steps += 1
        return 0


def work(root: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, files: int) -> tuple[Asked, Asked]:
    """What is asked of the database to show what a deletion changed, and to take it back."""
    for n in range(files):
        place = root / f"tree/d{n // 50}/f{n}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    before = files_of(root)
    with Session(root, ALLOW, state=root.parent / f"state-{files}", session="s") as session:
        deleted = call(session, "delete", path="tree")
        assert deleted.ok
        shown = Asked(session, monkeypatch)
        assert sum(one.removals for one in session.changes()) == files * content.count(b"\n")
        monkeypatch.undo()
        undone = Asked(session, monkeypatch)
        assert session.undo(deleted.data["call_id"]).ok
        monkeypatch.undo()
    assert files_of(root) == before
    return shown, undone


@pytest.mark.parametrize("content", [b"", b"the same\n"])
def test_equal_files_cost_no_more_each_the_more_there_are(
    root: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    few, many = (work(root, monkeypatch, content, files) for files in (100, 800))
    for some, more in zip(few, many, strict=True):
        assert some.rows
        assert more.rows < 10 * some.rows
        assert more.steps < 10 * some.steps


def test_every_version_can_be_read_while_the_catch_is_there(root: Path, session: Session) -> None:
    tree(root)
    content = (root / "tree/d3/f10").read_bytes()
    assert call(session, "delete", path="tree").ok
    first = session.versions("tree/d3/f10")[0]
    assert session.history.content(first.digest or "") == content
    assert session.restore("tree/d3/f10", "initial").ok
    assert (root / "tree/d3/f10").read_bytes() == content


def test_what_was_caught_is_hidden_and_locked(root: Path, session: Session) -> None:
    tree(root)
    assert call(session, "delete", path="tree").ok
    name = caught(root)[0].name
    for tool in ("read_file", "delete", "list_directory"):
        error = call(session, tool, path=f".ringfence/{name}").error
        assert error is not None
        assert error["code"] == "protected_path"
    assert ".ringfence" not in call(session, "directory_tree").content


def test_damage_to_what_was_caught_is_found_and_not_brought_back(root: Path, session: Session) -> None:
    tree(root)
    deleted = call(session, "delete", path="tree")
    file = next(place for place in caught(root)[0].rglob("f199"))
    file.write_bytes(b"something else")
    result = session.restore("tree/d3/f199", "initial")
    assert result.error is not None
    assert result.error["code"] == "not_recoverable"
    assert not (root / "tree/d3/f199").exists()
    assert file.read_bytes() == b"something else"
    assert deleted.ok


def test_a_file_with_another_name_is_copied(root: Path, session: Session) -> None:
    # What is written through the other name would change what was caught.
    tree(root)
    (root / "other").write_bytes(b"as it was\n")
    os.link(root / "other", root / "tree/d0/linked")
    deleted = call(session, "delete", path="tree")
    (root / "other").write_bytes(b"written through the other name\n")
    assert session.undo(deleted.data["call_id"]).ok
    assert (root / "tree/d0/linked").read_bytes() == b"as it was\n"


def test_a_tree_that_changed_after_it_was_listed_is_put_back(root: Path, session: Session) -> None:
    tree(root)
    real = session.history.begin

    def begin(*given: Any) -> int:
        op = real(*given)
        (root / "tree/d0/late").write_bytes(b"came late\n")
        return op

    session.history.begin = begin  # type: ignore[method-assign]
    before = files_of(root)
    error = call(session, "delete", path="tree").error
    assert error is not None
    assert error["code"] == "path_changed"
    assert files_of(root) == {**before, "tree/d0/late": b"came late\n"}
    assert caught(root) == []


def test_a_file_larger_than_fits_in_memory_is_deleted_and_brought_back_in_pieces(
    root: Path, session: Session
) -> None:
    size = 65 << 20
    with (root / "huge").open("wb") as file:
        for n in range(65):
            file.write(bytes([n]) * (1 << 20))
    before = subprocess.run(["sha256sum", "huge"], cwd=root, capture_output=True, check=True).stdout
    tracemalloc.start()
    try:
        deleted = call(session, "delete_file", path="huge")
        assert deleted.ok, deleted.content
        undone = session.undo(deleted.data["call_id"])
        assert undone.ok, undone.content
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < size / 4
    assert subprocess.run(["sha256sum", "huge"], cwd=root, capture_output=True, check=True).stdout == before


def test_a_large_file_is_moved_and_moved_back(root: Path, session: Session) -> None:
    with (root / "huge").open("wb") as file:
        file.truncate(65 << 20)
    moved = call(session, "move_file", source="huge", destination="there")
    assert moved.ok, moved.content
    assert session.undo(moved.data["call_id"]).ok
    assert (root / "huge").stat().st_size == 65 << 20


def test_large_content_that_is_overwritten_is_kept_in_a_file(root: Path, session: Session) -> None:
    old = os.urandom(LARGE + 1)
    (root / "f").write_bytes(old)
    assert call(session, "create_file", path="f", content="new", allow_overwrite=True).ok
    (file,) = (root.parent / "state").rglob("content/*")
    assert file.name == digest(old)
    assert file.read_bytes() == old
    assert session.restore("f", "initial").ok
    assert (root / "f").read_bytes() == old
    file.write_bytes(b"x")
    error = session.restore("f", "v1").error
    assert error is None
    broken = session.restore("f", "initial").error
    assert broken is not None
    assert broken["code"] == "not_recoverable"
    assert (root / "f").read_bytes() == b"new"


# Swaps a new version with the one that is there, so that it knows what it took out itself; where nothing is
# there it puts one. Every version that it put and did not take out again went with a deletion, or is there.
WRITER = """
import ctypes, hashlib, os, sys
libc = ctypes.CDLL(None)
EXCHANGE, NOREPLACE, HERE = 2, 1, -100
print("ready", flush=True)
n = 0
while not os.path.exists("stop"):
    data = f"{n} ".encode() * int(sys.argv[1])
    with open("new", "wb") as file:
        file.write(data)
    swapped = libc.renameat2(HERE, b"new", HERE, b"f", EXCHANGE) == 0
    if swapped or libc.renameat2(HERE, b"new", HERE, b"f", NOREPLACE) == 0:
        print("+", hashlib.sha256(data).hexdigest())
        n += 1
    if swapped:
        with open("new", "rb") as file:
            print("-", hashlib.sha256(file.read()).hexdigest())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the writer needs a swap in one step")
@pytest.mark.parametrize("times", [10, 60_000], ids=["small", "large"])
def test_a_writer_that_replaces_a_file_while_it_is_deleted_loses_nothing(
    root: Path, session: Session, times: int
) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(times)], cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    lines: list[list[str]] = []
    reader = threading.Thread(target=lambda: lines.extend(line.split() for line in writer.stdout or ()))
    reader.start()
    deleted = 0
    try:
        for tries in range(20 * DELETIONS):
            if tries >= DELETIONS and deleted > ENOUGH:  # on a busy machine few are quicker than the writer
                break
            deleted += call(session, "delete_file", path="f").ok
    finally:
        (root / "stop").touch()
        reader.join()
        writer.wait()
        writer.stdout.close()
    put, taken = ({name for sign, name in lines if sign == wanted} for wanted in "+-")
    assert deleted > ENOUGH
    assert len(put) > deleted
    assert (
        put - taken - kept(session, root.parent) - {digest(data) for data in files_of(root).values()} == set()
    )
    for (name,) in session.state.rows("SELECT before FROM item WHERE state = 'done' AND kind = 'delete'"):
        assert digest(session.history.content(name)) == name


@pytest.mark.parametrize("size", [0, 1, 64, 65, 8 << 10, (8 << 10) + 1, 16 << 10, (16 << 10) + 1, LARGE])
@pytest.mark.parametrize("random", [False, True])
def test_what_is_small_is_kept_in_the_database_byte_for_byte(
    root: Path, session: Session, size: int, random: bool
) -> None:
    data = os.urandom(size) if random else (b"a line of text, and another\n" * (size // 20 + 1))[:size]
    (root / "f").write_bytes(data)
    assert call(session, "delete_file", path="f").ok
    assert session.history.content(digest(data)) == data
    rows = session.state.rows("SELECT size, length(data) FROM blob WHERE hash = ?", (digest(data),))
    assert rows[0][0] == size
    # What compresses takes less, what does not never more.
    assert rows[0][1] <= (size if random or size < 1000 else size // 4)


def test_the_log_is_moved_into_the_database_beside_the_calls(
    root: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_OFTEN", 8)
    for n in range(20):
        assert call(session, "create_file", path=f"f{n}", content=f"{n}").ok
    held: Any = session.state
    held._moving.join()
    # Opened like this it is the database alone, without what is in its log.
    alone = sqlite3.connect(f"file:{held.folder}/state.db?immutable=1", uri=True)
    try:
        ((moved,),) = alone.execute("SELECT count(*) FROM op WHERE state = 'done'").fetchall()
    finally:
        alone.close()
    assert moved >= 3
    assert audit.verify(held) == []
    assert session.state.rows("SELECT count(*) FROM op") == [(20,)]


def test_the_log_is_written_anew_in_place_of_growing(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "_OFTEN", 16)
    held: Any = session.state
    sizes = []
    for turn in range(12):
        for n in range(8):
            assert call(session, "create_file", path=f"f{turn}-{n}", content=f"{n}").ok
        held._moving.join()
        sizes.append(Path(held.folder, "state.db-wal").stat().st_size)
    # A later round has some more pages: of the tables' upper levels, and what was added beside the thread.
    assert sizes[-1] < 3 * sizes[0]


def test_what_was_committed_stands_where_no_thread_is_to_be_had(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(state, "_OFTEN", 2)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        for n in range(5):
            assert call(session, "create_file", path=f"f{n}", content=f"{n}").ok
    assert call(session, "read_file", path="f4").ok
    assert session.state.rows("SELECT count(*) FROM op WHERE state = 'done'") == [(5,)]
