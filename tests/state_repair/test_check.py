"""`ringfence state check`: what is wrong is named, what is sound is not, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.session.session import Session
from tests.cli.conftest import Ringfence
from tests.state.conftest import ALL, Do, listing, place_of

DYING = """
import os, sys
from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
session = Session(sys.argv[1], Policy.loads('version: 1\\nrules: {"*": allow}\\n'))
session.history.finish = lambda *_: os._exit(0)
session.call({"tool": "create_file", "arguments": {"path": "late", "content": "1"}})
"""


@pytest.fixture
def place(do: Do, workspace: Path) -> Path:
    """A state with small and large contents and a deleted tree."""
    (workspace / "big").write_bytes(os.urandom(2 * LARGE))
    (workspace / "d").mkdir()
    for n in range(20):
        (workspace / "d" / f"f{n}").write_bytes(os.urandom(9000))
    do("create_file", path="a", content="1")
    do("create_file", path="a", content="2", allow_overwrite=True)
    do("create_file", path="big", content="small", allow_overwrite=True)
    do("delete", path="d")
    return place_of(workspace)


def edit(place: Path, *statements: str) -> None:
    with closing(sqlite3.connect(place / "state.db")) as db, db:
        for statement in statements:
            db.execute(statement)
    with closing(sqlite3.connect(place / "state.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def test_a_sound_state(ringfence: Ringfence, place: Path) -> None:
    before = listing(place)
    done = ringfence("state", "check")
    assert (done.status, done.out.splitlines()[-1]) == (0, "the state is sound"), done
    told = ringfence("state", "check", "--json").json
    assert told["sound"] is True
    assert [problem for problem in told["problems"] if not problem["note"]] == []
    assert (told["changes"], told["records"]) == (4, 4)
    assert told["workspace_is_there"] is True
    assert listing(place) == before


def garble(place: Path) -> None:
    with (place / "state.db").open("r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * 4096 * 4)


def one_content(place: Path) -> Path:
    return next(file for file in (place / "content").iterdir())


def lose_content(place: Path) -> None:
    one_content(place).unlink()


def spoil_content(place: Path) -> None:
    one_content(place).write_bytes(b"something else")


def spoil_row(place: Path) -> None:
    edit(place, "UPDATE blob SET data = x'00' WHERE packed != 2")


def alter_record(place: Path) -> None:
    edit(place, "UPDATE audit SET body = replace(body, 'create_file', 'read_file') WHERE seq = 2")


def lose_record(place: Path) -> None:
    edit(place, "DELETE FROM audit WHERE seq = 2")


def open_to_all(place: Path) -> None:
    (place / "state.db").chmod(0o666)


def lose_catch(place: Path) -> None:
    edit(place, "INSERT INTO caught(name, op, path) VALUES('kept-gone', 1, 'gone')")


def strange_catch(place: Path) -> None:
    (Path.cwd() / ".ringfence" / "kept-strange").mkdir(parents=True)


HARM: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "garbled": (garble, "damaged", ""),
    "cut off": (lambda place: os.truncate(place / "state.db", 8192), "damaged", ""),
    "emptied": (lambda place: os.truncate(place / "state.db", 0), "damaged", "empty"),
    "no database": (lambda place: (place / "state.db").unlink(), "damaged", "missing"),
    "content lost": (lose_content, "content", "missing"),
    "content spoiled": (spoil_content, "content", "damaged"),
    "row spoiled": (spoil_row, "content", "damaged"),
    "record altered": (alter_record, "audit", "record 2"),
    "record lost": (lose_record, "audit", "record 2: missing"),
    "open to all": (open_to_all, "not private", "state.db"),
    "catch lost": (lose_catch, "catch", "kept-gone"),
    "catch of nobody": (strange_catch, "catch", "kept-strange"),
}


@pytest.mark.parametrize("harm", HARM)
def test_what_is_wrong_is_named(ringfence: Ringfence, place: Path, harm: str) -> None:
    act, what, detail = HARM[harm]
    act(place)
    before = listing(place)
    done = ringfence("state", "check", "--json")
    assert (done.status, done.json["sound"]) == (1, False), done
    found = [problem for problem in done.json["problems"] if not problem["note"]]
    assert found[0]["what"] == what, found
    assert detail in " ".join(problem["detail"] for problem in found)
    assert all(problem["what"] == what for problem in found), found
    shown = ringfence("state", "check")
    assert (shown.status, "is not sound" in shown.out) == (1, True)
    assert listing(place) == before


def test_what_a_killed_prune_was_removing_is_no_problem(ringfence: Ringfence, place: Path) -> None:
    """It is removed under another name; the next prune completes that."""
    lose_catch(place)
    (Path.cwd() / ".ringfence" / "going-kept-gone").mkdir(parents=True)
    assert ringfence("state", "check").status == 0


def test_what_is_left_over_is_a_note(ringfence: Ringfence, place: Path, workspace: Path) -> None:
    (place / "content" / "part-0123").write_bytes(b"half")
    (place / "content" / ("0" * 64)).write_bytes(b"of nothing")
    subprocess.run([sys.executable, "-c", DYING, str(workspace)], check=True)
    told = ringfence("state", "check", "--json")
    notes = [(problem["what"], problem["detail"]) for problem in told.json["problems"] if problem["note"]]
    assert told.status == 0, told
    assert [what for what, _ in notes] == ["leftover", "leftover", "open"]
    assert [one["process_lives"] for one in told.json["open"]] == [False]


def test_an_open_change_of_a_living_process(ringfence: Ringfence, place: Path, workspace: Path) -> None:
    with Session(workspace, workspace / "ringfence.yaml") as session:
        finish, found = session.history.finish, []

        def looked_at(*arguments: object) -> str:
            found.append(ringfence("state", "check", "--json"))
            return finish(*arguments)  # type: ignore[arg-type]

        session.history.finish = looked_at  # type: ignore[method-assign]
        assert session.call({"tool": "create_file", "arguments": {"path": "late", "content": "1"}}).ok
    assert [one["process_lives"] for one in found[0].json["open"]] == [True]
    assert found[0].status == 0


def test_a_copy_by_its_own_directory(ringfence: Ringfence, place: Path, tmp_path: Path) -> None:
    copy = tmp_path / "evidence"
    shutil.copytree(place, copy)
    shutil.rmtree(place)
    before = listing(copy)
    done = ringfence("state", "check", str(copy), "--json")
    assert (done.status, done.json["changes"]) == (0, 4), done
    assert listing(copy) == before
    assert ringfence("state", "check", str(tmp_path / "none")).status == 2


def test_no_state(ringfence: Ringfence, workspace: Path) -> None:
    (workspace / "ringfence.yaml").write_text(ALL)
    done = ringfence("state", "check")
    assert (done.status, "Nothing is kept" in done.err) == (1, True)
    assert not place_of(workspace).exists()
