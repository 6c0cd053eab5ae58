"""A hook that is not done at its deadline blocks the call, whatever keeps it; no clock is read here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringfence.toolkit.hooks.hook_options import quick
from tests.hooks.conftest import event_of
from tests.hooks.test_events import READ, ROOT

SOON = ("claude-code", "--deadline", "1.5")
# Each never comes to its end by itself, so that without the deadline these tests would not either.
FOREVER = {
    "in Python": "while True: pass",
    "in C, with the interpreter's lock": "import re; re.match('(a+)+b', 'a' * 99)",
    "in the kernel": "import os; os.read(os.pipe()[0], 1)",
    "with signals blocked": (
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nwhile True: pass"
    ),
}


def program(*words: str, before: str = "pass") -> subprocess.Popen[bytes]:
    """Start a hook as the installed command does; the last word is code to run where the policy is read."""
    start = f"""
import sys
{before}
code = sys.argv.pop()
if code:
    from ringfence import policy
    policy.Policy.load = lambda *_: exec(code)
from ringfence.toolkit.cli import main
sys.exit(main())
"""
    return subprocess.Popen(
        [sys.executable, "-c", start, "hook", *words],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.fixture
def event(workspace: Path) -> Iterator[bytes]:
    yield event_of(READ, workspace)


def test_in_time_it_answers(event: bytes) -> None:
    out, log = program(*SOON[:2], "50", "").communicate(event)
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "allow"
    assert log == b""


@pytest.mark.parametrize("what", FOREVER)
def test_whatever_keeps_it_the_call_is_blocked(what: str, event: bytes) -> None:
    hook = program(*SOON, FOREVER[what])
    out, log = hook.communicate(event)
    assert (hook.returncode, out) == (2, b"")
    assert b"within 1.5 s" in log


def test_an_event_that_does_not_end_is_blocked() -> None:
    hook = program(*SOON, "")
    assert hook.stdin is not None
    hook.stdin.write(b'{"hook_event_name": ')
    hook.stdin.flush()
    assert hook.wait() == 2
    hook.communicate()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="this kernel does not tell when it began")
def test_the_time_counts_from_the_start_of_the_process(event: bytes) -> None:
    late = program(*SOON, "", before="import time; time.sleep(1.6)")
    out, log = late.communicate(event)
    assert (late.returncode, out) == (2, b"")
    assert b"within 1.5 s" in log


@pytest.mark.parametrize(
    "end", ["import os; os._exit(1)", "import os; os.kill(os.getpid(), 9)", "sys.exit(0)"]
)
def test_a_judge_that_dies_blocks(end: str, event: bytes) -> None:
    hook = program("claude-code", end)
    out, _ = hook.communicate(event)
    assert (hook.returncode, out) == (2, b"")


def test_half_an_answer_is_none(event: bytes) -> None:
    hook = program("claude-code", "import os; os.write(1, b'{}'); os._exit(1)")
    assert (hook.communicate(event)[0], hook.returncode) == (b"", 2)


def test_a_host_that_ignores_its_children_is_answered(event: bytes) -> None:
    before = "import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)"
    out, _ = program("claude-code", "", before=before).communicate(event)
    assert b'"allow"' in out


@pytest.mark.parametrize("text", ["0", "-1", "51", "nan", "inf", "x", ""])
def test_a_deadline_that_is_none_is_left_to_the_parser(text: str) -> None:
    assert quick(["claude-code", "--deadline", text]) is None
    assert quick(["claude-code", f"--deadline={text}"]) is None


def test_the_parser_refuses_it(event: bytes) -> None:
    hook = program("claude-code", "--deadline=51", "")
    assert (hook.communicate(event)[0], hook.returncode) == (b"", 2)
