"""Contents are forgotten by age and number, never what is still needed, and safely when killed half-way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.history.records import Item, Operation
from ringfence.toolkit.locations import local_place
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.state.open import default_place
from tests.crash.harness import digest, files_of, kept
from tests.storage.quarantine import caught

POLICY = Policy.loads('version: 1\nrules: {"*": allow, delete: {"*": allow, "asked": ask}}\ndurable: false\n')
DAY = 86400.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    root.mkdir()
    return root


@pytest.fixture
def session(root: Path) -> Iterator[Session]:
    with opened(root) as session:
        yield session


def opened(root: Path, name: str = "s") -> Session:
    return Session(root, POLICY, state=root.parent / "state", session=name)


def call(session: Session, tool: str, **arguments: Any) -> Result:
    result = session.call({"tool": tool, "arguments": arguments})
    assert result.ok or result.status == "approval_required", result.content
    return result


def age(session: Session, *calls: Result, days: float = 40) -> None:
    """Make calls old, as far as the history knows."""
    with session.state.transaction() as db:
        for done in calls:
            values = (days * DAY, done.data["call_id"])
            db.execute("UPDATE op SET started = started - ? WHERE call = ?", values)


def edits(session: Session, root: Path) -> list[Result]:
    """A small file, a large one and a tree, each changed so that every kind of place holds something."""
    (root / "large").write_bytes(b"L" * (LARGE + 1))
    for n in range(100):
        (root / "tree" / str(n)).parent.mkdir(exist_ok=True)
        (root / "tree" / str(n)).write_bytes(f"{n}\n".encode())
    return [
        call(session, "create_file", path="small", content="one"),
        call(session, "create_file", path="large", content="two", allow_overwrite=True),
        call(session, "delete", path="tree"),
    ]


def held(session: Session, root: Path) -> set[str]:
    """The contents that are kept, without the note that hides them from git."""
    return kept(session, root.parent) - {digest(b"*\n")}


def places(root: Path) -> list[str]:
    """What lies in files: large contents by name, and deleted trees."""
    found = [*(root.parent / "state").rglob("content/*"), *caught(root, "kept-*")]
    return sorted(place.name for place in found)


def test_what_is_old_goes_and_what_is_new_stays(root: Path, session: Session) -> None:
    old = edits(session, root)
    age(session, *old)
    (root / "other").write_bytes(b"N" * (LARGE + 1))
    new = call(session, "create_file", path="other", content="three", allow_overwrite=True)
    assert len(places(root)) == 3
    result = session.prune(older_than=30 * DAY)
    assert result.data == {"calls": 3, "contents": 3, "trees": 1, "left": LARGE + 6, "bytes": LARGE + 7 + sum(
        len(f"{n}\n") for n in range(100)
    ), "changes": 0}  # fmt: skip
    assert places(root) == [digest(b"N" * (LARGE + 1))]
    assert session.undo(new.data["call_id"]).ok
    for done in old:
        assert not session.undo(done.data["call_id"]).ok or done is old[0]


def test_a_forgotten_version_keeps_its_name_and_says_that_it_is_gone(root: Path, session: Session) -> None:
    first = call(session, "create_file", path="f", content="one")
    second = call(session, "create_file", path="f", content="two", allow_overwrite=True)
    call(session, "create_file", path="f", content="three", allow_overwrite=True)
    age(session, first, second)
    names = [version.name for version in session.versions("f")]
    assert session.prune(older_than=DAY).ok
    assert [version.name for version in session.versions("f")] == names
    gone = session.restore("f", "v1")
    assert gone.error is not None
    assert gone.error["code"] == "not_recoverable"
    assert session.restore("f", "v2").ok
    assert session.changes()


def test_a_dry_run_forgets_nothing_and_tells_the_same(root: Path, session: Session) -> None:
    age(session, *edits(session, root))
    before = held(session, root)
    told = session.prune(older_than=DAY, dry_run=True)
    assert held(session, root) == before
    done = session.prune(older_than=DAY)
    assert told.data == {**done.data, "dry_run": True}
    assert held(session, root) == set()
    assert session.prune(older_than=DAY).data["calls"] == 0


@pytest.mark.parametrize(("keep", "left"), [(0, 0), (1, 1), (2, 2), (3, 3), (4, 3), (5, 3), (10, 3)])
def test_the_newest_are_kept_by_number(root: Path, session: Session, keep: int, left: int) -> None:
    calls = [call(session, "create_file", path=f"f{n}", content=f"content {n}") for n in range(3)]
    assert session.prune(keep=keep).data["calls"] == len(calls) - left
    assert held(session, root) == {digest(f"content {n}".encode()) for n in range(3 - left, 3)}


def test_both_conditions_have_to_hold(root: Path, session: Session) -> None:
    calls = [call(session, "create_file", path=f"f{n}", content=f"content {n}") for n in range(3)]
    age(session, *calls[:2])
    assert session.prune(older_than=DAY, keep=2).data["calls"] == 1


def test_content_that_a_newer_call_needs_too_stays(root: Path, session: Session) -> None:
    first = call(session, "create_file", path="a", content="the same")
    call(session, "create_file", path="b", content="the same")
    age(session, first)
    assert session.prune(older_than=DAY).data["contents"] == 0


def test_what_an_open_intent_needs_stays(root: Path, session: Session) -> None:
    (root / "f").write_bytes(b"as it was")
    item = Item("delete", "f", "file", before=b"as it was", temporary=".ringfence-0")
    session.history.begin(Operation("c-open", None, "s", "a", "delete_file"), [item], {}, lambda: None)
    with session.state.transaction() as db:
        db.execute("UPDATE op SET started = 0")
    assert session.prune(keep=0).data["contents"] == 0
    assert digest(b"as it was") in held(session, root)


def test_what_was_done_at_a_path_that_a_request_names_stays(root: Path, session: Session) -> None:
    made = call(session, "create_file", path="asked", content="one")
    waiting = call(session, "delete_file", path="asked")
    assert waiting.status == "approval_required"
    age(session, made)
    assert session.prune(older_than=DAY).data["calls"] == 0
    with opened(root, "another") as other:
        assert other.prune(keep=0).data["calls"] == 0


def test_what_a_later_undo_took_back_stays_with_it(root: Path, session: Session) -> None:
    done = edits(session, root)[2]
    for place in caught(root, "kept-*"):
        place.chmod(0o750)  # not as it was recorded, so that it is copied out of and stays
    undone = session.undo(done.data["call_id"])
    age(session, done)
    assert session.prune(older_than=DAY).data["trees"] == 0
    age(session, undone)
    assert session.prune(older_than=DAY).data["trees"] == 1


def test_a_catch_that_was_moved_back_is_no_longer_kept(session: Session, root: Path) -> None:
    done = edits(session, root)[2]
    [tree] = caught(root, "kept-*")
    undone = session.undo(done.data["call_id"])
    assert not tree.exists()
    pruned = session.prune(keep=0)
    assert (pruned.data["trees"], session.state.rows("SELECT * FROM caught")) == (0, [])
    assert len(list((root / "tree").iterdir())) == 100
    assert session.undo(undone.data["call_id"]).ok
    assert session.prune(keep=0).data["trees"] == 1


def test_an_open_undo_spares_the_catch_that_it_moves_back(session: Session, root: Path) -> None:
    done = edits(session, root)[2]
    found: list[Result] = []

    def checked(*_: Any) -> None:
        with opened(root, "another") as other:
            found.append(other.prune(keep=0))
        raise KeyboardInterrupt

    session.workspace.writable().move = checked  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        session.undo(done.data["call_id"])
    assert found[0].data["trees"] == 0
    assert len(caught(root, "kept-*")) == 1


def test_a_prune_is_on_record(root: Path, session: Session) -> None:
    edits(session, root)
    session.prune(keep=0)
    last = list(audit.records(session.state))[-1]
    assert (last["event"], last["calls"], last["trees"]) == ("prune", 3, 1)
    assert not audit.verify(session.state)


@pytest.mark.parametrize("at", range(1, 13))
def test_a_prune_that_is_killed_is_finished_by_the_next(root: Path, at: int) -> None:
    with opened(root) as session:
        edits(session, root)
        new = call(session, "create_file", path="small", content="new", allow_overwrite=True)
    before = files_of(root)
    process = os.fork()
    if process == 0:
        _die_at(at * 9, root)
    _, status = os.waitpid(process, 0)
    with opened(root) as session:
        assert files_of(root) == before
        assert session.undo(new.data["call_id"]).ok
        assert session.prune(keep=2).ok
        # All but the two newest, the overwriting and its undo, are gone, with nothing lying about.
        assert held(session, root) == {digest(b"one"), digest(b"new")}
        assert places(root) == []
    assert os.WIFSIGNALED(status) or at > 2


def _die_at(step: int, root: Path) -> None:
    left = step

    def wrapped(act: Any) -> Any:
        def stepped(*values: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return act(*values, **options)

        return stepped

    try:
        with opened(root) as session:
            for name in ("unlink", "rmdir", "listdir", "stat"):
                setattr(os, name, wrapped(getattr(os, name)))
            session.state.transaction = wrapped(session.state.transaction)  # type: ignore[method-assign]
            session.prune(keep=1)
    finally:
        os._exit(0)


def test_the_command_asks_shows_and_forgets(root: Path) -> None:
    with opened(root) as session:
        edits(session, root)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ringfence", "prune", *arguments]
        command += ["--root", str(root), "--state", str(root.parent / "state")]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run().returncode == 2
    assert run("--older-than", "soon", "--yes").returncode == 2
    assert run("--keep", "0").returncode == 2  # nobody to ask
    seen = run("--keep", "0", "--dry-run", "--json")
    assert json.loads(seen.stdout)["trees"] == 1
    assert len(places(root)) == 2
    done = run("--keep", "0", "--yes")
    assert done.returncode == 0
    assert "Forgot" in done.stdout
    assert places(root) == []
    assert Path(default_place(local_place(str(root)), str(root.parent / "state"))).is_dir()
