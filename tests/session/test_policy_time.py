"""Entries that end, with a clock that moves: each call is judged at the time it began, whoever asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Effect, Policy
from ringfence.toolkit import Session
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.authoring.replay import replay
from ringfence.toolkit.catalog.offers import offers
from ringfence.toolkit.session.amend import amended

ENDS = 1_798_675_200.0  # 2026-12-31 00:00 UTC
POLICY = """\
version: 1
mandatory: [{deny: [write], paths: ["frozen/**"], until: "2026-12-31T00:00:00Z"}]
rules:
  "*": allow
  delete: {"*": deny, "tmp/": {effect: allow, until: "2026-12-31T00:00:00Z"}}
agents:
  asked: {rules: {write: {"*": ask, "a": {effect: deny, until: "2026-12-31T00:00:00Z"}}}}
  guest: {rules: {write: {"*": deny, "a": {effect: allow, until: "2026-12-31T00:00:00Z"}}}}
"""


class Clock:
    """A clock that a test sets; counts how often it is read."""

    def __init__(self, now: float) -> None:
        self.now, self.reads = now, 0

    def __call__(self) -> float:
        self.reads += 1
        return self.now


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("tmp/a", "tmp/b", "frozen/a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    return tmp_path


def opened(root: Path, clock: Clock, **options: Any) -> Session:
    return Session(root, Policy.loads(POLICY), state=":memory:", clock=clock, **options)


def outcome(session: Session, tool: str, **arguments: Any) -> str:
    result = session.call({"tool": tool, "arguments": arguments})
    return "ok" if result.ok else str((result.error or {})["code"])


def test_a_floor_and_a_rule_end_in_an_open_session(root: Path) -> None:
    clock = Clock(ENDS - 1)
    with opened(root, clock) as session:
        assert outcome(session, "create_file", path="frozen/b", content="x") == "denied_by_policy"
        assert outcome(session, "delete_file", path="tmp/a") == "ok"
        clock.now = ENDS
        assert outcome(session, "create_file", path="frozen/b", content="x") == "ok"
        assert outcome(session, "delete_file", path="tmp/b") == "denied_by_policy"
        clock.now = ENDS - 1  # a clock that is set back
        assert outcome(session, "create_file", path="frozen/c", content="x") == "denied_by_policy"


def test_the_policy_of_a_session_is_the_one_of_its_time(root: Path) -> None:
    clock = Clock(ENDS - 1)
    with opened(root, clock) as session:
        before = session.policy
        assert session.policy_now().effect("default", "write", "write", "frozen/a") is Effect.DENY
        assert session.policy is before
        clock.now = ENDS
        assert session.policy.effect("default", "write", "write", "frozen/a") is Effect.ALLOW
        assert session.policy is session.policy, "one for each interval"
        assert session.policy.revision == before.revision


def test_what_ends_while_a_call_runs_still_holds_for_it(root: Path) -> None:
    clock = Clock(ENDS - 1)

    def later(*_: object) -> None:
        clock.now = ENDS

    with opened(root, clock) as session:
        result = session.call({"tool": "delete", "arguments": {"path": "tmp"}}, later)
        assert result.ok, result
        assert clock.now == ENDS, "time passed during the call"
        [record] = audit.newest(session.state, audit.RecordFilter(), 1)
        assert record["time"] == ENDS - 1
        assert record["seconds"] == 1


def test_an_approver_who_takes_long_does_not_open_what_is_denied_by_then(root: Path) -> None:
    clock = Clock(ENDS)

    def approver(_: Request) -> Answer:
        clock.now = ENDS - 1
        return Answer(True)

    with opened(root, clock, agent="asked", approver=approver) as session:
        assert outcome(session, "create_file", path="a", content="x") == "denied_by_policy"
    assert not (root / "a").exists()


def test_a_request_that_waits_is_judged_again_once_it_is_granted(root: Path) -> None:
    clock = Clock(ENDS)
    call = {"tool": "create_file", "arguments": {"path": "a", "content": "x"}}
    with opened(root, clock, agent="asked") as session:
        approval = session.call(call).data["approval"]["id"]
        clock.now = ENDS - 1
        session.approvals.answer(approval, Answer(True))
        assert outcome(session, **{"tool": "create_file", **call["arguments"]}) == "denied_by_policy"
        clock.now = ENDS
        assert session.call(call).ok


def test_a_changed_request_is_planned_at_its_own_time(root: Path) -> None:
    clock = Clock(ENDS - 1)
    with opened(root, clock, agent="asked") as session:
        call = {"tool": "create_file", "arguments": {"path": "b", "content": "x"}}
        approval = session.call(call).data["approval"]["id"]
        clock.now = ENDS
        found = amended(session, approval, {"path": "a", "content": "x"})
        assert found is not None
        assert found.paths == ("a",)


def test_tools_are_offered_until_no_path_is_left_for_them(root: Path) -> None:
    clock = Clock(ENDS - 1)
    with opened(root, clock, agent="guest") as session:
        assert "create_file" in {offer.tool.name for offer in offers(session.policy, "guest")}
        clock.now = ENDS
        assert "create_file" not in {offer.tool.name for offer in offers(session.policy, "guest")}


def test_a_session_on_disk_reads_its_clock_once_for_each_verdict_only(root: Path) -> None:
    """Without an entry that ends, the time of the call's start is all that is read before its record."""
    clock = Clock(ENDS)
    plain = Policy.loads("version: 1\nrules: {'*': allow}\n")
    with Session(root, plain, state=":memory:", clock=clock) as session:
        clock.reads = 0
        assert session.call({"tool": "read_file", "arguments": {"path": "tmp/a"}}).ok
        assert clock.reads == 2


def test_records_are_judged_again_at_their_own_time_or_at_another(root: Path) -> None:
    clock = Clock(ENDS - 1)
    with opened(root, clock) as session:
        outcome(session, "create_file", path="frozen/b", content="x")
        clock.now = ENDS
        outcome(session, "create_file", path="frozen/b", content="x")
        records = list(audit.records(session.state))
    policy = Policy.loads(POLICY)

    def counts(at: float | None) -> tuple[int, int]:
        *_, out = replay(records, policy, at=at)
        return out.same, out.widened

    assert counts(None) == (2, 0)
    assert counts(ENDS) == (1, 1)
    assert counts(ENDS - 1) == (1, 0)
