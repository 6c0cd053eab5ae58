"""A workspace with everything that a path of an event can meet, and a hook run in this process."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.hooks.hook_options import quick
from ringfence.toolkit.hooks.respond import respond

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Said:
    """What a host would see."""

    status: int
    out: str
    log: str

    @property
    def answer(self) -> Any:
        return json.loads(self.out) if self.out else None


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A root with secrets, drafts, links that stay in and links that lead out."""
    root = tmp_path / "project"
    made = (
        "src/app.py",
        "src/locked/a.py",
        "src/db/1.sql",
        "src/sealed/a",
        "src/CHANGELOG.md",
        "src/a.ipynb",
    )
    for name in (*made, "drafts/a.md", "keys/id", ".env", "notes.md", "tmp/a"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n", encoding="utf-8")
    shutil.copy(HERE / "policy.yaml", root / "ringfence.yaml")
    outside = tmp_path / "project-other"
    outside.mkdir()
    (outside / "a").write_text("outside\n", encoding="utf-8")
    for link, target in (
        ("link-to-env", ".env"),
        ("link-out", str(outside / "a")),
        ("linked-keys", "keys"),
        ("src/linked-out", str(outside)),
        ("src/to-policy", "../ringfence.yaml"),
    ):
        os.symlink(target, root / link)
    plans = tmp_path / "project-home" / ".claude" / "plans"
    plans.mkdir(parents=True)
    os.symlink(root / ".env", plans / "link-to-env")
    os.symlink("../plugins", plans / "to-plugins")
    return root


def event_of(case: dict[str, Any], root: Path) -> bytes:
    """The bytes a host would write for a case of the data files; some hosts begin with a byte order mark."""
    whole = case.get("raw") or _of_host(case)
    if whole is not None:
        return json.dumps(whole).replace("$ROOT", str(root)).encode()
    event: dict[str, Any] = {
        "session_id": "s",
        "transcript_path": "/tmp/t.jsonl",
        "cwd": str(root),
        "permission_mode": case.get("mode", "default"),
        "hook_event_name": case["event"],
        "tool_use_id": "toolu_1",
    }
    if "tool" in case:
        event |= {"tool_name": case["tool"], "tool_input": case["input"]}
    event |= case.get("extra", {})
    if "helper" in case:
        event |= {"agent_id": "a1", "agent_type": case["helper"]}
    return json.dumps(event).replace("$ROOT", str(root)).encode()


def _of_host(case: dict[str, Any]) -> dict[str, Any] | None:
    """Return the event of a host that does not write Claude Code's form."""
    common = {"cwd": "$ROOT", **case.get("extra", {})}
    tool, given = case.get("tool"), case.get("input")
    match case.get("host"):
        case "cursor":
            named = {"hook_event_name": case["event"], "tool_name": tool, "tool_input": given}
            return {"conversation_id": "s", "workspace_roots": ["$ROOT"], **named, **case.get("extra", {})}
        case "copilot":
            return {"sessionId": "s", "timestamp": 1, "toolName": tool, "toolArgs": given, **common}
        case "vscode":
            named = {"hook_event_name": case["event"], "tool_name": tool, "tool_input": given}
            return {"session_id": "s", "timestamp": "t", **named, **common}
    return None


@pytest.fixture
def hook(workspace: Path) -> Callable[..., Said]:
    """Runs a hook as the command line would, on these bytes."""

    def run(host: str, data: bytes, *options: str) -> Said:
        plain = quick([host, *options])
        assert plain is not None
        out, log = io.StringIO(), io.StringIO()
        status = respond(*plain, io.BytesIO(data), out, log)
        return Said(status, out.getvalue(), log.getvalue())

    return run
