"""`ringfence state salvage`: what can be read is recovered, what cannot is named, nothing is made up."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.session.session import Session
from tests.cli.conftest import Ringfence
from tests.state.conftest import ALL, listing, place_of
from tests.state_repair.test_check import edit

CHANGES = 60


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace and a state with many changes; `a` was each number in turn."""
    top = tmp_path_factory.mktemp("made")
    root = top / "work space"
    root.mkdir()
    (root / "ringfence.yaml").write_text(ALL)
    (root / "big").write_bytes(os.urandom(2 * LARGE))
    with Session(root, Policy.loads(ALL), state=top / "state", session="s") as session:
        for n in range(CHANGES):
            arguments = {"path": "a", "content": f"{n}\n" + random.Random(n).randbytes(700).hex()}
            done = session.call({"tool": "create_file", "arguments": {**arguments, "allow_overwrite": True}})
            assert done.ok
        arguments = {"path": "big", "content": "small"}
        assert session.call({"tool": "create_file", "arguments": {**arguments, "allow_overwrite": True}}).ok
    yield top


@pytest.fixture
def place(made: Path, ringfence: Ringfence, workspace: Path) -> Path:
    """The same, for one test, with the state where it is by default."""
    shutil.copytree(made / "work space", workspace, dirs_exist_ok=True)
    (source,) = (made / "state").iterdir()
    to = place_of(workspace)
    shutil.copytree(source, to)
    to.chmod(0o700)
    to.parent.chmod(0o700)
    (to / "workspace.json").unlink()
    return to


def salvage(ringfence: Ringfence, status: int = 0) -> dict[str, dict[str, object]]:
    done = ringfence("state", "salvage", "--yes", "--json")
    assert done.status == status, done
    found: dict[str, dict[str, object]] = done.json
    return found


def versions(ringfence: Ringfence) -> list[str]:
    return [one["version"] for one in ringfence("history", "a", "--json").json]


def test_of_a_sound_state_nothing_is_lost(ringfence: Ringfence, place: Path) -> None:
    before = listing(place)
    found = salvage(ringfence)
    assert found["lost"] == {}
    assert found["recovered"]["changes"] == CHANGES + 1
    assert len(versions(ringfence)) == CHANGES + 1
    assert ringfence("audit", "verify").status == 0
    assert ringfence("state", "check").status == 0
    last = ringfence("log", "--json").lines[-1]
    assert (last["event"], last["outcome"]) == ("state", "salvaged")
    assert ringfence("restore", "big", "initial", "--yes").status == 0
    damaged = Path(str(found["damaged"]))
    # What was caught goes along with the state that is in use.
    kept = [row[1:] for row in before if "quarantine" not in str(row[0])]
    assert [row[1:] for row in listing(damaged)] == kept


def test_a_dry_run_changes_nothing(ringfence: Ringfence, place: Path) -> None:
    before = listing(place.parent)
    assert ringfence("state", "salvage", "--dry-run").status == 0
    assert ringfence("state", "salvage").status == 2, "nobody is there to ask"
    assert listing(place.parent) == before


def pages(place: Path, kind: int) -> list[int]:
    """The pages of one kind of B-tree page, but the first."""
    data = (place / "state.db").read_bytes()
    return [n for n in range(1, len(data) // 4096) if data[n * 4096] == kind]


def spoil(place: Path, numbers: list[int]) -> None:
    with (place / "state.db").open("r+b") as file:
        for number in numbers:
            file.seek(number * 4096)
            file.write(b"\xff" * 4096)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", [13, 10, 5], ids=["leaf", "index leaf", "interior"])
def test_pages_that_are_spoiled(ringfence: Ringfence, place: Path, kind: int, seed: int) -> None:
    known = {line["seq"]: line for line in ringfence("log", "--json", "-n", "0").lines}
    found = pages(place, kind)
    if kind == 5:
        spoil(place, found[seed % len(found) :][:1])
    else:
        spoil(place, random.Random(seed).sample(found, min(2, len(found))))
    told = ringfence("state", "salvage", "--yes", "--json")
    assert told.status in (0, 1), told
    check = ringfence("state", "check", "--json").json
    assert [p for p in check["problems"] if p["what"] in ("damaged", "content")] == []
    left = ringfence("log", "--json", "-n", "0").lines
    for line in left:
        assert line["event"] == "state" or known[line["seq"]] == line, "nothing is made up"
    missing = CHANGES + 1 - told.json["recovered"]["audit records"]
    assert missing < 3 * CHANGES // 4, "a page or two are not all"
    last = max(line["seq"] for line in left if line["event"] != "state")
    broken = missing > len(known) - last  # a chain without its last records is whole
    assert broken is bool([remark for remark in told.json["remarks"] if "audit chain" in remark])


def test_a_cut_file(ringfence: Ringfence, place: Path) -> None:
    os.truncate(place / "state.db", (place / "state.db").stat().st_size * 3 // 4 // 4096 * 4096)
    found = salvage(ringfence, 1)
    paths = int(str(found["recovered"]["paths changed"]))
    assert paths > CHANGES // 4
    known = [one for one in ringfence("history", "a", "--json").json if one["version"] != "initial"]
    assert len(known) >= paths - 1, "also those of which nothing else is left"
    assert ringfence("state", "check").status in (0, 1)


def lose_header(place: Path) -> None:
    with (place / "state.db").open("r+b") as file:
        file.write(b"\xff" * 100)


def test_a_lost_header(ringfence: Ringfence, place: Path) -> None:
    lose_header(place)
    assert ringfence("state", "check").status == 1
    found = salvage(ringfence)
    assert found["recovered"]["changes"] == CHANGES + 1
    assert len(versions(ringfence)) == CHANGES + 1


def empty(place: Path) -> None:
    os.truncate(place / "state.db", 0)


def lose(place: Path) -> None:
    (place / "state.db").unlink()


def overwrite(place: Path) -> None:
    (place / "state.db").write_bytes(os.urandom(20_000))


@pytest.mark.parametrize("harm", [empty, lose, overwrite])
def test_where_the_database_is_gone_files_remain(
    ringfence: Ringfence, place: Path, harm: Callable[[Path], None]
) -> None:
    (file,) = (place / "content").iterdir()
    harm(place)
    done = ringfence("call", "create_file", '{"path": "z", "content": ""}', "--json")
    assert "state salvage" in done.out
    found = salvage(ringfence, 1)
    assert (found["recovered"]["contents"], found["recovered"]["changes"]) == (1, 0)
    again = Path(str(found["damaged"])) / "content" / file.name
    assert (place / "content" / file.name).read_bytes() == again.read_bytes()
    assert ringfence("state", "check").status == 0
    assert ringfence("call", "create_file", '{"path": "z", "content": ""}').status == 0


def test_contents_and_records_that_are_wrong(ringfence: Ringfence, place: Path) -> None:
    edit(
        place,
        "UPDATE blob SET data = x'00' WHERE rowid IN (2, 3)",
        "DELETE FROM audit WHERE seq BETWEEN 10 AND 12",
    )
    (file,) = (place / "content").iterdir()
    file.write_bytes(b"spoiled")
    found = salvage(ringfence, 1)
    assert found["lost"]["contents"] == "3"
    assert "the audit chain is broken at records 10 to 12: missing" in found["remarks"]
    assert ringfence("audit", "verify").status == 1


def test_what_else_lies_in_the_state_goes_along(ringfence: Ringfence, place: Path) -> None:
    (place / "caught").mkdir(mode=0o700)
    (place / "caught" / "kept-1").write_text("deleted")
    salvage(ringfence)
    assert (place / "caught" / "kept-1").read_text() == "deleted"


def test_not_while_a_process_uses_it(ringfence: Ringfence, place: Path, workspace: Path) -> None:
    with Session(workspace, Policy.loads(ALL)):
        done = ringfence("state", "salvage", "--yes")
    assert (done.status, "A process uses" in done.err) == (1, True)


def test_nothing_to_salvage(ringfence: Ringfence, workspace: Path) -> None:
    assert ringfence("state", "salvage", "--yes").status == 1
    assert not place_of(workspace).exists()
    assert ringfence("state", "salvage", "--yes", "--state", "postgresql://localhost/x").status == 1


def test_an_older_schema(ringfence: Ringfence, place: Path) -> None:
    with closing(sqlite3.connect(place / "state.db")) as db:
        db.execute("PRAGMA user_version=3")
        db.execute("DROP TABLE meta")
        db.execute("ALTER TABLE item DROP COLUMN metadata")
    found = salvage(ringfence)
    assert found["recovered"]["changes"] == CHANGES + 1
    assert len(versions(ringfence)) == CHANGES + 1
