"""Hooks judge contents: what a write adds, and what a read or a search would show. A mask becomes an ask."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.hooks.conftest import Said, event_of

POLICY = """
version: 1
rules:
  read:
    "*": allow
    "src/**": {effect: deny, content: {match: "pw-[0-9]{4}"}}
    "tmp/**": {effect: ask, content: {match: "pw-[0-9]{4}"}, mask: true}
  write:
    "*": allow
    "src/**": {effect: deny, content: {match: "pw-[0-9]{4}"}}
    "tmp/**": {effect: ask, content: {match: "pw-[0-9]{4}"}}
  delete: allow
"""
PATCH = "*** Begin Patch\n*** Update File: src/has\n@@\n-a\n+{}\n*** End Patch"

CASES = [
    ("Read", {"file_path": "$ROOT/src/app.py"}, "allow"),
    ("Read", {"file_path": "$ROOT/src/has"}, "deny"),
    ("Read", {"file_path": "$ROOT/tmp/has"}, "ask"),
    ("Read", {"file_path": "$ROOT/has"}, "allow"),
    ("Grep", {"pattern": "x", "path": "$ROOT/src", "output_mode": "content"}, "deny"),
    ("Grep", {"pattern": "x", "path": "$ROOT/src", "glob": "app.py", "output_mode": "content"}, "allow"),
    ("Grep", {"pattern": "x", "path": "$ROOT/tmp", "output_mode": "content"}, "ask"),
    ("Write", {"file_path": "$ROOT/src/n", "content": "a pw-1234 b"}, "deny"),
    ("Write", {"file_path": "$ROOT/src/n", "content": "a pw-123"}, "allow"),
    ("Write", {"file_path": "$ROOT/tmp/n", "content": "a pw-1234 b"}, "ask"),
    ("Write", {"file_path": "$ROOT/n", "content": "a pw-1234 b"}, "allow"),
    ("Edit", {"file_path": "$ROOT/src/has", "old_string": "end", "new_string": "done"}, "allow"),
    ("Edit", {"file_path": "$ROOT/src/has", "old_string": "end", "new_string": "pw-5678"}, "deny"),
    # The second step of two: neither text is a password, the file with the change has one.
    ("Edit", {"file_path": "$ROOT/src/half", "old_string": "pw-", "new_string": "pw-56"}, "deny"),
    (
        "MultiEdit",
        {
            "file_path": "$ROOT/src/half",
            "edits": [{"old_string": "pw-", "new_string": "pq"}, {"old_string": "pq", "new_string": "pw-56"}],
        },
        "deny",
    ),
    ("NotebookEdit", {"notebook_path": "$ROOT/src/a.ipynb", "new_source": "pw-5678"}, "deny"),
]


@pytest.fixture
def guarded(workspace: Path) -> Path:
    (workspace / "ringfence.yaml").write_text(POLICY, encoding="utf-8")
    for name in ("src/has", "tmp/has", "has"):
        (workspace / name).write_text("pw-1234\nend\n", encoding="utf-8")
    (workspace / "src/half").write_text("pw-12\n", encoding="utf-8")
    (workspace / "src/a.ipynb").write_text("{}", encoding="utf-8")
    return workspace


@pytest.mark.parametrize(("tool", "given", "want"), CASES)
def test_a_hosts_call_is_judged_by_its_contents(
    guarded: Path, hook: Callable[..., Said], tool: str, given: dict[str, Any], want: str
) -> None:
    event = event_of({"event": "PreToolUse", "tool": tool, "input": given}, guarded)
    said = hook("claude-code", event)
    answer = said.answer["hookSpecificOutput"]
    assert answer["permissionDecision"] == want, said
    assert "1234" not in json.dumps(answer)
    if want != "allow":
        assert "the content has: match" in answer["permissionDecisionReason"]


@pytest.mark.parametrize(("line", "want"), [("b", "allow"), ("pw-9876", "deny"), ("pw-1234", "allow")])
def test_a_patch_is_judged_by_the_lines_that_it_adds(
    guarded: Path, hook: Callable[..., Said], line: str, want: str
) -> None:
    case = {"event": "PreToolUse", "tool": "apply_patch", "input": {"command": PATCH.format(line)}}
    said = hook("codex", event_of(case, guarded))
    found = said.answer["hookSpecificOutput"]["permissionDecision"] if said.answer else "allow"
    assert found == want, said


HALF = {"old": "pw-", "new": "pw-56"}  # neither text is a password, the file with the change has one


@pytest.mark.parametrize(
    ("host", "event", "tool", "given"),
    [
        ("opencode", "tool.execute.before", "read", {"filePath": "$ROOT/src/has"}),
        (
            *("opencode", "tool.execute.before", "edit"),
            {"filePath": "$ROOT/src/half", "oldString": HALF["old"], "newString": HALF["new"]},
        ),
        ("copilot", "preToolUse", "view", {"path": "$ROOT/src/has"}),
        (
            *("copilot", "preToolUse", "edit"),
            {"path": "$ROOT/src/half", "old_str": HALF["old"], "new_str": HALF["new"]},
        ),
        ("copilot", "preToolUse", "apply_patch", PATCH.format("pw-9876")),
        ("vscode", "PreToolUse", "read_file", {"filePath": "$ROOT/src/has"}),
        (
            *("vscode", "PreToolUse", "multi_replace_string_in_file"),
            {
                "replacements": [
                    {"filePath": "$ROOT/src/half", "oldString": HALF["old"], "newString": HALF["new"]}
                ]
            },
        ),
        ("cursor", "preToolUse", "Read", {"file_path": "$ROOT/src/has"}),
        ("cursor", "preToolUse", "Grep", {"pattern": "x", "path": "$ROOT/src"}),
    ],
)
def test_the_contents_count_for_every_host(
    host: str, event: str, tool: str, given: Any, guarded: Path, hook: Callable[..., Said]
) -> None:
    said = hook(host, event_of({"host": host, "event": event, "tool": tool, "input": given}, guarded))
    assert '"deny"' in said.out and "the content has: match" in said.out, said
