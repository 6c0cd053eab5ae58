"""A call that a host cannot ask a person about: requested, granted for exactly that call, and used up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ringfence.toolkit.hooks.hosts import EVENTS
from tests.hooks.conftest import event_of

WRITES = {
    "opencode": ("write", {"filePath": "$ROOT/notes.md", "content": "new\n"}),
    "gemini": ("write_file", {"file_path": "notes.md", "content": "new\n"}),
}
CASES = [pytest.param(host, *call, id=host) for host, call in WRITES.items()]


@pytest.fixture
def state(tmp_path: Path) -> str:
    return str(tmp_path / "state")


def hook(host: str, tool: str, given: dict[str, Any], root: Path, *options: str) -> dict[str, Any]:
    """A hook in a process of its own, as the host starts it; its answer, {} for none."""
    case = {"event": EVENTS[host][0], "tool": tool, "input": given}
    done = subprocess.run(
        [sys.executable, "-I", "-m", "ringfence", "hook", host, "--root", str(root), *options],
        input=json.dumps(json.loads(event_of(case, root))).replace("$ROOT", str(root)).encode(),
        capture_output=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return dict(json.loads(done.stdout or b"{}"))


def person(root: Path, state: str, *words: str) -> Any:
    """What a command of a person prints."""
    done = subprocess.run(
        [
            *(sys.executable, "-I", "-m", "ringfence", *words),
            *("--root", str(root), "--state", state, "--json"),
        ],
        capture_output=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(("host", "tool", "given"), CASES)
def test_a_grant_is_for_one_call_with_this_content(
    host: str, tool: str, given: dict[str, Any], workspace: Path, state: str
) -> None:
    first = hook(host, tool, given, workspace, "--state", state)
    (request,) = person(workspace, state, "approvals", "list")
    assert first["decision"] == "deny"
    assert f"ringfence approvals grant {request['id']}" in first["reason"]
    assert (request["tool"], request["paths"]) == ("create_file", ["notes.md"])
    assert "-x\n+new" in request["preview"]
    assert hook(host, tool, given, workspace, "--state", state)["decision"] == "deny"
    assert len(person(workspace, state, "approvals", "list")) == 1
    person(workspace, state, "approvals", "grant", request["id"])
    other = {**given, "content": "other\n"}
    assert hook(host, tool, other, workspace, "--state", state)["decision"] == "deny"
    assert (workspace / "notes.md").read_text(encoding="utf-8") == "x\n"


@pytest.mark.parametrize(("host", "tool", "given"), CASES)
def test_a_grant_is_used_up(host: str, tool: str, given: dict[str, Any], workspace: Path, state: str) -> None:
    hook(host, tool, given, workspace, "--state", state)
    (request,) = person(workspace, state, "approvals", "list")
    person(workspace, state, "approvals", "grant", request["id"])
    assert hook(host, tool, given, workspace, "--state", state) == {}
    assert hook(host, tool, given, workspace, "--state", state)["decision"] == "deny"
    # The hook itself writes nothing: the host does.
    assert (workspace / "notes.md").read_text(encoding="utf-8") == "x\n"


@pytest.mark.parametrize(("host", "tool", "given"), CASES)
def test_nothing_is_asked_where_a_deny_was_chosen(
    host: str, tool: str, given: dict[str, Any], workspace: Path, state: str
) -> None:
    answer = hook(host, tool, given, workspace, "--state", state, "--ask", "deny")
    assert "A person has to decide" in answer["reason"]
    assert not Path(state).exists()


@pytest.mark.parametrize(("host", "tool", "given"), CASES)
def test_what_cannot_be_planned_is_not_asked_about(
    host: str, tool: str, given: dict[str, Any], workspace: Path, state: str
) -> None:
    edit = {"opencode": "edit", "gemini": "replace"}[host]
    path = "filePath" if host == "opencode" else "file_path"
    old, new = ("oldString", "newString") if host == "opencode" else ("old_string", "new_string")
    answer = hook(host, edit, {path: "notes.md", old: "nowhere", new: "y"}, workspace, "--state", state)
    assert answer["decision"] == "deny"
    assert "String not found" in answer["reason"]
    assert person(workspace, state, "approvals", "list") == []


READS = {
    "opencode": ("read", {"filePath": "drafts/a.md"}),
    "gemini": ("read_file", {"file_path": "drafts/a.md"}),
}


@pytest.mark.parametrize(("host", "tool", "given"), [pytest.param(host, *READS[host]) for host in READS])
def test_a_read_is_granted_once(
    host: str, tool: str, given: dict[str, Any], workspace: Path, state: str
) -> None:
    assert "approvals grant" in hook(host, tool, given, workspace, "--state", state)["reason"]
    (request,) = person(workspace, state, "approvals", "list")
    assert (request["tool"], request["paths"]) == ("read_file", ["drafts/a.md"])
    person(workspace, state, "approvals", "grant", request["id"])
    assert hook(host, tool, given, workspace, "--state", state) == {}
    assert hook(host, tool, given, workspace, "--state", state)["decision"] == "deny"
