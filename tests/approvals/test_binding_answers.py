"""A refusal holds against every grant, and a grant for what its scope says and no more; with real calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit import Session
from ringfence.toolkit.approvals.requests import PENDING, REFUSED, Answer
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.effects import effects
from ringfence.toolkit.session.amend import amend, amended

POLICY = """\
version: 1
rules: {read: allow, write: ask, delete: ask}
agents:
  mover: {rules: {read: allow, delete: {"*": ask}, write: {"*": ask, "docs/**": ask}}}
"""
SESSION = Answer(True, "session", confirmed=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("f1", "f2", "src/a.py", "src/b.py", "docs/x.md"):
        (tmp_path / "w" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "w" / name).write_text(f"{name}\n")
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path / "w"


@pytest.fixture
def coder(root: Path) -> Iterator[Session]:
    with opened(root) as session:
        yield session


def opened(root: Path, agent: str = "coder", session: str = "s") -> Session:
    return Session(root, root.parent / "policy.yaml", agent=agent, session=session, state=root.parent / "st")


def outcome(session: Session, tool: str, **arguments: Any) -> str:
    result = session.call({"tool": tool, "arguments": arguments})
    return "ok" if result.ok else str((result.error or {})["code"])


def ask(session: Session, tool: str, **arguments: Any) -> str:
    result = session.call({"tool": tool, "arguments": arguments})
    assert result.status == "approval_required", result.content
    return str(result.data["approval"]["id"])


@pytest.mark.parametrize("wide", [SESSION, Answer(True, "pattern", pattern="/f*", until=9e9)])
@pytest.mark.parametrize("first", ["refusal", "grant"])
def test_no_wider_grant_overrides_a_refusal(coder: Session, wide: Answer, first: str) -> None:
    refused, other = ask(coder, "delete_file", path="f1"), ask(coder, "delete_file", path="f2")
    steps = [(refused, Answer(False, reason="never touch f1")), (other, wide)]
    for request, answer in steps if first == "refusal" else reversed(steps):
        coder.approvals.answer(request, answer)
    assert outcome(coder, "delete_file", path="f1") == "approval_refused"
    assert outcome(coder, "delete_file", path="f2") == "ok"


@pytest.mark.parametrize("late", [Answer(True), SESSION, Answer(False)])
def test_a_late_answer_changes_nothing_and_its_person_is_told(coder: Session, late: Answer) -> None:
    refused = ask(coder, "delete_file", path="f1")
    coder.approvals.answer(refused, Answer(False, reason="keep it", by="dan"))
    with pytest.raises(CallError, match="already refused by dan: keep it") as caught:
        coder.approvals.answer(refused, late)
    assert caught.value.code == "approval_stale"
    assert "approvals reopen" in (caught.value.hint or "")
    assert outcome(coder, "delete_file", path="f1") == "approval_refused"


def test_a_refused_change_is_answered_again_once_it_is_reopened_which_is_on_record(coder: Session) -> None:
    refused = ask(coder, "delete_file", path="f1")
    with pytest.raises(CallError, match="is pending, not refused"):
        coder.approvals.reopen(refused)
    coder.approvals.answer(refused, Answer(False, by="dan"))
    assert coder.approvals.reopen(refused, by="ann", reason="asked the team").state == PENDING
    assert ask(coder, "delete_file", path="f1") == refused
    coder.approvals.answer(refused, Answer(True))
    assert outcome(coder, "delete_file", path="f1") == "ok"
    said = [one for one in audit.records(coder.state) if one.get("outcome") == "reopened"]
    assert [(one["approval"], one["by"], one["reason"]) for one in said] == [
        (refused, "ann", "asked the team")
    ]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("delete_file", {"path": "f1", "description": "please"}),
        ("delete_file", {"path": "src/../f1"}),
        ("delete", {"path": "f1"}),
    ],
)
def test_in_other_words_it_is_the_same_change(coder: Session, tool: str, arguments: dict[str, str]) -> None:
    coder.approvals.answer(ask(coder, "delete_file", path="f1"), Answer(False))
    assert outcome(coder, tool, **arguments) == "approval_refused"


def test_another_request_for_the_same_change_cannot_be_granted_either(coder: Session) -> None:
    one, other = ask(coder, "delete_file", path="f1"), ask(coder, "delete", path="f1")
    coder.approvals.answer(one, Answer(False, by="dan"))
    with pytest.raises(CallError, match=f"asked as '{one}', is already refused by dan"):
        coder.approvals.answer(other, Answer(True))


def test_sub_agents_are_refused_what_their_parents_are(root: Path, coder: Session) -> None:
    coder.approvals.answer(ask(coder, "delete_file", path="f1"), Answer(False))
    with opened(root, "coder/tests", "s/tests") as below, opened(root, session="t") as elsewhere:
        assert outcome(below, "delete_file", path="f1") == "approval_refused"
        assert outcome(elsewhere, "delete_file", path="f1") == "approval_required"
    with opened(root, "coder2") as other:
        assert outcome(other, "delete_file", path="f1") == "approval_required"


def test_a_changed_policy_does_not_lift_a_refusal(root: Path, coder: Session) -> None:
    coder.approvals.answer(ask(coder, "delete_file", path="f1"), Answer(False))
    (root.parent / "policy.yaml").write_text(POLICY + "# edited\n")
    with opened(root) as session:
        assert outcome(session, "delete_file", path="f1") == "approval_refused"


def test_a_changed_file_is_another_change(root: Path, coder: Session) -> None:
    coder.approvals.answer(ask(coder, "delete_file", path="f1"), Answer(False))
    (root / "f1").write_text("other content\n")
    assert outcome(coder, "delete_file", path="f1") == "approval_required"


def test_of_calls_that_change_nothing_each_is_refused_by_itself(root: Path) -> None:
    (root.parent / "policy.yaml").write_text("version: 1\nrules: {read: ask}\n")
    with opened(root) as session:
        session.approvals.answer(ask(session, "read_file", path="f1"), Answer(False))
        assert outcome(session, "read_file", path="f1") == "approval_refused"
        assert outcome(session, "read_file", path="f2") == "approval_required"


def test_a_grant_is_for_each_rule_that_asks(root: Path) -> None:
    """A move asks two rules: what was granted for one of them is not granted for both."""
    with opened(root, "mover") as session:
        moved = {"source": "f1", "destination": "docs/f1"}
        request = session.approvals.get(ask(session, "move_file", source="f2", destination="f3"))
        session.approvals.answer(request.id, SESSION)
        assert outcome(session, "move_file", **moved) == "approval_required"
        assert outcome(session, "move_file", source="f2", destination="f3") == "ok"


def test_a_pattern_is_matched_against_what_asks_and_no_parent_that_is_made(coder: Session) -> None:
    request = ask(coder, "create_file", path="new/deep/a.txt", content="x")
    asked = coder.approvals.get(request)
    assert asked.asking == ("new/deep/a.txt",)
    assert set(asked.paths) == {"new", "new/deep", "new/deep/a.txt"}
    coder.approvals.answer(request, Answer(True, "pattern", pattern="/new/deep/*.txt", until=9e9))
    assert outcome(coder, "create_file", path="new/deep/a.txt", content="x") == "ok"
    assert outcome(coder, "create_file", path="new/deep/b.txt", content="x") == "ok"
    assert outcome(coder, "create_file", path="new/c.txt", content="x") == "approval_required"


def test_what_waited_for_a_call_that_a_wider_grant_let_through_waits_no_more(coder: Session) -> None:
    waiting, other = ask(coder, "delete_file", path="f1"), ask(coder, "delete_file", path="f2")
    coder.approvals.answer(other, SESSION)
    assert outcome(coder, "delete_file", path="f1") == "ok"
    assert coder.approvals.get(waiting).state == "stale"


def test_a_person_is_told_what_a_wide_grant_would_do(coder: Session) -> None:
    refused, waiting = ask(coder, "delete_file", path="f1"), ask(coder, "delete_file", path="src/a.py")
    coder.approvals.answer(refused, Answer(False))
    request = coder.approvals.get(ask(coder, "delete_file", path="f2"))
    scope, opens, waits, refusals = effects(coder, request, SESSION)
    assert scope.startswith("for this session (s): all that ") and 'delete "*"' in scope
    assert opens == "opens 7 paths that are there now; the first that was not shown: docs"
    assert (waiting in waits, refused in refusals, refused in waits) == (True, True, False)
    narrow = effects(coder, request, Answer(True, "pattern", pattern="/src/*.py", until=9e9))
    assert "opens 2 paths that are there now; the first that was not shown: src/a.py" in narrow


def test_next_to_everything_is_confirmed_a_second_time(coder: Session) -> None:
    request = ask(coder, "delete_file", path="f1")
    for wide in (Answer(True, "session"), Answer(True, "pattern", pattern="/*", until=9e9)):
        with pytest.raises(CallError) as caught:
            coder.approvals.answer(request, wide)
        assert (caught.value.code, caught.value.where) == ("invalid_arguments", "confirmed")
    assert coder.approvals.get(request).state == PENDING


def test_changed_arguments_that_make_the_same_change_grant_it(coder: Session) -> None:
    request = ask(coder, "create_file", path="n", content="x")
    same = {"path": "n", "content": "x", "create_parents": False}
    would = amended(coder, request, same)
    assert would is not None
    amend(coder, request, same, digest=would.digest, by="ann")
    assert outcome(coder, "create_file", path="n", content="x") == "ok"


def test_changed_arguments_do_not_overrule_a_refusal(coder: Session) -> None:
    coder.approvals.answer(ask(coder, "delete_file", path="f1"), Answer(False))
    other = ask(coder, "delete_file", path="f2")
    would = amended(coder, other, {"path": "f1"})
    assert would is not None
    with pytest.raises(CallError) as caught:
        amend(coder, other, {"path": "f1"}, digest=would.digest, by="ann")
    assert caught.value.code == "approval_refused"
    assert coder.approvals.get(other).state != REFUSED
