"""Requests and grants under a policy that tells kinds of writing apart: each is for the kinds shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit import Session
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.granting.effects import effects
from ringfence.toolkit.granting.needs import in_lines
from ringfence.toolkit.granting.scopes import in_words

ONE_RULE = "version: 1\nrules: {read: allow, delete: allow, write: ask, write.edit: {'*.lock': deny}}\n"
OWN_RULES = (
    "version: 1\nrules: {read: allow, delete: allow, write: allow, write.create: ask, write.replace: ask}\n"
)
NO_KINDS = "version: 1\nrules: {read: allow, delete: allow, write: ask}\n"
WIDE = [
    Answer(True, "session", confirmed=True),
    Answer(True, "pattern", pattern="/*", until=9e9, confirmed=True),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / name).write_text("x\n")
    return tmp_path


@pytest.fixture
def session(root: Path, request: pytest.FixtureRequest) -> Iterator[Session]:
    with Session(root, Policy.loads(request.param), state=":memory:") as opened:
        yield opened


def create(session: Session, path: str) -> Any:
    arguments = {"path": path, "content": "new\n", "allow_overwrite": True}
    return session.call({"tool": "create_file", "arguments": arguments})


def asked(session: Session, path: str) -> Request:
    return session.approvals.get(create(session, path).data["approval"]["id"])


@pytest.mark.parametrize("session", [ONE_RULE, OWN_RULES], indirect=True)
@pytest.mark.parametrize("wide", WIDE, ids=lambda answer: answer.scope)
@pytest.mark.parametrize(("shown", "same", "other"), [("new", "newer", "a"), ("a", "b", "new")])
def test_a_wider_grant_is_for_the_kind_that_was_shown(
    session: Session, wide: Answer, shown: str, same: str, other: str
) -> None:
    session.approvals.answer(asked(session, shown).id, wide)
    assert create(session, shown).ok
    assert create(session, same).ok
    assert create(session, other).status == "approval_required"


@pytest.mark.parametrize("session", [NO_KINDS], indirect=True)
@pytest.mark.parametrize("wide", WIDE, ids=lambda answer: answer.scope)
def test_without_kinds_in_the_policy_a_wider_grant_is_for_every_write(session: Session, wide: Answer) -> None:
    request = asked(session, "new")
    assert not any("kind" in need for need in request.needs)
    session.approvals.answer(request.id, wide)
    assert create(session, "a").ok


@pytest.mark.parametrize("session", [ONE_RULE], indirect=True)
def test_a_person_is_shown_the_kind_and_the_agent_is_not(session: Session) -> None:
    request, other = asked(session, "new"), asked(session, "a")
    assert in_lines(request) == [("  ? write.create: new (asks)", "bold")]
    assert in_lines(other) == [("  ? write.replace: a (asks)", "bold")]
    assert in_words(request, "session").endswith("with create_file (write.create)")
    assert "write.create" not in in_words(request, "session", for_agent=True)
    assert "kind" not in str(create(session, "new").to_json())
    assert "opens 0 paths" in effects(session, request, WIDE[0])[1]
    assert "opens 2 paths" in effects(session, other, WIDE[0])[1]


@pytest.mark.parametrize("session", [NO_KINDS], indirect=True)
def test_without_kinds_in_the_policy_a_person_is_shown_none(session: Session) -> None:
    request = asked(session, "new")
    assert in_lines(request) == [("  ? write: new (asks)", "bold")]
    assert in_words(request, "session").endswith("with create_file")


@pytest.mark.parametrize("session", [OWN_RULES], indirect=True)
def test_a_granted_new_file_does_not_replace_one_that_came_meanwhile(session: Session, root: Path) -> None:
    request = asked(session, "new")
    (root / "new").write_text("somebody's\n")
    session.approvals.answer(request.id, Answer(True))
    result = create(session, "new")
    assert (result.error["code"], result.error["where"]) == ("approval_stale", "new")
    assert session.approvals.get(result.data["approval"]["id"]).writes == {"replace"}
    assert (root / "new").read_text() == "somebody's\n"


def test_a_new_file_that_is_denied_by_now_replaces_nothing(root: Path) -> None:
    """What was planned as a new name becomes no replacement, whoever makes a file there just before."""
    policy = Policy.loads("version: 1\nrules: {'*': allow, write.replace: deny}\n")

    def meanwhile(step: str, *_: object) -> None:
        (root / "new").write_text("somebody's\n")

    with Session(root, policy, state=":memory:") as session:
        call = {"tool": "create_file", "arguments": {"path": "new", "content": "x", "allow_overwrite": True}}
        result = session.call(call, meanwhile)
        assert not result.ok
        assert (root / "new").read_text() == "somebody's\n"
        assert session.call(call).error["code"] == "denied_by_policy"  # type: ignore[index]
