"""A person changes what was asked for: the changed call is judged again, and permitted, not made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.session.amend import amend, amended
from ringfence.toolkit.session.session import Session

POLICY = 'version: 1\nrules: {"*": {"*": allow}, delete: {"*": ask, "tmp/": allow, "secrets/": deny}}\n'


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    for name in ("a", "b", "tmp/c", "secrets/d"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    with Session(tmp_path, Policy.loads(POLICY), agent="coder", session="s", state=":memory:") as found:
        yield found


def ask(session: Session, path: str = "a") -> str:
    result = session.call({"tool": "delete", "arguments": {"path": path}})
    assert result.status == "approval_required", result.content
    return str(result.data["approval"]["id"])


def test_the_changed_call_goes_through_and_the_first_is_told_of_it(session: Session, tmp_path: Path) -> None:
    asked = ask(session)
    would = amended(session, asked, {"path": "b"})
    assert would is not None
    assert would.paths == ("b",)
    assert [one.id for one in session.approvals.listing()] == [asked]
    granted = amend(session, asked, {"path": "b"}, digest=would.digest, by="ann")
    assert granted is not None
    assert (tmp_path / "b").exists(), "permitting is not doing"
    refused = session.call({"tool": "delete", "arguments": {"path": "a"}})
    assert refused.error is not None
    assert refused.error["code"] == "approval_refused"
    assert '{"path": "b"}' in refused.content
    assert session.call({"tool": "delete", "arguments": {"path": "b"}}).ok
    assert not (tmp_path / "b").exists()
    (tmp_path / "b").write_text("again")
    assert session.call({"tool": "delete", "arguments": {"path": "b"}}).status == "approval_required"


def test_what_needs_nobody_is_only_told(session: Session) -> None:
    asked = ask(session)
    assert amended(session, asked, {"path": "tmp/c"}) is None
    assert amend(session, asked, {"path": "tmp/c"}, digest="", by="ann") is None
    assert session.approvals.get(asked).state == "refused"
    assert session.call({"tool": "delete", "arguments": {"path": "tmp/c"}}).ok


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"path": "secrets/d"}, "denied_by_policy"),
        ({"path": "../x"}, "outside_root"),
        ({"path": "none"}, "not_found"),
        ({"paths": "b"}, "invalid_arguments"),
    ],
)
def test_what_may_not_be_done_is_not_permitted_either(
    session: Session, arguments: dict[str, str], code: str
) -> None:
    asked = ask(session)
    with pytest.raises(CallError) as caught:
        amended(session, asked, arguments)
    assert caught.value.code == code
    assert session.approvals.get(asked).state == "pending"


def test_what_was_shown_is_what_is_permitted(session: Session, tmp_path: Path) -> None:
    asked = ask(session)
    would = amended(session, asked, {"path": "b"})
    assert would is not None
    (tmp_path / "b").write_text("other content")
    with pytest.raises(CallError, match="something else by now"):
        amend(session, asked, {"path": "b"}, digest=would.digest, by="ann")
    assert session.approvals.get(asked).state == "pending"


def test_only_for_who_asked_and_while_it_waits(session: Session, tmp_path: Path) -> None:
    asked = ask(session)
    session.context = replace(session.context, agent="other")
    with pytest.raises(CallError, match="another agent"):
        amended(session, asked, {"path": "b"})
    session.context = replace(session.context, agent="coder")
    session.approvals.answer(asked, Answer(True))
    with pytest.raises(CallError, match="already granted"):
        amended(session, asked, {"path": "b"})


def test_a_call_that_did_not_change_is_simply_granted(session: Session) -> None:
    asked = ask(session)
    would = amended(session, asked, {"path": "a"})
    assert would is not None
    granted = amend(session, asked, {"path": "a"}, digest=would.digest, by="ann")
    assert granted is not None
    assert granted.id == asked
    assert session.call({"tool": "delete", "arguments": {"path": "a"}}).ok
