"""`ringfence state adopt`: the state of a workspace that was moved goes with it, and with no other one."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ringfence.toolkit.session.session import Session
from tests.cli.conftest import Ringfence
from tests.state.conftest import ALL, Do, listing, place_of
from tests.state_repair.test_check import DYING


@pytest.fixture
def former(do: Do, workspace: Path) -> Path:
    """A workspace with a change and a deleted tree."""
    (workspace / "d").mkdir()
    for n in range(20):
        (workspace / "d" / f"f{n}").write_bytes(os.urandom(9000))
    do("create_file", path="a", content="1")
    do("create_file", path="a", content="2", allow_overwrite=True)
    do("delete", path="d")
    return workspace


def move(former: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    moved = former.with_name("moved")
    former.rename(moved)
    monkeypatch.chdir(moved)
    return moved


@pytest.mark.parametrize("named", ["not named", "former root", "state directory"])
@pytest.mark.parametrize("kept", ["as it is", "nothing deleted", "another directory", "no word whose it is"])
def test_a_moved_workspace_takes_its_state_along(
    ringfence: Ringfence, former: Path, monkeypatch: pytest.MonkeyPatch, named: str, kept: str
) -> None:
    old = place_of(former)
    if kept == "no word whose it is":
        (old / "workspace.json").unlink()
    moved = move(former, monkeypatch)
    if kept == "nothing deleted":
        shutil.rmtree(moved / ".ringfence", ignore_errors=True)
    elif kept == "another directory":
        shutil.copytree(moved, moved.with_name("copied"))
        shutil.rmtree(moved)
        moved.with_name("copied").rename(moved)
        monkeypatch.chdir(moved)
    options = {
        "not named": (),
        "former root": ("--from", str(former)),
        "state directory": ("--from", str(old)),
    }
    done = ringfence("state", "adopt", "--yes", *options[named])
    if named == "not named" and kept in ("no word whose it is", "another directory"):
        if kept == "another directory" and list((moved / ".ringfence").glob("kept-*")):
            assert done.status == 0, done
        else:
            assert (done.status, "--from" in done.err) == (1, True), done
            assert old.is_dir()
        return
    assert done.status == 0, done
    assert not old.exists()
    assert [one["version"] for one in ringfence("history", "a", "--json").json] == ["initial", "v1", "v2"]
    last = ringfence("log", "--json").lines[-1]
    assert (last["event"], last["outcome"], last["to"]) == ("state", "adopted", str(moved.resolve()))
    assert ringfence("log").status == 0
    assert ringfence("audit", "verify").status == 0
    assert ringfence("restore", "a", "v1", "--yes").status == 0
    assert (moved / "a").read_text() == "1"
    assert "moved" not in [p["what"] for p in ringfence("state", "check", "--json").json["problems"]]


def test_dry_run_changes_nothing(ringfence: Ringfence, former: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = place_of(former)
    move(former, monkeypatch)
    before = listing(old.parent)
    done = ringfence("state", "adopt", "--dry-run", "--json")
    assert (done.status, done.json["former"]) == (0, str(old))
    assert ringfence("state", "adopt").status == 2, "nobody is there to ask"
    assert listing(old.parent) == before


def test_what_was_left_open_is_settled(
    ringfence: Ringfence, former: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run([sys.executable, "-c", DYING, str(former)], check=True)
    move(former, monkeypatch)
    done = ringfence("state", "adopt", "--yes", "--json")
    assert (done.status, done.json["settled"]) == (0, 1), done
    assert [record["event"] for record in ringfence("log", "--json").lines][-2:] == ["settled", "state"]


def test_a_state_begun_meanwhile_is_set_aside(
    ringfence: Ringfence, do: Do, former: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = move(former, monkeypatch)
    ringfence("call", "create_file", '{"path": "b", "content": "1"}')
    done = ringfence("state", "adopt", "--yes", "--json")
    assert done.status == 0, done
    aside = Path(done.json["aside"])
    assert ringfence("state", "check", str(aside), "--json").json["changes"] == 1
    assert len(ringfence("history", "a", "--json").json) == 3
    assert place_of(moved).is_dir()


def test_not_while_the_former_place_is_there(
    ringfence: Ringfence, former: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = former.with_name("copy")
    shutil.copytree(former, copy)
    monkeypatch.chdir(copy)
    before = listing(place_of(former))
    for options in ((), ("--from", str(former)), ("--from", str(place_of(former)))):
        done = ringfence("state", "adopt", "--yes", *options)
        assert done.status == 1, done
    assert "still exists" in done.err
    assert listing(place_of(former)) == before


def test_not_while_a_process_uses_it(
    ringfence: Ringfence, former: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(former, former / "ringfence.yaml"):
        move(former, monkeypatch)
        done = ringfence("state", "adopt", "--yes")
        assert (done.status, "A process uses" in done.err) == (1, True), done


def test_not_of_a_stranger(ringfence: Ringfence, former: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (former.with_name("other")).mkdir()
    monkeypatch.chdir(former.with_name("other"))
    done = ringfence("state", "adopt", "--yes")
    assert (done.status, "--from" in done.err) == (1, True), done
    assert ringfence("state", "adopt", "--yes", "--from", "/nowhere").status == 1
    monkeypatch.chdir(former)
    done = ringfence("state", "adopt", "--yes", "--from", str(former))
    assert (done.status, "already" in done.err) == (1, True), done


def test_not_from_a_shared_state(ringfence: Ringfence, workspace: Path) -> None:
    done = ringfence("state", "adopt", "--yes", "--state", "postgresql://localhost/x")
    assert (done.status, "share-state" in done.err) == (1, True), done


@pytest.mark.parametrize("known", [True, False])
def test_a_new_history_of_a_moved_workspace_says_so(
    former: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, known: bool
) -> None:
    (former / ".ringfence" / "kept-of-another").mkdir(parents=True, exist_ok=True)
    if not known:
        shutil.rmtree(place_of(former))
    moved = move(former, monkeypatch)
    with caplog.at_level(logging.WARNING, "ringfence"):
        Session(moved, moved / "ringfence.yaml").close()
        (said,) = [record.getMessage() for record in caplog.records]
        assert "state adopt" in said
        assert (str(former) in said) is known
        caplog.clear()
        Session(moved, moved / "ringfence.yaml").close()
        assert caplog.records == [], "said once, when it is begun"


def test_a_workspace_that_is_new_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ringfence.yaml").write_text(ALL)
        Session(tmp_path / name, tmp_path / name / "ringfence.yaml").close()
    assert caplog.records == []


@pytest.mark.parametrize("before", [("--place", "ci"), ()])
def test_the_state_of_a_named_place_is_taken_along_under_its_name(
    ringfence: Ringfence, do: Do, workspace: Path, monkeypatch: pytest.MonkeyPatch, before: tuple[str, ...]
) -> None:
    do("create_file", *before, path="a", content="1")
    move(workspace, monkeypatch)
    done = ringfence("state", "adopt", "--yes", "--place", "ci", "--from", str(workspace))
    assert done.status == 0, done
    kept = ringfence("history", "a", "--place", "ci", "--json").json
    assert [one["version"] for one in kept] == ["initial", "v1"]
    assert ringfence("history", "a").status != 0
