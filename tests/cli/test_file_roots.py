"""`--root file://…` on the command line: the workspace, policy, tasks and state of the plain path."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Ringfence

POLICY = 'version: 1\nrules: {"*": allow, read: {"*": allow, "secrets/": deny}}\n'
SCHEMES = ["", "file://", "local://", "ringfence://"]
CHAINED = ["dir::file://", "simplecache::file://", "blockcache::local://", "ringfence::file://"]


@pytest.fixture
def outside(workspace: Path) -> Path:
    """A file beside the workspace, with a link to its folder and one to what is denied in the workspace."""
    (workspace / "ringfence.yaml").write_text(POLICY)
    folder = workspace.parent / "outside"
    folder.mkdir()
    (folder / "precious").write_text("keep")
    (workspace / "link").symlink_to("../outside")
    (workspace / "secrets").mkdir()
    (workspace / "secrets/k").write_text("SECRET")
    (workspace / "pub").symlink_to("secrets")
    return folder / "precious"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_calls_are_judged_by_the_policy_of_the_root_and_stay_in_it(
    ringfence: Ringfence, workspace: Path, outside: Path, scheme: str
) -> None:
    where = ("--root", f"{scheme}{workspace}", "--state", str(workspace.parent / "state"))
    denied = ringfence("call", "read_file", '{"path": "pub/k"}', *where)
    assert "denied by the policy" in denied.err + denied.out
    assert ringfence("call", "delete", '{"path": "link"}', *where).status == 0
    assert outside.read_text() == "keep"
    assert not (workspace / "link").is_symlink()
    # The same history, by the plain path.
    plain = ("--root", str(workspace), "--state", str(workspace.parent / "state"))
    assert "delete" in [entry["tool"] for entry in ringfence("log", "--json", *plain).lines]
    protected = '{"path": "ringfence.yaml", "content": "", "allow_overwrite": true}'
    assert "protected" in ringfence("call", "create_file", protected, "--json", *where).out


@pytest.mark.parametrize(
    "words", [("call", "delete", '{"path": "link"}'), ("run",), ("serve", "mcp"), ("doctor",)]
)
@pytest.mark.parametrize("scheme", CHAINED)
def test_a_chain_over_the_disk_is_refused_by_every_command(
    ringfence: Ringfence, workspace: Path, outside: Path, scheme: str, words: tuple[str, ...]
) -> None:
    done = ringfence(*words, "--root", f"{scheme}{workspace}")
    assert done.status == 2
    assert "cannot be confined; give the directory by its path" in done.err
    assert outside.read_text() == "keep"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_serving_mcp(workspace: Path, outside: Path, scheme: str) -> None:
    info = {"name": "t", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    call = {"name": "create_file", "arguments": {"path": "link/planted", "content": "x"}}
    lines = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    )
    sent = "".join(json.dumps(line) + "\n" for line in lines)
    where = ["--root", f"{scheme}{workspace}", "--state", str(workspace.parent / "s")]
    command = [sys.executable, "-m", "ringfence", "serve", "mcp", *where]
    done = subprocess.run(command, input=sent, capture_output=True, text=True, check=True)
    assert "Path outside project root" in done.stdout, done
    assert [place.name for place in outside.parent.iterdir()] == ["precious"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_hook(ringfence: Ringfence, workspace: Path, outside: Path, scheme: str) -> None:
    event = {
        "session_id": "s", "cwd": str(workspace), "hook_event_name": "PreToolUse", "tool_name": "Read",
        "tool_input": {"file_path": str(workspace / "pub/k")},
    }  # fmt: skip
    words = ("hook", "claude-code", "--root", f"{scheme}{workspace}")
    done = ringfence(*words, stdin=json.dumps(event).encode())
    assert done.json["hookSpecificOutput"]["permissionDecision"] == "deny", done
    assert "blocked" not in done.err


@pytest.mark.parametrize("root", ["s3://bucket/x", "dir::file:///", "file:x"])
def test_a_hook_at_a_root_that_is_no_folder_blocks(ringfence: Ringfence, workspace: Path, root: str) -> None:
    event = {
        "cwd": str(workspace),
        "hook_event_name": "PreToolUse",
        "tool_name": "Read",
        "tool_input": {"file_path": "a"},
    }
    done = ringfence("hook", "claude-code", "--root", root, stdin=json.dumps(event).encode())
    assert done.status == 2
    assert "blocked" in done.err


@pytest.mark.parametrize("scheme", SCHEMES)
def test_doctor_tells_that_it_is_the_confined_disk(
    ringfence: Ringfence, workspace: Path, scheme: str
) -> None:
    told = ringfence("doctor", "--json", "--root", f"{scheme}{workspace}").json
    assert (told["root"], told["kind"]) == (f"{scheme}{workspace}", "the confined local disk")
    assert told["resolves_by"]


@pytest.mark.parametrize("words", [("call", "directory_tree"), ("doctor",), ("run",)])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_root_that_is_not_there(
    ringfence: Ringfence, workspace: Path, scheme: str, words: tuple[str, ...]
) -> None:
    root = f"{scheme}{workspace}/none"
    done = ringfence(*words, "--root", root)
    assert (done.status, f"--root {root}: no such directory" in done.err) == (2, True), done


@pytest.mark.parametrize("scheme", SCHEMES)
def test_task_folders(ringfence: Ringfence, workspace: Path, scheme: str) -> None:
    store = workspace.parent / "gs/tasks"
    store.mkdir(parents=True)
    for words in (("call", "list_tasks"), ("tasks", "list")):
        done = ringfence(*words, "--root", f"{scheme}{workspace}", "--tasks", f"{scheme}{store}")
        assert done.status in (0, 1) and "Traceback" not in done.err, done
        refused = ringfence(*words, "--root", str(workspace), "--tasks", f"{scheme}/etc")
        assert "cannot be in a system directory" in refused.out + refused.err, refused
