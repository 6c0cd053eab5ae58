"""Sums for limits on reading and over time: racing processes, killed processes, rows that are removed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Amount, Policy
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history import budgets
from ringfence.toolkit.session.session import Session
from tests.history.budget_children import READS, WRITES

CHILDREN = Path(__file__).with_name("budget_children.py")
HOUR = f"{{read: {{max_files: {READS}, per: hour, over: deny}}, write: {{max_files: {WRITES}, per: day}}}}"


def policy(limits: str, mode: str = "enforce") -> Policy:
    return Policy.loads(
        f'version: 1\nmode: {mode}\nrules: {{"*": allow}}\ndurable: false\nlimits: {limits}\n'
    )


def call(session: Session, tool: str, **arguments: Any) -> Any:
    return session.call({"tool": tool, "arguments": arguments})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a").write_text("0123456789")
    return tmp_path / "ws"


def child(*arguments: Any) -> subprocess.Popen[str]:
    given = [sys.executable, str(CHILDREN), *map(str, arguments)]
    return subprocess.Popen(given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_racing_processes_get_exactly_what_a_limit_allows(root: Path, state_place: str) -> None:
    with Session(root, policy(HOUR), state=state_place):
        pass  # the state is made before the race
    racers = [child("race", root, state_place, number) for number in range(4)]
    try:
        for each in racers:
            assert each.stdout is not None and each.stdout.readline() == "ready\n"
        found = [json.loads(out) for out, _ in _together(racers)]
    finally:
        for each in racers:
            each.kill()
            each.wait()
    assert sum(each["read"] for each in found) == READS
    assert sum(each["write"] for each in found) == WRITES
    assert len(list(root.iterdir())) == 1 + WRITES


def _together(racers: list[subprocess.Popen[str]]) -> list[tuple[str, str]]:
    """Let all begin at once, and return what each one says."""
    for each in racers:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    return [each.communicate(timeout=240) for each in racers]


@pytest.mark.parametrize(
    ("tool", "action", "step"),
    [("read_file", "read", "reserve_read"), ("create_file", "write", "begin")],
)
def test_what_another_call_takes_in_between_is_not_given_twice(
    root: Path, state_place: str, tool: str, action: str, step: str
) -> None:
    limits = policy(f"{{{action}: {{max_files: 1, per: hour, over: deny}}}}")
    more = {"content": "0123456789"} if tool == "create_file" else {}
    with (
        Session(root, limits, agent="team", session="s", state=state_place) as slow,
        Session(root, limits, agent="team/other", session="t", state=state_place) as fast,
    ):
        real, between = getattr(slow.history, step), []

        def late(*values: Any, **named: Any) -> Any:
            between.append(call(fast, tool, path="a" if not more else "other", **more))
            return real(*values, **named)

        setattr(slow.history, step, late)
        result = call(slow, tool, path="a" if not more else "new", **more)
        assert [each.ok for each in between] == [True]
        assert (result.status, result.error["code"]) == ("denied", "limit_exceeded")
        assert "0123456789" not in str(result.to_json())
        assert slow.history.totals("s", "team", action, "hour") == Amount(1, 10)
    assert not (root / "new").exists()


# ----------------------------------------------------------------- killed processes


def killed(*arguments: Any) -> None:
    dying = child("die", *arguments)
    dying.communicate(timeout=120)
    assert dying.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(("where", "files"), [("answer", 1), ("commit", 0)])
def test_a_kill_before_the_answer_loosens_nothing(
    root: Path, state_place: str, where: str, files: int
) -> None:
    killed(root, state_place, where, "read_file", "a")
    with Session(root, policy(HOUR), agent="team", session="t", state=state_place) as session:
        assert session.history.totals("t", "team", "read", "hour").files == files
        assert session.history.totals("s", "team", "read").files == files


@pytest.mark.slow
def test_what_a_killed_process_did_not_change_is_given_back(root: Path, state_place: str) -> None:
    killed(root, state_place, "change", "create_file", "new")
    with Session(root, policy(HOUR), agent="team", session="t", state=state_place) as session:
        # The next session on this machine has settled it: nothing was changed.
        assert session.history.totals("s", "team", "write", "day") == Amount()
        assert session.history.totals("s", "team", "write") == Amount()


# ---------------------------------------------------------------------- one process


def test_a_change_that_fails_is_given_back(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Session(root, policy(HOUR), agent="team", session="s", state=":memory:") as session:

        def fail(*_: Any, **__: Any) -> Any:
            raise CallError("io_error", "The disk is broken")

        assert call(session, "create_file", path="one", content="x").ok
        monkeypatch.setattr(session.workspace.backend, "create", fail)
        assert not call(session, "create_file", path="two", content="x").ok
        for per in ("session", "hour", "day"):
            assert session.history.totals("s", "team", "write", per) == Amount(1, 1)


def test_undo_gives_nothing_back(root: Path) -> None:
    with Session(root, policy(HOUR), agent="team", session="s", state=":memory:") as session:
        made = call(session, "create_file", path="one", content="x")
        assert session.undo(made.data["call_id"]).ok
        for per in ("session", "hour", "day"):
            assert session.history.totals("s", "team", "write", per) == Amount(1, 1)


@pytest.mark.parametrize(
    ("limits", "more"),
    [
        ("{write: {max_files: 9, per: hour}}", 0),
        ("{read: {max_files: 9}}", 0),
        ("{read: {max_files: 9, per: session}}", 1),
        ("{search_text: {max_files: 9, per: day}}", 0),
    ],
)
def test_reading_costs_nothing_more_where_no_limit_counts_it(
    root: Path, limits: str, more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(root, policy(limits), state=":memory:") as session:
        begun: list[bool] = []
        real = session.state.transaction

        def transaction(**named: Any) -> Any:
            begun.append(True)
            return real(**named)

        monkeypatch.setattr(session.state, "transaction", transaction)
        assert call(session, "read_file", path="a").ok
        assert len(begun) == 1 + more  # the record, and the sum
        assert call(session, "list_directory", path=".").ok
        assert len(begun) == 2 + more


def test_old_rows_are_removed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Session(root, policy(HOUR), state=":memory:") as session:
        for minute in range(0, 6000, 3):
            monkeypatch.setattr(budgets, "now", lambda minute=minute: 1_000_000 + minute)
            session.history.reserve_read("s", "a", "read_file", Amount(1, 1), lambda: None, timed=True)
        assert len(session.state.rows("SELECT 1 FROM recent")) == 1440 // 3 + 1
        assert len(session.state.rows("SELECT 1 FROM read_total")) == 1
        assert session.history.totals("s", "a", "read") == Amount(2000, 2000)
        assert session.history.totals("s", "a", "read", "day") == Amount(481, 481)
        assert session.history.totals("s", "a", "read", "hour") == Amount(21, 21)


def test_changes_whose_rows_are_pruned_still_count(root: Path) -> None:
    with Session(root, policy(HOUR), agent="team", session="s", state=":memory:") as session:
        assert call(session, "create_file", path="one", content="x").ok
        with session.state.transaction() as db:
            for table in ("usage", "item", "op"):
                db.execute(f"DELETE FROM {table}")
        assert session.history.totals("s", "team", "write", "day") == Amount(1, 1)


def test_a_grant_lifts_a_limit_on_reading_once(root: Path) -> None:
    asking = policy("{read: {max_files: 1, per: day}}")
    with Session(root, asking, agent="team", session="s", state=":memory:") as session:
        assert call(session, "read_file", path="a").ok
        asked = call(session, "read_file", path="a")
        assert (asked.status, asked.error["code"]) == ("approval_required", "limit_exceeded")
        assert "0123456789" not in str(asked.to_json())
        session.approvals.answer(asked.data["approval"]["id"], Answer(True, by="somebody"))
        assert call(session, "read_file", path="a").ok
        assert session.history.totals("s", "team", "read", "day") == Amount(2, 20)
        assert call(session, "read_file", path="a").status == "approval_required"
        with pytest.raises(CallError):
            again = call(session, "read_file", path="a").data["approval"]["id"]
            session.approvals.answer(again, Answer(True, by="somebody", scope="session"))


def test_a_dry_run_and_monitoring_read_what_they_return(root: Path) -> None:
    limits = "{read: {max_files: 1, per: session, over: deny}}"
    with Session(root, policy(limits), session="s", state=":memory:", dry_run=True) as session:
        assert "0123456789" in call(session, "read_file", path="a").content
        assert call(session, "read_file", path="a").error["code"] == "limit_exceeded"
    with Session(root, policy(limits, "monitor"), session="s", state=":memory:") as session:
        assert all(call(session, "read_file", path="a").ok for _ in range(3))
        assert session.history.totals("s", "default", "read") == Amount(3, 30)
        (last,) = [r["decision"] for r in audit.records(session.state) if r["event"] == "call"][-1:]
        assert (last["effect"], last["limit"]["amount"]) == ("deny", {"files": 3, "bytes": 30})
