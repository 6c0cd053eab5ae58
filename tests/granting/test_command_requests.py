"""Requests about a command: before it runs and about its changes, as each interface shows them."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from ringfence.policy import Policy
from ringfence.toolkit.approvals import grant_scope
from ringfence.toolkit.approvals.requests import GRANTED, PATTERN, Answer, Request
from ringfence.toolkit.audit.command_records import CHANGES, TO_RUN
from ringfence.toolkit.cli import approval_messages, approval_prompt
from ringfence.toolkit.cli.approval_prompt import Terminal
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.command_requests import afterwards, notice
from ringfence.toolkit.granting.needs import in_lines
from ringfence.toolkit.granting.scopes import scopes
from ringfence.toolkit.mcp import elicitation
from ringfence.toolkit.sandbox import levels
from ringfence.toolkit.session.session import Session

CASES = yaml.safe_load((Path(__file__).parent / "command_requests.yaml").read_text(encoding="utf-8"))
RULE = {"tier": "global", "agent": None, "key": "run", "pattern": "rm *", "file": "p.yaml", "line": 3}


def request(case: dict[str, Any], **changed: Any) -> Request:
    fields: dict[str, Any] = {
        "id": "a-1",
        "agent": "coder",
        "session": "s1",
        "tool": "run_command",
        "arguments": case["arguments"],
        "digest": "0" * 64,
        "revision": "1" * 64,
        "title": case["title"],
        "preview": f"$ {case['arguments']['command']}\n",
        "decision": {"effect": "ask", "rule": RULE, "reason": "a rule asks", "hint": ""},
        "needs": tuple(case["needs"]),
        "asking": tuple(case["asking"]),
        "asks": (RULE,),
        "changes": case["changes"],
        "shown": {"title": case["title"], "preview": f"$ {case['arguments']['command']}\n"},
    }
    return Request(**fields | changed)


@pytest.fixture(params=CASES, ids=lambda case: case["name"])
def case(request: pytest.FixtureRequest) -> dict[str, Any]:
    return dict(request.param)


def test_the_terminal_says_whether_the_command_ran(case: dict[str, Any]) -> None:
    out = io.StringIO()
    approval_prompt.answer(request(case), Terminal(io.StringIO("n\n"), out), lambda _: [])
    shown = out.getvalue()
    order = [
        case["title"],
        case["shows"],
        *case["lines"],
        "asks because of",
        f"y: {case['once']}",
        "Allow it?",
    ]
    places = [shown.index(text) for text in order]
    assert places == sorted(places)
    assert case["hides"] not in shown


def test_the_needs_begin_with_what_is_destroyed(case: dict[str, Any]) -> None:
    assert [line for line, _ in in_lines(request(case))] == case["lines"]


def test_what_can_be_granted(case: dict[str, Any]) -> None:
    assert list(dict.fromkeys(scope.name for scope in scopes(request(case)))) == case["scopes"]
    assert next(scopes(request(case))).words == case["once"]


def test_the_channel_has_it_as_a_field_and_in_words(case: dict[str, Any]) -> None:
    message = approval_messages.asked(request(case), None, [])
    assert message["of_command"] == (CHANGES if case["changes"] else TO_RUN)
    assert case["shows"] in message["notice"]


@pytest.mark.parametrize("titled", [True, False])
def test_the_clients_user_is_told(case: dict[str, Any], titled: bool) -> None:
    question = elicitation.question(request(case), titled=titled)
    shown = case["shows"][0].upper() + case["shows"][1:]
    assert shown in question["message"]
    assert case["hides"] not in question["message"]
    decision = question["requestedSchema"]["properties"]["decision"]
    titles = [one["title"] for one in decision["oneOf"]] if titled else decision["enumNames"]
    assert titles[0] == f"Allow {case['once']}"
    assert titles[-1] == case["refuse"]


def test_no_pattern_of_paths_lets_a_command_run() -> None:
    """The text of a command can look like a path that the pattern matches."""
    asked = request(CASES[0])
    answer = Answer(True, PATTERN, pattern="*", until=2e9, confirmed=True)
    with pytest.raises(CallError, match="A pattern is for paths"):
        grant_scope.check_scope(asked, answer, 0.0)
    grant = replace(asked, state=GRANTED, scope=PATTERN, pattern="*")
    assert not grant_scope.covers(grant, asked)
    changes = request(CASES[1])
    grant_scope.check_scope(changes, answer, 0.0)
    assert grant_scope.covers(replace(changes, state=GRANTED, scope=PATTERN, pattern="*"), changes)


def test_many_changes_do_not_fill_the_screen() -> None:
    row = CASES[1]["needs"][0]
    many = request(CASES[1], needs=tuple({**row, "path": f"f{n}"} for n in range(1000)), asking=("f0",))
    lines = [line for line, _ in in_lines(many)]
    assert lines == [
        *(f"  ? write: f{n} (asks)" for n in range(20)),
        "  ? write: 980 more, in the diff (asks)",
    ]


def test_another_call_has_no_notice() -> None:
    other = request(CASES[1], tool="delete")
    assert (other.of_command, notice(other)) == ("", "")
    assert afterwards(other) == "the agent may now send the same call again"


@pytest.mark.skipif(
    not any(one.works and one.level in ("overlay", "copy") for one in levels()),
    reason="this machine cannot confine a command",
)
def test_the_agent_is_not_shown_what_it_may_not_read(tmp_path: Path) -> None:
    """A program can make names that the agent did not write in its command."""
    root = tmp_path / "w"
    (root / "secret").mkdir(parents=True)
    (root / "make.sh").write_text("echo x > secret/key; echo y > a\n", encoding="utf-8")
    policy = Policy.loads(
        'version: 1\nrules: {read: {"*": allow, "secret/**": deny}, write: {"*": ask, "secret/**": deny},'
        ' run: {"*": allow}}\ncommands: {require: copy}\n'
    )
    with Session(root, policy, state=tmp_path / "state") as session:
        arguments = {"command": "sh make.sh", "on_denied": "drop"}
        result = session.call({"tool": "run_command", "arguments": arguments})
        asked = session.approvals.get(result.data["approval"]["id"])
    assert "denied, so left out: secret/key" in asked.preview
    for text in (str(asked.shown), elicitation.question(asked)["message"], result.to_line()):
        assert "secret/key" not in text
    assert "Run command: sh make.sh" in asked.shown["title"]
