"""An undo moves back what was caught, with one rename, if it is unchanged; else each file is made anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.execution import apply
from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.session.session import Session
from tests.crash.harness import files_of
from tests.storage.quarantine import caught

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\ndurable: false\nlimits: {delete: {max_files: 9999}}\n')


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for n in range(140):
        place = tmp_path / f"ws/tree/d{n % 2}/f{n}"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(f"{n}\n".encode() * n)
    (tmp_path / "ws/tree/link").symlink_to("d0/f0")
    (tmp_path / "ws/tree/d0/f0").chmod(0o755)
    for place in [*tmp_path.rglob("*"), tmp_path / "ws/tree"]:
        os.utime(place, (1e9, 1e9), follow_symlinks=False)
    return tmp_path / "ws"


@pytest.fixture
def session(root: Path) -> Iterator[Session]:
    with opened(root) as session:
        yield session


def opened(root: Path) -> Session:
    return Session(root, ALLOW, state=root.parent / "state", session="s")


def call(session: Session, tool: str, **arguments: Any) -> str:
    result = session.call({"tool": tool, "arguments": arguments})
    assert result.ok, result.content
    return str(result.data["call_id"])


def facts(root: Path) -> dict[str, tuple[Any, ...]]:
    """What everything in the tree is, without the time of access."""
    found = ((place, place.lstat()) for place in (root / "tree").rglob("*"))
    return {str(place): (info.st_mode, info.st_mtime_ns, info.st_size) for place, info in found}


def inodes(root: Path, below: str = "tree") -> dict[str, int]:
    return {str(place): place.lstat().st_ino for place in (root / below).rglob("*")}


def meanwhile(session: Session, act: Callable[[], object]) -> None:
    """Have something happen once an intent is committed, before its changes are made."""
    begin = session.history.begin

    def begun(*given: Any) -> int:
        op = begin(*given)
        act()
        return op

    session.history.begin = begun  # type: ignore[method-assign]


def code(result: Result) -> str | None:
    return None if result.error is None else str(result.error["code"])


def test_what_was_caught_is_the_same_files_again(root: Path, session: Session) -> None:
    before = facts(root), inodes(root), files_of(root)
    undone = session.undo(call(session, "delete", path="tree"))
    assert undone.ok, undone.content
    assert len(undone.data["changes"]) == len(before[1]) + 1
    assert (facts(root), inodes(root), files_of(root)) == before
    assert caught(root, "kept-*") == []
    assert session.state.rows("SELECT * FROM caught") == []


def test_a_large_file_is_the_same_file_again(root: Path, session: Session) -> None:
    (root / "large").write_bytes(b"L" * (LARGE + 1))
    before = (root / "large").stat()
    undone = session.undo(call(session, "delete_file", path="large"))
    assert undone.ok
    after = (root / "large").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert session.undo(undone.data["call_id"]).ok
    assert not (root / "large").exists()


def test_it_can_be_taken_back_again_and_again(root: Path, session: Session) -> None:
    before = facts(root), inodes(root)
    deleted = call(session, "delete", path="tree")
    undone = session.undo(deleted).data["call_id"]
    redone = session.undo(undone).data["call_id"]
    assert not (root / "tree").exists()
    assert session.undo(redone).ok
    assert (facts(root), inodes(root)) == before
    call(session, "delete", path="tree")
    # The first deletion's own catch is no longer there; what it held is in the last one's.
    assert session.undo(deleted).ok
    assert (facts(root), inodes(root)) == before


def test_what_changed_in_the_last_moment_goes_back_to_where_it_was_kept(root: Path, session: Session) -> None:
    deleted = call(session, "delete", path="tree")
    [place] = caught(root, "kept-*")
    meanwhile(session, lambda: (place / "d1/f7").write_bytes(b"changed"))
    assert code(session.undo(deleted)) == "path_changed"
    assert not (root / "tree").exists()
    assert (place / "d1/f7").read_bytes() == b"changed"
    assert code(session.undo(deleted)) == "not_recoverable"
    assert not (root / "tree").exists()


@pytest.mark.parametrize("act", ["more", "less"])
def test_what_came_or_went_in_the_last_moment_is_seen(root: Path, session: Session, act: str) -> None:
    deleted = call(session, "delete", path="tree")
    [place] = caught(root, "kept-*")
    meanwhile(session, (place / "d1/new").mkdir if act == "more" else (place / "link").unlink)
    assert code(session.undo(deleted)) == "path_changed"
    assert not (root / "tree").exists()
    assert place.is_dir()


def test_a_place_that_is_taken_meanwhile_is_left_alone(root: Path, session: Session) -> None:
    before = facts(root)
    deleted = call(session, "delete", path="tree")
    meanwhile(session, (root / "tree").mkdir)
    assert code(session.undo(deleted)) == "already_exists"
    assert list((root / "tree").iterdir()) == []
    (root / "tree").rmdir()
    del session.history.begin
    assert session.undo(deleted).ok
    assert facts(root) == before


@pytest.mark.parametrize("change", ["mode", "name"])
def test_what_is_not_as_it_was_recorded_is_made_anew(root: Path, session: Session, change: str) -> None:
    before = files_of(root), inodes(root)
    deleted = call(session, "delete", path="tree")
    [place] = caught(root, "kept-*")
    if change == "mode":
        (place / "d0/f2").chmod(0o777)
    else:
        os.link(place / "d0/f2", root / "other")
    assert session.undo(deleted).ok
    (root / "other").unlink(missing_ok=True)
    assert files_of(root) == before[0]
    assert not set(inodes(root).values()) & set(before[1].values())
    assert (root / "tree/d0/f2").stat().st_mode & 0o777 == 0o644
    assert place.is_dir()


def test_a_part_of_a_tree_is_made_anew(root: Path, session: Session) -> None:
    call(session, "delete", path="tree")
    assert session.undo_to("initial", tree="tree/d0").ok
    assert sorted(place.name for place in (root / "tree").iterdir()) == ["d0"]
    assert len(caught(root, "kept-*")) == 1
    # What is there by now is in the way of the rest of it, which comes back beside it.
    assert session.undo_to("initial").ok
    assert len(inodes(root)) == 143


def test_a_tree_deleted_after_a_part_of_it_comes_back_with_both_moved(root: Path, session: Session) -> None:
    before = facts(root), inodes(root)
    call(session, "delete", path="tree/d0")
    call(session, "create_file", path="tree/d1/f1", content="new", allow_overwrite=True)
    call(session, "delete", path="tree")
    assert session.undo_to("initial").ok
    after = facts(root), inodes(root)
    assert after[0].keys() == before[0].keys()
    assert {path: row for path, row in after[0].items() if not path.endswith("d1")} == {
        path: row for path, row in before[0].items() if not path.endswith("d1")
    }
    d0 = {path for path in before[1] if "/d0" in path}
    assert {path: after[1][path] for path in d0} == {path: before[1][path] for path in d0}


def test_nothing_comes_into_a_tree_that_is_being_moved_back(
    root: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found to differ, the tree would go back into the quarantine, with what another call made in it."""
    monkeypatch.setattr(apply, "_PATIENCE", 0.05)
    deleted = call(session, "delete", path="tree")
    answers: list[str | None] = []
    move = session.workspace.backend.move

    def moving(*given: Any) -> Any:
        lost = move(*given)
        with opened(root) as other:
            arguments = {"path": "tree/new", "content": "theirs"}
            answers.append(code(other.call({"tool": "create_file", "arguments": arguments})))
        return lost

    session.workspace.backend.move = moving  # type: ignore[method-assign]
    assert session.undo(deleted).ok
    assert answers == ["path_changed"]


def test_a_tree_that_was_not_moved_back_stays_known(root: Path) -> None:
    """A directory of the same name is another's while the tree is in the quarantine."""
    process = os.fork()
    if process == 0:
        _die_at_the_move(root, False)
    os.waitpid(process, 0)
    (root / "tree").mkdir()
    with opened(root) as session:
        last = [row["outcome"] for row in audit.records(session.state) if row["event"] == "settled"]
        assert last == ["aborted"]
        assert len(session.state.rows("SELECT * FROM caught")) == len(caught(root, "kept-*")) == 1


@pytest.mark.parametrize("moved", [False, True])
def test_an_undo_that_was_killed_is_settled_by_what_is_there(root: Path, moved: bool) -> None:
    before = facts(root), inodes(root)
    process = os.fork()
    if process == 0:
        _die_at_the_move(root, moved)
    os.waitpid(process, 0)
    with opened(root) as session:
        call(session, "list_directory", path=".")
        last = [row["outcome"] for row in audit.records(session.state) if row["event"] == "settled"]
        assert last == ["done" if moved else "aborted"]
        assert len(session.state.rows("SELECT * FROM caught")) == len(caught(root, "kept-*")) == (not moved)
        if not moved:
            assert session.undo_to("initial").ok
    assert (facts(root), inodes(root)) == before


def _die_at_the_move(root: Path, moved: bool) -> None:
    try:
        session = opened(root)
        deleted = call(session, "delete", path="tree")
        backend: Any = session.workspace.writable()
        move = backend.move

        def dies(*given: Any) -> None:
            if moved:
                move(*given)
            os._exit(0)

        backend.move = dies
        session.undo(deleted)
    finally:
        os._exit(1)


def test_an_own_id_is_meant_before_one_that_a_caller_gave(root: Path, session: Session) -> None:
    deleted = call(session, "delete", path="tree")
    other = session.call({"id": deleted, "tool": "create_file", "arguments": {"path": "x", "content": ""}})
    assert other.ok
    assert session.undo(deleted).ok
    assert (root / "tree").is_dir()
    assert (root / "x").exists()


def test_a_prune_and_an_undo_of_the_same_tree_leave_all_of_it_or_nothing(
    root: Path, session: Session
) -> None:
    """The prune has decided before the undo begins, and removes the tree before the undo moves it."""
    deleted = call(session, "delete", path="tree")
    with opened(root) as other:
        backend = other.workspace.writable()
        discard, answers = backend.discard, []

        def undo_first(name: str) -> None:
            meanwhile(session, lambda: discard(name))
            answers.append(code(session.undo(deleted)))

        backend.discard = undo_first  # type: ignore[method-assign]
        assert other.prune(older_than=0, keep=0).ok
    assert answers == ["not_recoverable"]
    assert not (root / "tree").exists()
    assert session.state.rows("SELECT * FROM caught") == caught(root, "kept-*") == []
    assert caught(root, "going-*") == []
    states = session.state.rows("SELECT DISTINCT state FROM op WHERE tool = 'undo'")
    assert states in ([], [("aborted",)])


@pytest.mark.parametrize("at", ["link", "unlink"])
def test_a_file_moved_back_where_a_rename_may_not_refuse_to_replace(root: Path, at: str) -> None:
    """Linked and unlinked in place of one rename: killed in between, it has both names."""
    (root / "large").write_bytes(b"L" * (LARGE + 1))
    process = os.fork()
    if process == 0:
        _die_at_the_link(root, at)
    assert os.waitpid(process, 0)[1] == 0
    with opened(root) as session:
        last = [row["outcome"] for row in audit.records(session.state) if row["event"] == "settled"]
        assert last == ["done" if at == "unlink" else "aborted"]
        assert (root / "large").exists() == (at == "unlink")
        assert (
            len(session.state.rows("SELECT * FROM caught")) == len(caught(root, "kept-*")) == (at == "link")
        )
    assert at == "link" or (root / "large").stat().st_nlink == 1


def _die_at_the_link(root: Path, at: str) -> None:
    try:
        session = opened(root)
        deleted = call(session, "delete_file", path="large")
        backend: Any = session.workspace.writable()
        backend.kernel = replace(backend.kernel, rename_new=False)
        setattr(os, at, lambda *_, **__: os._exit(0))
        session.undo(deleted)
    finally:
        os._exit(1)
