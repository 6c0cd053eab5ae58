"""Who decided: the record of a call has the grant that let it through, and the rule that counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit import Session
from ringfence.toolkit.approvals.requests import Answer
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.log import RecordFilter
from tests.services.asking import POLICY, asking

END = 9e9
GRANTS = {
    "once": Answer(True, by="ann"),
    "session": Answer(True, "session", by="ann", confirmed=True),
    "pattern": Answer(True, "pattern", by="ann", pattern="/src/*", until=END),
}


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with asking(tmp_path, "src/a.py", "src/b.py", "docs/x.md", "old/sub/z") as opened:
        yield opened


def ask(session: Session, tool: str, **arguments: Any) -> str:
    result = session.call({"tool": tool, "arguments": arguments})
    assert result.status == "approval_required", result.content
    return str(result.data["approval"]["id"])


def last(session: Session) -> dict[str, Any]:
    return audit.newest(session.state, RecordFilter(), 1)[0]


@pytest.mark.parametrize("scope", GRANTS)
def test_the_record_of_a_call_has_the_grant_that_let_it_through(session: Session, scope: str) -> None:
    approval = ask(session, "delete_file", path="src/a.py", description="tidy")
    answered = session.approvals.answer(approval, GRANTS[scope])
    assert session.call({"tool": "delete_file", "arguments": {"path": "src/a.py"}}).ok
    done = last(session)
    assert (done["outcome"], done["approval"], done["by"], done["scope"]) == ("done", approval, "ann", scope)
    assert done["granted"] == answered.decided is not None
    assert (done["pattern"], done["until"]) == (answered.pattern, answered.until)
    assert done["asked_as"] == "tidy"
    assert "granted_for" not in done


@pytest.mark.parametrize("scope", ["session", "pattern"])
def test_a_grant_for_another_request_is_linked(session: Session, scope: str) -> None:
    approval = ask(session, "delete_file", path="src/a.py")
    session.approvals.answer(approval, GRANTS[scope])
    assert session.call({"tool": "delete_file", "arguments": {"path": "src/b.py"}}).ok
    done = last(session)
    assert (done["approval"], done["by"], done["scope"]) == (approval, "ann", scope)
    assert done["granted_for"] == session.approvals.get(approval).title
    assert "src/a.py" in done["granted_for"]


def test_records_are_found_by_who_answered(session: Session) -> None:
    for path, by in (("src/a.py", "ann"), ("src/b.py", "bob")):
        approval = ask(session, "delete_file", path=path)
        session.approvals.answer(approval, Answer(True, by=by))
        session.call({"tool": "delete_file", "arguments": {"path": path}})
    found = list(audit.matching(session.state, RecordFilter(by="ann")))
    assert [(one["event"], one["outcome"], one["paths"]) for one in found] == [
        ("approval", "granted", ["src/a.py"]),
        ("approval", "used", ["src/a.py"]),
        ("call", "done", ["src/a.py"]),
    ]


def test_records_of_approvals_have_the_paths(session: Session) -> None:
    refused = ask(session, "delete", path="old")
    session.approvals.answer(refused, Answer(False, by="ann"))
    found = list(audit.matching(session.state, RecordFilter(path="old/sub/z")))
    assert [one["outcome"] for one in found if one["event"] == "approval"] == ["asked", "refused"]
    assert found[0]["paths"][0] == "old"


def test_of_equal_verdicts_the_one_that_changes_most_is_on_record(session: Session) -> None:
    edit = {"path": "docs/x.md", "old_str": "one", "new_str": "two"}
    assert session.call({"tool": "edit_file", "arguments": edit}).ok
    decision = last(session)["decision"]
    assert (decision["action"], decision["rule"]["pattern"]) == ("write", "docs/**")
    ask(session, "move_file", source="src/a.py", destination="src/c.py")
    assert last(session)["decision"]["action"] == "delete"


def test_a_request_has_the_needs_of_its_plan(session: Session) -> None:
    approval = ask(session, "move_file", source="old", destination="docs/new/old")
    needs = session.approvals.get(approval).needs
    shown = [(one["action"], one["path"]) for one in needs if one["asks"]]
    assert shown == [("delete", "old"), ("delete", "old/sub"), ("delete", "old/sub/z")]
    assert ("write", "docs/new/old") in [(one["action"], one["path"]) for one in needs]
    assert not any(one["path"].startswith("docs") for one in needs if one["action"] == "delete")
    assert [one["path"] for one in needs if one["on_the_way"]] == ["docs/new"]


def test_a_rule_did_not_decide_where_a_limit_did(session: Session, tmp_path: Path) -> None:
    limited = POLICY + "limits: {write: {max_files: 0}}\n"
    (tmp_path / "limited.yaml").write_text(limited)
    edit = {"path": "docs/x.md", "old_str": "one", "new_str": "two"}
    with Session(
        tmp_path / "w", tmp_path / "limited.yaml", agent="coder", session="s", state=tmp_path / "state"
    ) as other:
        assert not other.call({"tool": "edit_file", "arguments": edit}).ok
        assert last(other)["decision"]["limit"] is not None
        assert session.call({"tool": "edit_file", "arguments": edit}).ok
        counted = [(kind.effect, kind.rule and kind.rule[3]) for kind, _ in audit.kinds(other.state)]
    assert ("allow", "docs/**") in counted
    assert len([pattern for _, pattern in counted if pattern == "docs/**"]) == 1
