"""What a person is shown of a request: the plan's own needs, each end of a move with its own action."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit import Session
from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.cli.approval_prompt import heading
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.needs import in_lines, shown_needs
from ringfence.toolkit.granting.scopes import scopes
from tests.services.asking import asking


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with asking(tmp_path, "old/a", "old/sub/b", "src/a.py", "docs/x.md") as opened:
        yield opened


def ask(session: Session, tool: str, **arguments: Any) -> Request:
    result = session.call({"tool": tool, "arguments": arguments})
    assert result.status == "approval_required", result.content
    return session.approvals.get(result.data["approval"]["id"])


CASES = [
    (
        "move_file",
        {"source": "old", "destination": "docs/new/old"},
        ["  ? delete: old (asks)", "  ✓ write: docs/new/old (allowed)", "  made on the way: docs/new"],
    ),
    ("delete", {"path": "old"}, ["  ? delete: old (asks)"]),
    (
        "copy_file",
        {"source": "docs/x.md", "destination": "y"},
        ["  ? write: y (asks)", "  ✓ read: docs/x.md (allowed)"],
    ),
    ("edit_file", {"path": "src/a.py", "old_str": "one", "new_str": "two"}, ["  ? write: src/a.py (asks)"]),
    (
        "create_file",
        {"path": "pkg/new/mod.py", "content": ""},
        ["  ? write: pkg/new/mod.py (asks)", "  made on the way: pkg, pkg/new"],
    ),
]


@pytest.mark.parametrize(("tool", "arguments", "wanted"), CASES, ids=[case[0] for case in CASES])
def test_each_path_has_the_action_that_the_plan_needs_there(
    session: Session, tool: str, arguments: dict[str, str], wanted: list[str]
) -> None:
    request = ask(session, tool, **arguments)
    assert [line for line, _ in in_lines(request)] == wanted
    assert [line for line, _ in heading(request)][3 : 3 + len(wanted)] == wanted


def test_a_request_from_before_shows_its_paths(session: Session) -> None:
    request = replace(ask(session, "delete", path="old"), needs=())
    assert [line for line, _ in in_lines(request)] == ["  ? delete: old (asks)"]
    assert {need["action"] for need in shown_needs(request)} == {"delete"}


def test_a_pattern_is_held_against_what_asks_and_not_against_parents_made_on_the_way(
    session: Session,
) -> None:
    request = ask(session, "create_file", path="pkg/new/mod.py", content="")
    offered = [scope.pattern for scope in scopes(request) if scope.pattern is not None]
    assert offered[0] == "/pkg/new/mod.py"
    for pattern in ("pkg", "pkg/**", "pkg/new/*", "*.py"):
        session.approvals.check(request, Answer(True, "pattern", pattern=pattern, until=9e9))
    with pytest.raises(CallError, match=r"does not match what was asked for: 'pkg/new/mod\.py'"):
        session.approvals.check(request, Answer(True, "pattern", pattern="pkg/*.md", until=9e9))
    session.approvals.answer(request.id, Answer(True, "pattern", pattern="pkg/new/*", until=9e9))
    call = {"tool": "create_file", "arguments": {"path": "pkg/new/other.py", "content": ""}}
    assert session.call(call).ok
