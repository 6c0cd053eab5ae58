"""What a dead process left open is settled by looking at what is there, at a start or the next call."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Amount, Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution import apply
from ringfence.toolkit.execution.recovery_states import PathState, by_stage
from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.history.records import Item, Operation
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local.deletion import Removal
from tests.storage.quarantine import caught

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')


@pytest.fixture
def root(tmp_path: Path, state_place: str) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "state_place").write_text(state_place)
    return tmp_path / "ws"


def opened(root: Path) -> Session:
    return Session(root, ALLOW, state=(root.parent / "state_place").read_text(), session="s")


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


def dies(root: Path, act: Callable[[Session], Any], at: str) -> None:
    """Do `act` in a process of its own, which is killed where the backend would `at`."""
    process = os.fork()
    if process == 0:
        session = opened(root)
        setattr(session.workspace.backend, at, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        act(session)
        os._exit(1)
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status)


def settled(session: Session) -> list[str]:
    return [r["outcome"] for r in audit.records(session.state) if r["event"] == "settled"]


def record(session: Session) -> dict[str, Any]:
    return [r for r in audit.records(session.state) if r["event"] == "settled"][-1]


def amounts(session: Session) -> tuple[int, int, int]:
    return tuple(record(session)[name] for name in ("files", "written", "freed"))  # type: ignore[return-value]


def test_the_totals_count_what_a_dead_call_did(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        (root / "t").mkdir(exist_ok=True)
        (root / "t" / name).write_text(name * 5)

    def half(session: Session) -> None:
        unlink, left = os.unlink, [2]

        def dying(*arguments: Any, **more: Any) -> None:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            unlink(*arguments, **more)

        monkeypatch.setattr(os, "unlink", dying)
        call(session, "delete", path="t")

    dies(root, half, "close")
    (catch,) = caught(root, ".ringfence-*")
    (catch / "late").write_text("theirs")  # so that the rest goes back
    with opened(root) as session:
        assert sorted(path.name for path in (root / "t").iterdir()) == ["b", "c", "late"]
        assert record(session)["outcome"] == "partial"
        assert amounts(session) == (1, 0, 5)
        assert session.history.totals("s", "default", "delete") == Amount(1, 5)


def test_the_totals_count_nothing_of_what_was_not_begun(root: Path) -> None:
    (root / "f").write_text("old")
    act: list[tuple[str, dict[str, Any], str]] = [
        ("delete_file", {"path": "f"}, "remove"),
        ("move_file", {"source": "f", "destination": "g"}, "move"),
        ("create_file", {"path": "h", "content": "new"}, "create"),
    ]
    for tool, arguments, at in act:
        dies(root, lambda s, tool=tool, arguments=arguments: call(s, tool, **arguments), at)  # type: ignore[misc]
        with opened(root) as session:
            assert amounts(session) == (0, 0, 0)
            assert session.history.totals("s", "default", "*") == Amount()


def test_what_nobody_knows_counts_for_a_limit_and_is_not_on_record_as_done(root: Path) -> None:
    (root / "f").write_text("old")
    dies(root, lambda s: call(s, "create_file", path="f", content="new!", allow_overwrite=True), "replace")
    (root / "f").write_text("theirs")
    with opened(root) as session:
        assert amounts(session) == (0, 0, 0)
        assert session.history.totals("s", "default", "write") == Amount(1, 4)


def test_what_was_not_begun_is_aborted(root: Path) -> None:
    (root / "f").write_text("old")
    dies(root, lambda s: call(s, "create_file", path="f", content="new", allow_overwrite=True), "replace")
    with opened(root) as session:
        assert settled(session) == ["aborted"]
        assert session.versions("f") == []
        assert call(session, "delete_file", path="f").ok


def test_what_a_stranger_changed_since_is_unknown(root: Path) -> None:
    (root / "f").write_text("old")
    dies(root, lambda s: call(s, "create_file", path="f", content="new", allow_overwrite=True), "replace")
    (root / "f").write_text("theirs")
    with opened(root) as session:
        assert settled(session) == ["unknown"]
    assert (root / "f").read_text() == "theirs"


def test_a_live_neighbour_is_left_alone(root: Path) -> None:
    (root / "f").write_text("old")
    with opened(root) as first:
        first.workspace.backend.remove = _stop  # type: ignore[method-assign]
        first.history.abandon = lambda op: None  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            call(first, "delete_file", path="f")
        with opened(root) as second:
            assert settled(second) == []


def test_a_call_waits_for_another_at_the_path_and_then_gives_up(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apply, "_PATIENCE", 0.1)
    (root / "f").write_text("old")
    with opened(root) as first:
        first.workspace.backend.remove = _stop  # type: ignore[method-assign]
        first.history.abandon = lambda op: None  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            call(first, "delete_file", path="f")
        with opened(root) as second:
            assert call(second, "delete_file", path="f").error["code"] == "path_changed"
            assert call(second, "create_file", path="other", content="").ok


def test_a_call_settles_what_stands_in_its_way(root: Path) -> None:
    (root / "f").write_text("old")
    with opened(root) as session:
        dies(root, lambda s: call(s, "delete_file", path="f"), "remove")
        assert call(session, "delete_file", path="f").ok
        assert settled(session) == ["aborted"]


def test_a_call_that_is_interrupted_is_looked_after(root: Path) -> None:
    (root / "f").write_text("old")
    with opened(root) as session:
        real = session.workspace.backend.remove
        session.workspace.backend.remove = _stop  # type: ignore[method-assign]
        with pytest.raises(KeyboardInterrupt):
            call(session, "delete_file", path="f")
        session.workspace.backend.remove = real  # type: ignore[method-assign]
        assert call(session, "delete_file", path="f").ok


def test_an_outcome_that_could_not_be_written_is_written_before_the_next_change(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("old")
    with opened(root) as session:
        real = session.history._finish

        def fails(*_: Any) -> str:
            raise CallError("history_unavailable", "full")

        monkeypatch.setattr(session.history, "_finish", fails)
        assert call(session, "delete_file", path="f").ok
        assert call(session, "create_file", path="g", content="").error["code"] == "history_unavailable"
        assert not (root / "g").exists()
        monkeypatch.setattr(session.history, "_finish", real)
        assert call(session, "create_file", path="f", content="again").ok
        assert [v.name for v in session.versions("f")] == ["initial", "v1", "v2"]
        assert audit.verify(session.state) == []


def test_a_caught_file_that_is_not_what_was_recorded_goes_back(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "f").write_text("old")
    dies(root, lambda s: call(s, "delete", path="d"), "sync")
    (catch,) = caught(root, ".ringfence-*")
    (catch / "late").write_text("theirs")
    with opened(root) as session:
        assert settled(session) == ["aborted"]
    assert (root / "d" / "late").read_text() == "theirs"
    assert (root / "d" / "f").read_text() == "old"
    assert caught(root, ".ringfence-*") == []


def test_a_caught_tree_whose_place_is_taken_stays_where_it_is(root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "f").write_text("old")
    dies(root, lambda s: call(s, "delete", path="d"), "sync")
    (catch,) = caught(root, ".ringfence-*")
    (catch / "late").write_text("theirs")
    (root / "d").mkdir()
    with opened(root) as session:
        assert settled(session) == ["unknown"]
    assert (catch / "late").read_text() == "theirs"


def test_nothing_is_put_back_through_a_link(root: Path) -> None:
    (root / "d" / "tree").mkdir(parents=True)
    (root / "d" / "tree" / "f").write_text("old")
    (root / "locked").mkdir()
    dies(root, lambda s: call(s, "delete", path="d/tree"), "sync")
    (catch,) = caught(root, ".ringfence-*")
    (catch / "more").write_text("not what was recorded, so it would go back")
    (root / "d").rmdir()
    (root / "d").symlink_to("locked")
    with opened(root) as session:
        assert settled(session) == ["unknown"]
    assert list((root / "locked").iterdir()) == []
    assert (catch / "f").read_text() == "old"


def test_a_stranger_in_place_of_our_folder_is_named(root: Path) -> None:
    (root.parent / "state_place").write_text(":memory:")  # with which a deletion is caught in the workspace
    (root / "f").write_text("old")
    (root / "elsewhere").mkdir()
    (root / ".ringfence").symlink_to("elsewhere")
    with opened(root) as session:
        error = call(session, "delete_file", path="f").error
    assert error["code"] == "history_unavailable"
    assert ".ringfence" in error["message"]
    assert (root / "f").read_text() == "old"


def test_what_a_session_moved_or_deleted_is_not_stale_at_its_new_place(root: Path) -> None:
    (root / "f").write_text("1")
    (root / "g").write_text("2")
    with opened(root) as session:
        assert call(session, "create_file", path="f", content="x", allow_overwrite=True).ok
        assert call(session, "move_file", source="g", destination="f", allow_overwrite=True).ok
        assert call(session, "create_file", path="f", content="y", allow_overwrite=True).ok
        assert call(session, "delete_file", path="f").ok
        assert call(session, "create_file", path="h", content="z").ok
        assert call(session, "move_file", source="h", destination="f").ok
        assert call(session, "insert_at_line", path="f", content="w", line=0).ok


def _stop(*_: Any) -> Any:
    raise KeyboardInterrupt


def states_of(root: Path, *items: Item) -> list[str]:
    """What the next start makes of an intent that was left open."""
    state = root.parent / "state"
    with Session(root, ALLOW, state=state, session="s") as session:
        operation = Operation("c-open", None, "s", "a", "undo")
        session.history.abandon(session.history.begin(operation, items, {}, lambda: None))
    with Session(root, ALLOW, state=state, session="s") as session:
        return [item.state for item in session.history.call("c-open")]


def test_a_move_back_and_a_write_that_a_death_came_between_are_told_together(tmp_path: Path) -> None:
    """Linked to its new name and not yet gone from its old one, which the write was to take."""
    root = tmp_path / "ws"
    root.mkdir()
    (root / "old").write_bytes(b"moved\n")
    (root / "new").hardlink_to(root / "old")
    items = (
        Item("move", "old", "file", path2="new", after=b"moved\n", grown=6, identity="1"),
        Item("write", "old", "file", after=b"was there\n", grown=10, temporary=".ringfence-0"),
    )
    assert states_of(root, *items) == ["done", "aborted"]
    assert not (root / "old").exists()
    assert (root / "new").read_bytes() == b"moved\n"


@pytest.mark.parametrize("done", [0, 1, 2])
def test_the_same_content_at_both_ends_of_a_move_is_told(tmp_path: Path, done: int) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    for name in {0: ("old",), 1: ("new",), 2: ("old", "new")}[done]:
        (root / name).write_bytes(b"same\n")
    items = (
        Item("move", "old", "file", path2="new", after=b"same\n", grown=5, identity="1"),
        Item("write", "old", "file", after=b"same\n", grown=5, temporary=".ringfence-0"),
    )
    assert states_of(root, *items) == ["done"] * done + ["aborted"] * (2 - done)


def test_a_link_that_a_move_left_is_told_from_what_is_written_at_the_old_path(tmp_path: Path) -> None:
    """Killed between link and unlink: the old path has what the next step was to write there."""
    root = tmp_path / "ws"
    root.mkdir()
    (root / "old").write_bytes(b"same\n")
    (root / "new").hardlink_to(root / "old")
    items = (
        Item("move", "old", "file", path2="new", after=b"same\n", grown=5, identity="1"),
        Item("directory", "made", "directory"),
        Item("write", "old", "file", after=b"same\n", grown=5, temporary=".ringfence-0"),
    )
    assert states_of(root, *items) == ["done", "aborted", "aborted"]
    assert not (root / "old").exists()


def test_the_same_content_where_a_move_leads_is_another_file(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    for name in ("old", "new"):
        (root / name).write_bytes(b"same\n")
    inode = str((root / "old").stat().st_ino)
    item = Item("move", "old", "file", path2="new", after=b"same\n", grown=5, identity=f"{inode}:1:1")
    assert states_of(root, item) == ["aborted"]
    assert (root / "old").exists()


@pytest.mark.parametrize("done", range(7))
def test_an_undo_of_directories_is_told_by_all_its_steps(tmp_path: Path, done: int) -> None:
    """A directory moves from a path at which another one is made, and a file over one that moves."""
    root = tmp_path / "ws"
    (root / "d").mkdir(parents=True)
    (root / "d/x").write_bytes(b"moved along\n")
    (root / "f").write_bytes(b"moved\n")
    acts: list[Callable[[], object]] = [
        lambda: (root / "d").rename(root / "e"),
        lambda: None,  # the entry that moves along
        lambda: (root / "f").rename(root / "g"),
        (root / "d").mkdir,
        lambda: (root / "d/x").write_bytes(b"restored\n"),
        lambda: (root / "f").write_bytes(b"was there\n"),
    ]
    for act in acts[:done]:
        act()
    items = (
        Item("move", "d", "directory", path2="e", identity="1"),
        Item("move", "d/x", "file", path2="e/x", size=12),
        Item("move", "f", "file", path2="g", after=b"moved\n", grown=6, identity="1"),
        Item("directory", "d", "directory"),
        Item("write", "d/x", "file", after=b"restored\n", grown=9, temporary=".ringfence-0"),
        Item("write", "f", "file", after=b"was there\n", grown=10, temporary=".ringfence-1"),
    )
    whole = 2 if done == 1 else done  # a directory moves with its entries
    assert states_of(root, *items) == ["done"] * whole + ["aborted"] * (len(items) - whole)


@pytest.mark.parametrize("done", range(3))
def test_a_directory_that_moves_to_where_another_one_was(tmp_path: Path, done: int) -> None:
    root = tmp_path / "ws"
    for name in ("a", "b"):
        (root / name).mkdir(parents=True)
    for source, target in [("a", "c"), ("b", "a")][:done]:
        (root / source).rename(root / target)
    items = (
        Item("move", "a", "directory", path2="c", identity="1"),
        Item("move", "b", "directory", path2="a", identity="2"),
    )
    assert states_of(root, *items) == ["done"] * done + ["aborted"] * (2 - done)


def test_of_directories_that_change_places_nothing_is_guessed(tmp_path: Path) -> None:
    """Before and after, the same paths are directories, and nothing tells which is which."""
    items = (
        Item("move", "a", "directory", path2="c", identity="1"),
        Item("move", "b", "directory", path2="a", identity="2"),
        Item("move", "c", "directory", path2="b", identity="1"),
    )
    with Session(tmp_path, ALLOW, state=":memory:") as session:
        op = session.history.begin(Operation("c-1", None, "s", "a", "undo"), items, {}, lambda: None)
        rows = list(session.history.items("op.id = ?", (op,)))
        session.history.abandon(op)
    assert by_stage(rows, lambda path: PathState("directory") if path in ("a", "b") else None) is None
    assert by_stage(rows, lambda path: PathState("directory") if path in ("b", "c") else None) is not None


def test_an_undo_with_nothing_to_change_is_done(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    root.mkdir()
    (root / "f").write_bytes(b"same")
    with Session(root, ALLOW, state=tmp_path / "state", session="s") as session:
        arguments = {"path": "f", "content": "same", "allow_overwrite": True}
        made = session.call({"tool": "create_file", "arguments": arguments})
        undone = session.undo(made.data["call_id"])
        assert undone.ok
        states = session.state.rows("SELECT state FROM op WHERE call = ?", (undone.data["call_id"],))
    assert states == [("done",)]


def unasked(session: Session) -> None:
    """Let the session begin without asking whether its plan is stale, as an earlier version did."""
    session.history.position = lambda: None  # type: ignore[method-assign, assignment, return-value]


@pytest.mark.parametrize("size", [9, LARGE + 1])
@pytest.mark.parametrize("tool", ["create_file", "move_file", "delete_file"])
def test_a_change_that_a_deletion_was_faster_than_is_aborted(root: Path, tool: str, size: int) -> None:
    (root / "f").write_bytes(b"x" * size)
    arguments: dict[str, Any] = {
        "create_file": {"path": "f", "content": "ours", "allow_overwrite": True},
        "move_file": {"source": "f", "destination": "g"},
        "delete_file": {"path": "f"},
    }[tool]
    process = os.fork()
    if process == 0:
        session = opened(root)
        begin = session.history.begin

        def late(*given: Any) -> int:
            child = os.fork()
            if child == 0:
                with opened(root) as other:
                    other.context = replace(other.context, session="t")
                    call(other, "delete_file", path="f")
                os._exit(0)
            os.waitpid(child, 0)
            begin(*given)
            os.kill(os.getpid(), signal.SIGKILL)
            return 0

        unasked(session)
        session.history.begin = late  # type: ignore[method-assign]
        call(session, tool, **arguments)
        os._exit(0)  # what is small is read once more in the turn to write, and refused
    os.waitpid(process, 0)
    with opened(root) as session:
        assert set(settled(session)) <= {"aborted"}
        assert session.state.rows("SELECT count(*) FROM op WHERE state = 'done'") == [(1,)]


def test_a_write_that_another_call_was_faster_than_is_aborted(root: Path) -> None:
    """Planned, then overtaken, then killed: nobody but calls was there, so it is known what happened.

    A file that is replaced is looked at once more in the turn to write, and the call refused.
    """

    def overtaken(session: Session) -> None:
        begin = session.history.begin

        def late(*arguments: Any) -> int:
            session.history.begin = begin  # type: ignore[method-assign]
            process = os.fork()
            if process == 0:
                with opened(root) as other:
                    other.context = replace(other.context, session="t")
                    call(other, "create_file", path="f", content="theirs", allow_overwrite=True)
                os._exit(0)
            os.waitpid(process, 0)
            return begin(*arguments)

        unasked(session)
        session.history.begin = late  # type: ignore[method-assign]
        call(session, "create_file", path="f", content="ours", allow_overwrite=False)

    dies(root, overtaken, "create")
    with opened(root) as session:
        assert settled(session) == ["aborted"]
        assert (root / "f").read_text() == "theirs"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("create_file", {"path": "new", "content": "ours"}),
        ("create_file", {"path": "f", "content": "ours", "allow_overwrite": True}),
        ("copy_file", {"source": "g", "destination": "new"}),
        ("move_file", {"source": "g", "destination": "new"}),
        ("delete", {"path": "d"}),
        ("move_file", {"source": "d", "destination": "e"}),
    ],
)
def test_a_plan_that_another_call_was_faster_than_is_not_begun(
    root: Path, tool: str, arguments: dict[str, Any]
) -> None:
    """What the intent would record is not so any more, so recovery could be wrong about it."""
    (root / "d").mkdir()
    for name in ("f", "g", "d/x"):
        (root / name).write_text("old")

    with opened(root) as session, opened(root) as other:
        begin = session.history.begin

        def late(*given: Any) -> int:
            for path in ("new", "f", "d/x"):
                assert call(other, "create_file", path=path, content="theirs", allow_overwrite=True).ok
            return begin(*given)

        session.history.begin = late  # type: ignore[method-assign]
        # What the session had read is found to be stale before anything else.
        assert call(session, tool, **arguments).error["code"] in ("path_changed", "stale_read")
        assert session.state.rows("SELECT count(*) FROM op") == [(3,)]
        session.history.begin = begin  # type: ignore[method-assign]
        assert call(session, "create_file", path="n/b", content="").ok


def test_two_calls_may_make_the_same_directory(root: Path) -> None:
    with opened(root) as session, opened(root) as other:
        begin = session.history.begin

        def late(*given: Any) -> int:
            assert call(other, "create_file", path="n/a", content="").ok
            return begin(*given)

        session.history.begin = late  # type: ignore[method-assign]
        assert call(session, "create_file", path="n/b", content="").ok


@pytest.mark.parametrize("tool", ["move_file", "delete_file"])
def test_a_change_of_a_large_file_that_a_write_was_faster_than_is_aborted(root: Path, tool: str) -> None:
    """What is large is read before the turn to write, in which nobody else changes anything."""
    (root / "f").write_bytes(b"x" * (LARGE + 1))

    def overtaken(session: Session) -> None:
        begin = session.history.begin

        def late(*arguments: Any) -> int:
            process = os.fork()
            if process == 0:
                with opened(root) as other:
                    call(other, "create_file", path="f", content="theirs", allow_overwrite=True)
                os._exit(0)
            os.waitpid(process, 0)
            return begin(*arguments)

        unasked(session)
        session.history.begin = late  # type: ignore[method-assign]
        call(
            session, tool, **({"path": "f"} if tool == "delete_file" else {"source": "f", "destination": "g"})
        )

    dies(root, overtaken, "move" if tool == "move_file" else "quarantine")
    with opened(root) as session:
        assert settled(session) == ["aborted"]
    assert (root / "f").read_text() == "theirs"
    assert not (root / "g").exists()


def test_a_write_that_somebody_else_was_faster_than_is_unknown(root: Path) -> None:
    (root / "f").write_text("first")
    dies(root, lambda s: call(s, "create_file", path="f", content="x", allow_overwrite=True), "replace")
    (root / "f").write_text("of another program")
    with opened(root) as session:
        assert settled(session) == ["unknown"]


def test_an_outcome_whose_commit_seemed_to_fail_is_on_record_once(root: Path) -> None:
    """The connection may go down after the commit and before its answer."""
    (root / "f").write_text("old")
    with opened(root) as session:
        transaction = session.state.transaction

        @contextmanager
        def breaks(*, durable: bool = False) -> Iterator[Any]:
            with transaction(durable=durable) as db:
                yield db
            if not durable:
                session.state.transaction = transaction  # type: ignore[method-assign]
                raise CallError("history_unavailable", "the answer was lost")

        session.state.transaction = breaks  # type: ignore[method-assign, assignment]
        deleted = call(session, "delete_file", path="f")
        assert deleted.ok
        assert call(session, "create_file", path="g", content="new").ok
        calls = [r["call"] for r in audit.records(session.state)]
        assert calls.count(deleted.data["call_id"]) == 1
        assert audit.verify(session.state) == []


def test_an_undo_whose_directory_is_moved_away_says_what_was_done(root: Path) -> None:
    """Another program may move a directory that was just made again, before it gets its mode."""
    (root / "d").mkdir(mode=0o750)
    (root / "d/f").write_text("x")
    with opened(root) as session:
        deleted = call(session, "delete", path="d")
        backend = session.workspace.writable()
        set_metadata = backend.set_metadata

        def moved_away(spot: Any, *values: Any) -> Any:
            (root / "d").rename(root / "theirs")
            return set_metadata(spot, *values)

        backend.set_metadata = moved_away  # type: ignore[method-assign]
        undone = session.undo(deleted.data["call_id"])
        assert undone.error is not None
        assert undone.error["code"] == "partial_failure"
    with opened(root) as session:
        records = [r["event"] for r in audit.records(session.state) if r["call"] == undone.data["call_id"]]
        assert records == ["call"]


def test_an_undo_with_nothing_to_change_that_was_killed_is_on_record(root: Path) -> None:
    (root / "f").write_text("same")
    with opened(root) as session:
        made = call(session, "create_file", path="f", content="same", allow_overwrite=True)
    process = os.fork()
    if process == 0:
        session = opened(root)
        session.history.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore
        session.undo(made.data["call_id"])
        os._exit(1)
    os.waitpid(process, 0)
    with opened(root) as session:
        ((call_id, state),) = session.state.rows("SELECT call, state FROM op WHERE tool = 'undo'")
        found = record(session)
        assert (found["call"], found["tool"], found["session"]) == (call_id, "undo", "s")
        assert (found["outcome"], state) == ("done", "done")


def caught_by_a_dead_call(root: Path, path: str) -> Path:
    """The catch of a file whose deletion ended right after the rename."""

    def dying(session: Session) -> None:
        Removal.discard = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment, method-assign]
        call(session, "delete_file", path=path)

    dies(root, dying, "close")
    (catch,) = caught(root, ".ringfence-*")
    return catch


def test_a_catch_goes_back_to_its_own_path_in_a_directory_made_for_it(root: Path) -> None:
    (root / "logs/deep").mkdir(parents=True)
    (root / "logs/deep/app.log").write_text("old\n")
    catch = caught_by_a_dead_call(root, "logs/deep/app.log")
    catch.write_text("old\nand a line of whoever had it open\n")
    (root / "logs/deep").rmdir()
    (root / "logs").rmdir()
    with opened(root) as session:
        assert settled(session) == ["aborted"]
        assert session.versions("logs") == []
    assert (root / "logs/deep/app.log").read_text() == "old\nand a line of whoever had it open\n"
    assert caught(root, ".ringfence-*") == []


def test_a_catch_that_cannot_go_back_stays_and_is_named(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    (root / "logs").mkdir()
    (root / "logs/app.log").write_text("old\n")
    catch = caught_by_a_dead_call(root, "logs/app.log")
    catch.write_text("old\nand a line of whoever had it open\n")
    (root / "logs").rmdir()
    (root / "logs").write_text("a file by now")
    with opened(root) as session:
        assert settled(session) == ["unknown"]
        assert record(session)["left"] == [{"path": "logs/app.log", "caught": catch.name}]
        assert audit.verify(session.state) == []
        assert catch.name in caplog.text
        assert catch.read_text() == "old\nand a line of whoever had it open\n"
        # The path is free again for calls.
        assert call(session, "delete_file", path="logs").ok
        assert call(session, "create_file", path="logs/app.log", content="new").ok


def test_a_child_that_was_forked_does_not_keep_a_dead_call_open(root: Path) -> None:
    (root / "f").write_text("old")
    ready, done = os.pipe(), os.pipe()
    process = os.fork()
    if process == 0:
        session = opened(root)

        def forks_and_dies(*_: Any) -> None:
            if os.fork() == 0:
                os.write(ready[1], b"x")
                os.close(done[1])
                os.read(done[0], 1)
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)

        session.workspace.backend.remove = forks_and_dies  # type: ignore[method-assign]
        call(session, "delete_file", path="f")
        os._exit(1)
    os.waitpid(process, 0)
    assert os.read(ready[0], 1) == b"x"
    try:
        with opened(root) as session:
            assert settled(session) == ["aborted"]
            assert call(session, "delete_file", path="f").ok
    finally:
        for fd in (*ready, *done):
            os.close(fd)


def test_a_session_is_of_no_use_in_a_forked_child(root: Path) -> None:
    (root / "f").write_text("old")
    with opened(root) as session:
        process = os.fork()
        if process == 0:
            error = call(session, "delete_file", path="f").error or {}
            os._exit(
                0 if error.get("code") == "history_unavailable" and "each process" in error["hint"] else 1
            )
        assert os.waitpid(process, 0)[1] == 0
        assert (root / "f").read_text() == "old"
        assert call(session, "delete_file", path="f").ok


def test_the_next_start_removes_what_a_dead_call_was_keeping(root: Path) -> None:
    """Parts of a content, and one that no change came to speak of."""
    with opened(root) as session:
        folder = session.history.content_files.folder if session.history.content_files else None
    if folder is None:
        pytest.skip("what machines share is all in the database")
    (root / "f").write_bytes(os.urandom(1 << 20))
    (root / "g").write_bytes(os.urandom(1 << 20))
    process = os.fork()
    if process == 0:
        session = opened(root)
        assert call(session, "create_file", path="g", content="new", allow_overwrite=True).ok
        rename = Path.rename

        def dies_there(part: Path, target: Path) -> Path:
            rename(part, target)
            (target.parent / "part-0123456789abcdef").write_bytes(b"begun")
            os.kill(os.getpid(), signal.SIGKILL)
            return target

        Path.rename = dies_there  # type: ignore[method-assign, assignment]
        call(session, "create_file", path="f", content="new", allow_overwrite=True)
        os._exit(1)
    os.waitpid(process, 0)
    assert len(list(folder.iterdir())) == 3
    with opened(root) as session:
        (kept,) = folder.iterdir()
        assert kept.name == session.versions("g")[0].digest
