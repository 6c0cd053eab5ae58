"""Approvals: what a person's answer permits, for how long, and what it never does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ringfence.toolkit.approvals.grant_scope import SINGLE_CALLS, SINGLE_CALLS_LAST
from ringfence.toolkit.approvals.requests import EXPIRED, SESSION, WAIT, Answer, Request
from ringfence.toolkit.approvals.store import MOST_WAITING, Approvals
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import local_place
from ringfence.toolkit.state.open import default_place, open_state

RULE = {"tier": "global", "agent": None, "key": "delete", "pattern": "*", "line": 1, "file": "p.yaml"}
ASKED = Request(
    id="a-1",
    agent="coder",
    session="s",
    tool="delete_file",
    arguments={"path": "build/a"},
    digest="d",
    revision="r",
    title="Delete file build/a",
    preview="",
    decision={"effect": "ask", "rule": RULE},
    paths=("build/a",),
    asked=1_000.0,
)
OTHER = replace(ASKED, id="a-2", arguments={"path": "build/b"}, paths=("build/b",), digest="e")


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def approvals(clock: Clock, tmp_path: Path, state_place: str) -> Iterator[Approvals]:
    state = open_state(default_place(local_place(str(tmp_path)), state_place))
    yield Approvals(state, clock)
    state.close()


def numbered(n: int, **more: str) -> Request:
    return replace(ASKED, id=f"b-{n}", arguments={"path": f"build/{n}"}, digest=f"d{n}", **more)


def test_one_agents_requests_do_not_bury_those_of_others(approvals: Approvals, clock: Clock) -> None:
    for n in range(MOST_WAITING):
        # Another session and a sub-agent are no way around it.
        approvals.ask(numbered(n, session=f"s{n % 3}", agent="coder/helper" if n % 2 else "coder"))
    for more in ({}, {"session": "new"}, {"agent": "coder/other"}):
        with pytest.raises(CallError) as caught:
            approvals.ask(numbered(1000, **more))
        assert (caught.value.code, caught.value.status) == ("no_approver", "denied")
        assert "approvals list" in (caught.value.hint or "")
    assert len(approvals.listing()) == MOST_WAITING
    first = numbered(0, session="s0")
    assert approvals.ask(first)[0].id == "b-0", "what waits is asked again"
    approvals.ask(numbered(1001, agent="coder2"))
    approvals.answer("b-0", Answer(False))
    approvals.ask(numbered(1000))
    clock.now += WAIT + 1
    approvals.ask(replace(numbered(1002), asked=clock.now))


def test_once_is_once(approvals: Approvals) -> None:
    approvals.ask(ASKED)
    approvals.answer("a-1", Answer(True))
    assert approvals.permits(ASKED)
    assert not approvals.permits(ASKED)


@pytest.mark.parametrize("field", ["agent", "session", "tool", "digest", "revision"])
def test_a_grant_fits_nothing_else(approvals: Approvals, field: str) -> None:
    approvals.ask(ASKED)
    approvals.answer("a-1", Answer(True))
    assert not approvals.permits(replace(ASKED, **{field: "another"}))
    assert approvals.permits(ASKED)


def test_for_a_session_it_reaches_what_the_same_rule_asks(approvals: Approvals) -> None:
    approvals.ask(ASKED)
    approvals.answer("a-1", Answer(True, "session", confirmed=True))
    assert approvals.permits(OTHER)
    assert not approvals.permits(replace(OTHER, session="t"))
    assert not approvals.permits(replace(OTHER, decision={"rule": {**RULE, "line": 2}}))


def test_a_limit_is_lifted_once_only(approvals: Approvals) -> None:
    approvals.ask(replace(ASKED, decision={"rule": RULE, "limit": {"max_files": 1}}))
    with pytest.raises(CallError) as caught:
        approvals.answer("a-1", Answer(True, "session", confirmed=True))
    assert caught.value.code == "invalid_arguments"
    approvals.answer("a-1", Answer(True))


def test_a_grant_ends_when_it_says(approvals: Approvals, clock: Clock) -> None:
    approvals.ask(ASKED)
    approvals.answer("a-1", Answer(True, "pattern", pattern="build/", until=2_000.0))
    assert approvals.permits(OTHER)
    assert not approvals.permits(replace(OTHER, paths=("build/b", "src/c")))
    clock.now = 2_000.0
    assert not approvals.permits(OTHER)
    assert approvals.get("a-1").state == EXPIRED
    assert approvals.listing() == []


def test_time_refuses_what_nobody_answers(approvals: Approvals, clock: Clock) -> None:
    approvals.ask(ASKED)
    clock.now += WAIT + 1
    with pytest.raises(CallError) as caught:
        approvals.answer("a-1", Answer(True))
    assert caught.value.code == "approval_stale"
    again, stale = approvals.ask(replace(ASKED, id="a-3", asked=clock.now))
    assert (again.id, stale) == ("a-3", False)


def test_two_people_at_once_one_wins(approvals: Approvals) -> None:
    approvals.ask(ASKED)
    approvals.answer("a-1", Answer(True, by="ada"))
    with pytest.raises(CallError) as caught:
        approvals.answer("a-1", Answer(False, by="bob"))
    assert caught.value.code == "approval_stale"


def test_refused_stays_refused_until_a_person_says_otherwise(approvals: Approvals) -> None:
    approvals.ask(ASKED)
    approvals.answer("a-1", Answer(False, reason="not now"))
    with pytest.raises(CallError) as caught:
        approvals.permits(ASKED)
    assert (caught.value.code, "not now" in caught.value.message) == ("approval_refused", True)
    with pytest.raises(CallError) as caught:
        approvals.answer("a-1", Answer(True, by="eve"))
    assert (caught.value.code, "already refused" in caught.value.message) == ("approval_stale", True)
    approvals.reopen("a-1")
    approvals.answer("a-1", Answer(True))
    assert approvals.permits(ASKED)


def test_a_grant_for_all_single_calls_ends(approvals: Approvals, clock: Clock) -> None:
    """Their session has no end of its own, and every later single call belongs to it."""
    asked, other = replace(ASKED, session=SINGLE_CALLS), replace(OTHER, session=SINGLE_CALLS)
    approvals.ask(asked)
    granted = approvals.answer("a-1", Answer(True, SESSION, confirmed=True))
    assert granted.until == clock.now + SINGLE_CALLS_LAST
    clock.now = granted.until - 1
    assert approvals.permits(other)
    clock.now = granted.until
    assert not approvals.permits(other)
    assert approvals.get("a-1").state == EXPIRED


def test_a_person_may_say_when_it_ends(approvals: Approvals, clock: Clock) -> None:
    approvals.ask(replace(ASKED, session=SINGLE_CALLS))
    assert (
        approvals.answer("a-1", Answer(True, SESSION, until=clock.now + 60, confirmed=True)).until
        == clock.now + 60
    )


def test_a_grant_for_a_session_of_its_own_ends_with_that(approvals: Approvals) -> None:
    approvals.ask(ASKED)
    assert approvals.answer("a-1", Answer(True, SESSION, confirmed=True)).until is None
