"""Streams that are closed, full or read by nobody: a status and a word, and no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EVENT: dict[str, Any] = {"hook_event_name": "PreToolUse", "tool_name": "Read"}
COMMANDS = [
    ["--version"],
    ["--help"],
    ["check", "--help"],
    ["nonsense"],
    ["check"],
    ["explain", "read", "a.txt"],
    ["matrix"],
    ["matrix", "--json"],
    ["log"],
    ["log", "--json"],
    ["replay", "state", "ringfence.yaml"],
    ["replay", "-", "ringfence.yaml"],
    ["suggest"],
    ["suggest", "-"],
    ["tasks", "list", "--tasks", "tasks"],
    ["completion", "bash"],
    ["bridge", "emacs"],
    ["run"],
    ["call", "read_file", '{"path": "a.txt"}'],
    ["import", "claude-code", "-"],
    ["serve", "mcp"],
]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "ringfence.yaml").write_text('version: 1\nrules: {"*": allow, delete: deny}\n')
    (tmp_path / "a.txt").write_text("a\n" * 10_000)
    (tmp_path / "tasks").mkdir()
    return tmp_path


def run(
    words: list[str], how: str, folder: Path, stdin: bytes = b"", unbuffered: str = ""
) -> tuple[int, str, str]:
    """Status, stdout and stderr of the command as bash starts it; `how` are its redirections."""
    done = subprocess.run(
        ["bash", "-c", f'set -o pipefail; "$@" {how}', "bash", sys.executable, "-m", "ringfence", *words],
        cwd=folder,
        input=stdin,
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": unbuffered},
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


SPOKEN: dict[tuple[str, ...], str] = {}


def spoken_by(words: list[str], folder: Path) -> str:
    """What the command writes where nothing is in its way, run once."""
    if tuple(words) not in SPOKEN:
        SPOKEN[tuple(words)] = run(words, "", folder)[1]
    return SPOKEN[tuple(words)]


WAYS = [">&-", "2>&-", "<&-", "<&- >&- 2>&-", "| true", "2>&1 | true", "| head -n 1"]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_stream_that_nobody_has_at_the_other_end(words: list[str], how: str, workspace: Path) -> None:
    status, out, err = run(words, how, workspace)
    assert status in (0, 1, 2)
    assert "Traceback" not in out + err
    assert "Exception ignored" not in out + err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_an_answer_that_cannot_be_written_is_said(words: list[str], unbuffered: str, workspace: Path) -> None:
    swallowed = unbuffered and "--help" in words  # by argparse, which writes that itself
    spoken = spoken_by(words, workspace)
    status, _, err = run(words, "> /dev/full", workspace, unbuffered=unbuffered)
    assert "Traceback" not in err
    assert "Exception ignored" not in err
    if spoken and not swallowed:
        assert status == 1
        assert err.endswith("ringfence: the output cannot be written: No space left on device\n")
    assert run(words, "2> /dev/full", workspace, unbuffered=unbuffered)[0] in (0, 1, 2)


@pytest.mark.parametrize("path", ["a.txt", "../outside"])
def test_a_hook_gives_its_verdict_or_blocks(path: str, workspace: Path) -> None:
    """A host takes any status but 0 and 2 for a failure of the hook, and lets the call pass."""
    event = {**EVENT, "cwd": str(workspace), "tool_input": {"file_path": str(workspace / path)}}
    given = json.dumps(event).encode()
    plain = run(["hook", "claude-code"], "", workspace, given)
    assert plain[0] == 0
    assert plain[1]
    assert run(["hook", "claude-code"], "2>&-", workspace, given)[:2] == plain[:2]
    for how in (">&-", "> /dev/full", "<&-", "<&- >&- 2>&-"):
        status, out, err = run(["hook", "claude-code"], how, workspace, given)
        assert (status, out) == (2, ""), how
        assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (["check", "a" * 5000], 1, "File name too long"),
        (["log", "--root", "ftp://ringfence.invalid/x"], 2, "ringfence: --root ftp://ringfence.invalid/x: "),
        (["log", "--state", "mysql://x/y"], 2, "neither a directory nor a postgresql:// URL"),
    ],
)
def test_an_error_of_the_system_is_told_in_a_line(
    words: list[str], status: int, says: str, workspace: Path
) -> None:
    found, out, err = run(words, "", workspace)
    assert (found, out) == (status, "")
    assert says in err
    assert len(err.splitlines()) == 1
    assert not (workspace / "mysql:").exists()


@pytest.mark.parametrize("words", [["check"], ["init"], ["log"], ["matrix"], ["run"], ["bridge", "json"]])
def test_a_current_folder_that_is_gone(words: list[str], workspace: Path) -> None:
    gone = workspace / "gone"
    gone.mkdir()
    program = f"cd {gone} && rmdir {gone} && {sys.executable} -m ringfence {' '.join(words)}"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("ringfence: ")
