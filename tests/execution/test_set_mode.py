"""The executable bits of a file: set recorded, settled after a death, displayed and taken back."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Amount, Policy
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.call import Result
from ringfence.toolkit.plan.changes import FILE, Move, Plan, SetMode, Stat, Write
from ringfence.toolkit.plan.impact import describe
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.backend import at
from tests.execution.planned import carried_out

ALLOW = Policy.loads('version: 1\nrules: {"*": allow}\n')
CASES = yaml.safe_load((Path(__file__).parent / "modes.yaml").read_text())


def opened(base: Path) -> Session:
    (base / "ws").mkdir(exist_ok=True)
    return Session(base / "ws", ALLOW, state=base / "state", session="s")


def stat_at(session: Session, path: str) -> Stat:
    with at(session.workspace.backend, path) as spot:
        found = session.workspace.backend.stat(spot)
    assert found is not None
    return found


def mode_of(place: Path) -> str | None:
    return f"{place.stat().st_mode & 0o7777:04o}" if place.exists() else None


def made(place: Path, mode: int, content: str = "content\n") -> Path:
    place.write_text(content)
    place.chmod(mode)
    return place


def happens(place: Path, what: dict[str, Any]) -> None:
    if "mode" in what:
        place.chmod(int(what["mode"], 8))
    if "content" in what:
        place.write_text(what["content"])
    if what.get("gone"):
        place.unlink()
    if what.get("replaced"):
        other = made(place.with_name("other"), 0o644)
        other.replace(place)


def code(result: Result) -> str | None:
    return result.error["code"] if result.error else None


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_mode_is_set_and_taken_back(case: dict[str, Any], tmp_path: Path) -> None:
    expect = case["expect"]
    with opened(tmp_path) as session:
        place = made(tmp_path / "ws/f", int(case["file"]["mode"], 8))
        if case["file"].get("links"):
            (tmp_path / "other-name").hardlink_to(place)
        change = SetMode("f", stat_at(session, "f"), int(case["to"], 8))
        happens(place, case.get("meanwhile", {}))
        result = carried_out(session, change)
        assert (code(result), mode_of(place)) == (expect.get("code"), expect["mode"])
        if not result.ok:
            return
        happens(place, case.get("then", {}))
        back = session.undo(result.data["call_id"])
        assert mode_of(place) == expect["undone"]
        assert expect.get("conflict", "") in back.content
        assert back.ok == ("conflict" not in expect)


def test_the_mode_alone_changes(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        place = made(tmp_path / "ws/f", 0o644)
        os.utime(place, ns=(1, 2))
        before = place.stat()
        assert carried_out(session, SetMode("f", stat_at(session, "f"), 0o755)).ok
        after = place.stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        assert session.history.totals("s", "default", "write") == Amount(1, 0)


def test_an_undo_can_be_undone_and_a_version_restored(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        place = tmp_path / "ws/f"
        session.call({"tool": "create_file", "arguments": {"path": "f", "content": "one\n"}})
        plain = stat_at(session, "f")
        assert plain.mode is not None
        result = carried_out(session, SetMode("f", plain, plain.mode | 0o111))
        inode = place.stat().st_ino
        back = session.undo(result.data["call_id"])
        assert session.undo(back.data["call_id"]).ok
        assert mode_of(place) == f"{plain.mode | 0o111:04o}"
        names = [version.name for version in session.versions("f")]
        assert names == ["initial", "v1", "v2", "v3", "v4"]
        assert [version.set_mode for version in session.versions("f")] == [False, False, True, True, True]
        assert session.restore("f", "v1").ok
        assert mode_of(place) == f"{plain.mode:04o}"
        assert place.stat().st_ino == inode  # nothing but the mode was set
        assert place.read_text() == "one\n"


def test_a_file_that_moved_since_gets_its_mode_back(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        made(tmp_path / "ws/f", 0o644)
        assert carried_out(session, SetMode("f", stat_at(session, "f"), 0o755)).ok
        session.call({"tool": "move_file", "arguments": {"source": "f", "destination": "d/g"}})
        session.call({"tool": "move_file", "arguments": {"source": "d", "destination": "e"}})
        assert mode_of(tmp_path / "ws/e/g") == "0755"
        assert session.undo_to("initial").ok
        assert mode_of(tmp_path / "ws/f") == "0644"
        assert not (tmp_path / "ws/e").exists()


def test_a_move_and_a_mode_in_one_plan(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        place = made(tmp_path / "ws/f", 0o644)
        stat = stat_at(session, "f")
        result = carried_out(session, Move("f", "g", stat), SetMode("g", stat, 0o755))
        assert result.ok
        assert mode_of(tmp_path / "ws/g") == "0755"
        assert session.undo(result.data["call_id"]).ok
        assert mode_of(place) == "0644"
        assert not (tmp_path / "ws/g").exists()


def test_changes_name_the_mode(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        made(tmp_path / "ws/f", 0o644)
        made(tmp_path / "ws/g", 0o755)
        carried_out(session, SetMode("f", stat_at(session, "f"), 0o755))
        carried_out(session, SetMode("g", stat_at(session, "g"), 0o644))
        session.call(
            {"tool": "create_file", "arguments": {"path": "g", "content": "x", "allow_overwrite": True}}
        )
        found = {change.path: (change.kind, change.diff) for change in session.changes("s")}
        assert found["f"] == ("updated", "Mode f 0644 -> 0755\n")
        assert found["g"][0] == "updated"
        assert found["g"][1].startswith("Mode g 0755 -> 0644\n--- a/g\n")
        carried_out(session, SetMode("f", stat_at(session, "f"), 0o644))
        assert [change.path for change in session.changes("s")] == ["g"]


def test_a_plan_is_told_by_what_it_sets() -> None:
    stat = Stat(FILE, 1, mode=0o644, identity="1")
    plans = [Plan(changes=(SetMode("f", s, m),)) for s, m in ((stat, 0o755), (stat, 0o711))]
    plans.append(Plan(changes=(SetMode("f", stat._replace(mode=0o600), 0o755),)))
    assert len({plan.digest() for plan in plans}) == len(plans)
    assert describe(plans[0]) == [{"change": "set_mode", "path": "f", "mode": "0755", "before": "0644"}]


def test_a_store_without_modes_changes_nothing(tmp_path: Path) -> None:
    with Session("memory://", ALLOW, state=tmp_path / "state", session="s") as session:
        session.call({"tool": "create_file", "arguments": {"path": "f", "content": "x"}})
        stat = stat_at(session, "f")._replace(mode=0o644)
        result = carried_out(session, Write("new", b"x"), SetMode("f", stat, 0o755))
        assert code(result) == "io_error"
        assert "no file modes" in result.content
        with at(session.workspace.backend, "new") as spot:
            assert session.workspace.backend.stat(spot) is None


@pytest.mark.parametrize("after", [False, True], ids=["before it is set", "after it is set"])
def test_a_process_that_dies_at_it_is_settled(tmp_path: Path, after: bool) -> None:
    with opened(tmp_path):
        place = made(tmp_path / "ws/f", 0o644)
    assert died(tmp_path, lambda session: SetMode("f", stat_at(session, "f"), 0o755), after)
    with opened(tmp_path) as session:
        (settled,) = [r for r in audit.records(session.state) if r["event"] == "settled"]
        assert settled["outcome"] == ("done" if after else "aborted")
        assert settled["files"] == int(after)
        assert mode_of(place) == ("0755" if after else "0644")
        if after:
            assert session.undo(settled["call"]).ok
        assert mode_of(place) == "0644"


def test_a_mode_that_a_stranger_set_since_is_unknown(tmp_path: Path) -> None:
    with opened(tmp_path):
        place = made(tmp_path / "ws/f", 0o644)
    assert died(tmp_path, lambda session: SetMode("f", stat_at(session, "f"), 0o755), False)
    place.chmod(0o600)
    with opened(tmp_path) as session:
        (settled,) = [r for r in audit.records(session.state) if r["event"] == "settled"]
        assert settled["outcome"] == "unknown"
    assert mode_of(place) == "0600"


def died(base: Path, change: Callable[[Session], SetMode], after: bool) -> bool:
    """Set a mode in a process that is killed right before or after the system's call."""
    process = os.fork()
    if process == 0:
        session, real = opened(base), os.fchmod

        def fatal(*values: Any) -> None:
            if after:
                real(*values)
            os.kill(os.getpid(), signal.SIGKILL)

        wanted = change(session)
        os.fchmod = fatal
        carried_out(session, wanted)
        os._exit(1)
    _, status = os.waitpid(process, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("at_call", [1, 2, 3])
def test_a_failing_system_is_told_truly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_call: int, for_good: bool
) -> None:
    with opened(tmp_path) as session:
        places = [made(tmp_path / "ws" / name, 0o644) for name in ("a", "b", "c")]
        changes = [SetMode(place.name, stat_at(session, place.name), 0o755) for place in places]
        real, calls = os.fchmod, [0]

        def failing(*values: Any) -> None:
            calls[0] += 1
            if calls[0] == at_call or (for_good and calls[0] > at_call):
                raise OSError(errno.EIO, "broken")
            real(*values)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fchmod", failing)
            result = carried_out(session, *changes)
        assert code(result) == ("io_error" if at_call == 1 else "partial_failure")
        assert [mode_of(p) for p in places] == ["0755"] * (at_call - 1) + ["0644"] * (4 - at_call)
        told = [item.state for item in session.history.items("item.kind = 'mode'", ())]
        assert told == ["done"] * (at_call - 1) + ["aborted"] * (4 - at_call)
        if at_call > 1:
            assert session.undo(result.data["call_id"]).ok
        assert {mode_of(place) for place in places} == {"0644"}
