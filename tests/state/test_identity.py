"""The state in use is the one that was opened: else nothing in the workspace is changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.call import Result
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import local_place
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state.open import default_place

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws/x").write_text("mine\n")
    return tmp_path / "ws"


@pytest.fixture
def place(root: Path) -> Path:
    """The directory of the workspace's state."""
    return Path(default_place(local_place(str(root.resolve())), str(root.parent / "state")))


@pytest.fixture
def session(root: Path) -> Iterator[Session]:
    with begun(root) as session:
        assert write(session, "first", "1").ok
        yield session


def begun(root: Path) -> Session:
    return Session(root, ALLOW, state=root.parent / "state")


def write(session: Session, path: str, content: str) -> Result:
    arguments = {"path": path, "content": content, "allow_overwrite": True}
    return session.call({"tool": "create_file", "arguments": arguments})


def remove(place: Path) -> None:
    shutil.rmtree(place)


def remove_file(place: Path) -> None:
    (place / "state.db").unlink()


def move_away(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))


def replace(place: Path) -> None:
    backup = place / "backup"
    with closing(sqlite3.connect(backup)) as db:
        db.execute("CREATE TABLE op(id INTEGER)")
    backup.chmod(0o600)
    backup.rename(place / "state.db")


def begin_another(place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    begun(place.parent.parent / "ws").close()


def empty(place: Path) -> None:
    os.truncate(place / "state.db", 0)


def truncate(place: Path) -> None:
    with closing(sqlite3.connect(place / "state.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(place / "state.db", 8192)


def remove_log(place: Path) -> None:
    (place / "state.db-wal").unlink()


def remove_index(place: Path) -> None:
    (place / "state.db-shm").unlink()


HARM: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "removed": (remove, "removed", "start"),
    "its file removed": (remove_file, "removed", "state salvage"),
    "moved": (move_away, "removed", "start"),
    "replaced": (replace, "not the one that was opened", "state check"),
    "begun anew": (begin_another, "not the one that was opened", "state check"),
    "emptied": (empty, "empty", "state salvage"),
    "truncated": (truncate, "truncated", "state salvage"),
    "its log removed": (remove_log, "log", "state check"),
    "its index removed": (remove_index, "log", "state check"),
}


@pytest.mark.parametrize("harm", HARM)
def test_nothing_is_changed_when_the_state_is_another(
    session: Session, root: Path, place: Path, harm: str
) -> None:
    act, word, hint = HARM[harm]
    act(place)
    result = write(session, "x", "theirs")
    assert (root / "x").read_text() == "mine\n"
    assert result.error is not None
    assert result.error["code"] == "history_unavailable"
    assert word in result.error["message"]
    assert hint in result.error["hint"]
    assert str(root.parent) not in str(result.error)
    for tool, arguments in (("delete_file", {"path": "x"}), ("read_file", {"path": "x"})):
        result = session.call({"tool": tool, "arguments": arguments})
        assert result.error is not None, "what cannot be recorded is not answered"
        assert result.error["code"] == "history_unavailable"


def test_a_state_that_comes_back_is_used_again(session: Session, root: Path, place: Path) -> None:
    place.rename(place.with_name("elsewhere"))
    assert not write(session, "x", "theirs").ok
    place.with_name("elsewhere").rename(place)
    assert write(session, "x", "theirs").ok


def test_removed_between_the_intent_and_the_change(
    session: Session, root: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = session.history.begin

    def then_removed(*arguments: object) -> int:
        op = begin(*arguments)  # type: ignore[arg-type]
        shutil.rmtree(place)
        return op

    monkeypatch.setattr(session.history, "begin", then_removed)
    assert not write(session, "x", "theirs").ok
    assert (root / "x").read_text() == "mine\n"


def test_a_session_whose_state_is_gone_ends_quietly(root: Path, place: Path) -> None:
    session = begun(root)
    shutil.rmtree(place)
    session.close()
    assert not place.exists()


def test_a_session_whose_state_is_gone_leaves_the_new_one_alone(root: Path, place: Path) -> None:
    old = begun(root)
    assert write(old, "first", "1").ok
    shutil.rmtree(place)
    with begun(root) as new:
        assert write(new, "second", "2").ok
        assert not write(old, "x", "theirs").ok
        old.close()
        assert write(new, "third", "3").ok
    with begun(root) as again:
        assert [version.name for version in again.versions("third")] == ["initial", "v1"]


def test_one_of_two_processes_is_left_with_a_state_that_is_gone(root: Path, place: Path) -> None:
    with begun(root) as one, begun(root) as two:
        assert write(one, "a", "1").ok
        shutil.rmtree(place)
        assert not write(one, "b", "1").ok
        assert not write(two, "b", "1").ok
    assert not (root / "b").exists()


def test_a_prune_of_another_process_is_no_harm(root: Path, place: Path) -> None:
    with begun(root) as one:
        for n in range(40):
            assert write(one, "big", os.urandom(30_000).hex()).ok, n
        with begun(root) as two:
            assert two.prune(older_than=0).ok
        with closing(sqlite3.connect(place / "state.db")) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert write(one, "x", "theirs").ok
        assert (place / "state.db").stat().st_size < 1_000_000


def test_a_state_reached_through_a_link(root: Path) -> None:
    (root.parent / "real").mkdir(mode=0o700)
    (root.parent / "state").symlink_to("real")
    with begun(root) as session:
        assert write(session, "a", "1").ok
        (root.parent / "state").unlink()
        (root.parent / "other").mkdir(mode=0o700)
        (root.parent / "state").symlink_to("other")
        assert not write(session, "x", "theirs").ok
        assert (root / "x").read_text() == "mine\n"


@pytest.mark.parametrize("harm", [remove_file, empty], ids=["missing", "empty"])
@pytest.mark.parametrize("left", ["owners", "content", "state.db-wal", "nothing"])
def test_half_a_state_is_not_taken_for_a_new_one(
    root: Path, place: Path, harm: Callable[[Path], None], left: str
) -> None:
    begun(root).close()
    shutil.rmtree(place / "owners")
    if left == "state.db-wal":
        (place / left).write_bytes(b"x")
        (place / left).chmod(0o600)
    elif left != "nothing":
        (place / left).mkdir(mode=0o700)
    harm(place)
    before = sorted(place.rglob("*"))
    with pytest.raises(CallError) as caught:
        begun(root)
    assert caught.value.code == "history_unavailable"
    assert "state salvage" in str(caught.value.hint)
    assert sorted(place.rglob("*")) == before


def test_what_a_process_left_that_died_while_it_began_is_no_hindrance(root: Path, place: Path) -> None:
    place.mkdir(parents=True, mode=0o700)
    (place / "state.db.part").write_bytes(b"half a datab")
    (place / "state.db.part").chmod(0o600)
    (place / "state.db.part-journal").write_bytes(b"half a journal")
    with begun(root) as session:
        assert write(session, "x", "theirs").ok
    assert [name for name in os.listdir(place) if "part" in name] == []


def test_each_state_has_an_id_of_its_own(root: Path, place: Path) -> None:
    def identity() -> str:
        with closing(sqlite3.connect(place / "state.db")) as db:
            ((found,),) = db.execute("SELECT value FROM meta WHERE name = 'id'").fetchall()
        return str(found)

    begun(root).close()
    first = identity()
    begun(root).close()
    assert identity() == first
    shutil.rmtree(place)
    begun(root).close()
    assert len(identity()) == len(first) >= 32
    assert identity() != first
