"""What is lost comes first: of each call, in its words, in each order, and in the confirmation's reversal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.toolkit import Session
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.cli.approval_prompt import heading
from ringfence.toolkit.granting.asker import told_lines, waiting_lines
from ringfence.toolkit.granting.confirmations import confirmation
from ringfence.toolkit.granting.losses import by_session, kind, loss, losses_first, needs_second_look
from tests.services.asking import asking

CASES = yaml.safe_load((Path(__file__).parent / "losses.yaml").read_text(encoding="utf-8"))
assert len(CASES) > 5


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    names = ("old/a", "old/sub/b", "src/a.py", "docs/x.md")
    with asking(tmp_path, *names) as opened:
        for name in names:
            (tmp_path / "w" / name).write_text(f"one of {name}\n")
        yield opened


def contents(session: Session) -> set[str]:
    return {path.read_text() for path in Path(session.workspace.url).rglob("*") if path.is_file()}


def ask(session: Session, call: dict[str, Any]) -> Request:
    result = session.call(call)
    assert result.status == "approval_required", result.content
    return session.approvals.get(result.data["approval"]["id"])


def deletion(session: Session, path: str) -> Request:
    return ask(session, {"tool": "delete", "arguments": {"path": path}})


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['call']['tool']} {case['kind']}")
def test_what_a_call_takes_away(session: Session, case: dict[str, Any]) -> None:
    request = ask(session, case["call"])
    assert heading(request)[1][0] == case["says"]
    assert kind(request) == case["kind"]
    assert needs_second_look(request) is case["confirm"]
    # Independently: which contents are nowhere any more once the call is done. An edit keeps most of one.
    before = contents(session)
    session.approvals.answer(request.id, Answer(True))
    assert session.call(case["call"]).ok
    assert loss(request).any is (bool(before - contents(session)) and case["kind"] != "edits")


def test_a_request_from_before_that_names_no_losses_deletes(session: Session) -> None:
    request = deletion(session, "old")
    needs = tuple({name: value for name, value in need.items() if name != "loses"} for need in request.needs)
    assert loss(replace(request, needs=needs)) == loss(request)


def test_what_cannot_be_restored_comes_first_and_is_named() -> None:
    base = Request("a-1", "a", "s", "delete_file", {}, "", "", "t", "", {"effect": "ask"}, asked=3.0)
    need = {"action": "delete", "path": "x", "directory": False, "on_the_way": False, "asks": True}
    gone = replace(base, needs=({**need, "loses": "deleted"},))
    forever = replace(gone, id="a-2", asked=9.0, decision={"effect": "ask", "not_recoverable": ["x\x1b"]})
    older = replace(base, id="a-3", asked=1.0, session="t")
    replaced = replace(base, id="a-4", needs=({**need, "action": "write", "loses": "replaced"},))
    tree = replace(base, id="a-5", asked=8.0, needs=({**need, "directory": True, "loses": "deleted"},))
    order = losses_first([older, base, replaced, gone, forever, tree])
    assert [one.id for one in order] == ["a-2", "a-5", "a-1", "a-4", "a-3", "a-1"]
    assert r"CANNOT BE RESTORED: x\x1b" in loss(forever).in_words()
    assert needs_second_look(forever) and not needs_second_look(gone)
    ran = replace(gone, tool="run_command", changes=True)
    assert needs_second_look(ran), "what a command deletes is confirmed"
    grouped = by_session([older, base, replaced, gone, forever])
    assert [name for name, _ in grouped] == ["s", "t"], "the session that loses most comes first"


def test_each_answer_is_confirmed_with_its_reversal(session: Session) -> None:
    first = deletion(session, "src/a.py")
    granted = session.approvals.answer(first.id, Answer(True))
    said = confirmation(granted)
    assert said.what.startswith("granted for this change, once: Delete file src/a.py")
    assert said.command == f"ringfence approvals revoke {first.id}"
    assert "as long as the agent has not used it" in said.reversal
    assert not confirmation(session.approvals.revoke(first.id)).command, "nothing is left to be reversed"
    second = deletion(session, "old/a")
    refused = confirmation(session.approvals.answer(second.id, Answer(False, reason="keep\x1b it")))
    assert refused.command == f"ringfence approvals reopen {second.id}"
    assert r"The agent is told: keep\x1b it" in refused.next
    assert confirmation(session.approvals.reopen(second.id)).what.startswith("waits again")
    by_rule = confirmation(session.approvals.settle(second.id, "r-1234", "rule"))
    assert by_rule.command == "ringfence approvals revoke-rule r-1234"


def test_who_waits_since_when_and_what_it_was_told(session: Session) -> None:
    request = replace(deletion(session, "old"), description="tidy\x1b[2K")
    lines = [text for text, _ in waiting_lines(request, request.asked + 7300)]
    assert "  agent: coder   session: s" in lines
    assert any(line.startswith("  asked: 2 h ago, at ") and " UTC" in line for line in lines)
    assert r'  agent says: "tidy\x1b[2K"' in lines
    told = [text for text, _ in told_lines(request, request.asked, request.asked - 42)]
    assert told[0].startswith("  the agent was told: approval needed: Delete directory old")
    assert told[-1] == "  last call of its session: 42 s ago"
