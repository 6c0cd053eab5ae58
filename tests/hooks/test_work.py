"""How much a hook looks at, whatever an event says: counted in verdicts and names, not in time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringfence.policy import Policy
from ringfence.toolkit.hooks import directory_listing as walk
from tests.hooks.conftest import Said

Hook = Callable[..., Said]


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch, workspace: Path) -> list[str]:
    """The folders of the workspace that were looked into."""
    seen: list[str] = []
    real = os.scandir

    def scandir(path: str) -> Any:
        seen.extend([path] if path.startswith(str(workspace)) else [])
        return real(path)

    monkeypatch.setattr(walk.os, "scandir", scandir)  # type: ignore[attr-defined]
    return seen


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths on which the policy was asked."""
    seen: list[str] = []
    real = Policy.decide

    def decide(self: Policy, agent: str, tool: str, needs: Any, **more: Any) -> Any:
        listed = list(needs)
        seen.extend(need.path for need in listed)
        return real(self, agent, tool, listed, **more)

    monkeypatch.setattr(Policy, "decide", decide)
    return seen


def many(root: Path, include: list[str]) -> bytes:
    event = {"hook_event_name": "BeforeTool", "tool_name": "read_many_files", "cwd": str(root)}
    return json.dumps(event | {"tool_input": {"include": include}}).encode()


def test_equal_entries_are_judged_once(hook: Hook, workspace: Path, scanned: list[str]) -> None:
    assert hook("gemini", many(workspace, ["tmp/**/*", "tmp"] * 900)).out == ""
    assert len(scanned) == 2
    said = hook("gemini", many(workspace, ["tmp/**/*"] * 1_800 + [".env"]))
    assert "secrets stay here" in said.answer["reason"]


def test_different_patterns_in_one_folder_are_one_walk(
    hook: Hook, workspace: Path, scanned: list[str], verdicts: list[str]
) -> None:
    patterns = [f"tmp/**/*{'?' * n}" for n in range(90)] + [f"tmp/{n}*" for n in range(1_710)]
    assert hook("gemini", many(workspace, patterns)).out == ""
    assert len(scanned) == 1
    assert sorted(verdicts) == ["tmp", "tmp/a"]


def test_the_bound_is_one_for_the_whole_call(
    hook: Hook, workspace: Path, scanned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "MAX_NAMES", 10)
    for n in range(9):
        (workspace / "tmp" / str(n) / "empty").mkdir(parents=True)
    said = hook("gemini", many(workspace, [f"tmp/{n}/*" for n in range(9)]))
    assert said.out == ""
    said = hook("gemini", many(workspace, [f"tmp/{n}/*" for n in range(9)] + ["tmp/*"]))
    assert "more than 10 names" in said.answer["reason"]


def test_folders_count(hook: Hook, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MAX_NAMES", 10)
    for n in range(10):
        (workspace / "tmp" / str(n)).mkdir()
    assert "more than 10 names" in hook("gemini", many(workspace, ["tmp/**"])).answer["reason"]


def test_over_the_bound_a_deny_still_counts(
    hook: Hook, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "MAX_NAMES", 0)
    said = hook("gemini", many(workspace, ["tmp/**", ".env"]), "--ask", "host")
    assert said.answer["decision"] == "deny"
    assert hook("gemini", many(workspace, ["tmp/**"]), "--ask", "host").answer["decision"] == "ask"


def test_names_alone_over_the_bound_are_left_to_the_host(
    hook: Hook, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = {"hook_event_name": "PreToolUse", "tool_name": "Glob", "cwd": str(workspace)}
    data = json.dumps(event | {"tool_input": {"pattern": "tmp/**"}}).encode()
    assert '"allow"' in hook("claude-code", data).out
    monkeypatch.setattr(walk, "MAX_NAMES", 0)
    assert hook("claude-code", data).out == ""


def test_over_the_bound_the_fullest_folder_that_may_be_known_is_named(
    hook: Hook, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk, "MAX_NAMES", 12)
    (workspace / "ringfence.yaml").write_text(
        "version: 1\nrules: {read: {'*': allow, 'top/a-secret/': deny}}\n"
    )
    for folder, count in (("a-secret", 5), ("b", 3), ("c", 9)):
        for n in range(count):
            (workspace / "top" / folder / str(n)).mkdir(parents=True)
    said = hook("gemini", many(workspace, ["top/[bc]/**", "top/b/**"]), "--ask", "host").answer
    assert said["decision"] == "ask"
    assert "more than 12 names; a person decides. Most are in 'top/b': search a folder" in said["reason"]
    assert "secret" not in said["reason"]
