"""The command line at a terminal of its own: it prompts there, in colour, and not on the stream of calls."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START = """
import os, sys
os.open(os.environ["TERMINAL"], os.O_RDWR)  # becomes the controlling one of this new session
from ringfence.toolkit.cli import main
sys.exit(main(sys.argv[1:]))
"""
Write = Callable[[str], Path]


class Ended:
    """What the terminal showed, what stdout got, and the exit status."""

    def __init__(
        self,
        words: list[str],
        typed: list[bytes],
        folder: Path,
        stdin: bytes = b"",
        *,
        at_terminal: bool = False,
        meanwhile: Callable[[], object] | None = None,
        program: str = START,
        sent: signal.Signals | None = None,
        **more: str,
    ):
        leader, follower = pty.openpty()
        child = subprocess.Popen(
            [sys.executable, "-c", program, *words],
            stdin=subprocess.PIPE,
            stdout=follower if at_terminal else subprocess.PIPE,
            stderr=follower,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "TERMINAL": os.ttyname(follower), **more},
            start_new_session=True,
        )
        assert child.stdin
        child.stdin.write(stdin)
        child.stdin.close()
        self._child, self._leader = child, leader
        self.shown = b""
        for answer in typed:
            self._read(until=b"> ")
            if meanwhile:
                meanwhile()
            os.write(leader, answer)
            if sent is not None:
                child.send_signal(sent)
        self._read(until=None)
        self.out = child.stdout.read().decode() if child.stdout else ""
        self.status = child.wait(30)
        if child.stdout:
            child.stdout.close()
        os.close(follower)
        os.close(leader)

    def _read(self, until: bytes | None) -> None:
        """Read the terminal up to a prompt, or until the program has ended and nothing is left."""
        seen = b""
        while until is None or not seen.endswith(until):
            ended = self._child.poll() is not None
            readable, _, _ = select.select([self._leader], [], [], 0.05)
            if readable:
                seen += os.read(self._leader, 4096)
            elif ended:
                break
        self.shown += seen

    @property
    def text(self) -> str:
        """What was shown, without the colours that the program itself adds."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.shown.decode())


@pytest.fixture
def asking(policy: Write, workspace: Path) -> Path:
    policy('version: 1\nrules: {read: allow, "*": ask}\n')
    return workspace


def test_a_hostile_description_and_a_long_path_at_a_real_prompt(asking: Path) -> None:
    path = "src/" + "a" * 60 + "/" + "b" * 60 + "/prod.db"
    (asking / path).parent.mkdir(parents=True)
    (asking / path).write_text("1", encoding="utf-8")
    arguments = json.dumps({"path": path, "description": "harmless\x1b[38D\x1b[K\rapproved by admin " * 50})
    ended = Ended(["call", "delete_file", arguments, "--agent", "coder"], [b"n\n"], asking)
    assert ended.status == 1
    assert ended.text.count(path) >= 2
    assert ended.text.index(path) < ended.text.index("agent says")
    assert r"harmless\x1b[38D\x1b[K\x0dapproved by admin" in ended.text
    assert "\x1b[38D" not in ended.shown.decode()
    assert "\x1b[K" not in ended.shown.decode()
    assert (asking / path).exists()
    assert "A person refused this" in ended.out


def test_the_stream_of_calls_cannot_answer(asking: Path) -> None:
    calls = [
        {"id": "1", "tool": "create_file", "arguments": {"path": "a", "content": "1\n"}},
        {"id": "2", "tool": "create_file", "arguments": {"path": "b", "content": "2\n"}},
    ]
    lines = b"".join(json.dumps(call).encode() + b"\ny\nyes\n" for call in calls)
    ended = Ended(["run"], [b"y\n", b"n\n"], asking, lines)
    answers = [json.loads(line) for line in ended.out.splitlines()]
    assert [(answer["id"], answer["status"]) for answer in answers if answer["id"]] == [
        ("1", "ok"),
        ("2", "denied"),
    ]
    assert (asking / "a").exists()
    assert not (asking / "b").exists()
    assert ended.status == 0


def test_always_for_this_session_asks_once(asking: Path) -> None:
    lines = b"".join(
        json.dumps({"id": name, "tool": "create_file", "arguments": {"path": name, "content": ""}}).encode()
        + b"\n"
        for name in ("a", "b", "c")
    )
    ended = Ended(["run"], [b"a\n", b"y\n"], asking, lines)
    assert [json.loads(line)["status"] for line in ended.out.splitlines()] == ["ok"] * 3
    assert ended.text.count("Allow it?") == 1


def test_colour_only_at_a_terminal_that_wants_it(asking: Path) -> None:
    words = ["explain", "delete", "a"]
    assert "\x1b[33m" in Ended(words, [], asking, at_terminal=True).shown.decode()
    assert "\x1b" not in Ended(words, [], asking, at_terminal=True, NO_COLOR="1").shown.decode()
    assert "\x1b" not in Ended(words, [], asking).out


def test_undo_asks_first_at_a_terminal(policy: Write, workspace: Path) -> None:
    policy('version: 1\nrules: {"*": allow}\n')
    (workspace / "a").write_text("keep me\n", encoding="utf-8")
    done = Ended(["call", "delete", '{"path": "a"}', "--json"], [], workspace)
    call = json.loads(done.out)["data"]["call_id"]
    no = Ended(["undo", call], [b"n\n"], workspace, at_terminal=True)
    assert no.status == 1
    assert "+keep me" in no.text
    assert not (workspace / "a").exists()
    yes = Ended(["undo", call], [b"y\n"], workspace, at_terminal=True)
    assert yes.status == 0
    assert (workspace / "a").read_text(encoding="utf-8") == "keep me\n"


def test_what_changed_while_the_question_was_open_is_not_what_was_approved(asking: Path) -> None:
    (asking / "a").write_text("v1", encoding="utf-8")
    (asking / "ringfence.yaml").write_text("version: 1\nrules: {read: allow, write: ask}\n", encoding="utf-8")
    ended = Ended(
        ["call", "edit_file", '{"path": "a", "old_str": "v", "new_str": "w"}', "--json"],
        [b"y\n"],
        asking,
        meanwhile=lambda: (asking / "a").write_text("v2", encoding="utf-8"),
    )
    assert json.loads(ended.out)["error"]["code"] == "approval_stale"
    assert (asking / "a").read_text(encoding="utf-8") == "v2"


JOB = """
import os, signal, sys
os.open(os.environ["TERMINAL"], os.O_RDWR)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])  # as a shell does, to say whose turn it is
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    os.setpgid(0, 0)
    os.close(writer)
    os.read(reader, 1)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTTOU])
    from ringfence.toolkit.cli import main
    os._exit(main(sys.argv[1:]))
os.setpgid(child, child)

def to_the_background(*_):
    os.tcsetpgrp(3, os.getpgrp())
    os.kill(child, signal.SIGSTOP)
    os.waitpid(child, os.WUNTRACED)
    os.kill(child, signal.SIGCONT)

signal.signal(signal.SIGUSR1, to_the_background)
os.dup2(os.open(os.environ["TERMINAL"], os.O_RDWR), 3)
os.tcsetpgrp(3, child if os.environ["AT"] == "front" else os.getpgrp())
os.close(writer)
_, status = os.waitpid(child, os.WUNTRACED)
if os.WIFSTOPPED(status):
    os.kill(child, signal.SIGKILL)
    sys.exit(f"stopped by {signal.Signals(os.WSTOPSIG(status)).name}")
sys.exit(os.waitstatus_to_exitcode(status))
"""
CALL = b'{"id": "1", "tool": "create_file", "arguments": {"path": "a", "content": ""}}\n'


@pytest.mark.parametrize("words", [["run"], ["run", "--ask", "prompt"]], ids=["default", "prompt"])
def test_a_job_in_the_background_queues_and_is_not_stopped(asking: Path, words: list[str]) -> None:
    ended = Ended(words, [], asking, CALL, program=JOB, AT="back")
    assert ended.status == 0, ended.text
    assert [json.loads(line)["status"] for line in ended.out.splitlines()] == ["approval_required"]
    assert "Allow it?" not in ended.text, "nobody could answer"
    assert not (asking / "a").exists()


def test_a_job_sent_to_the_background_while_it_asks_queues(asking: Path) -> None:
    ended = Ended(["run"], [b""], asking, CALL * 2, program=JOB, AT="front", sent=signal.SIGUSR1)
    assert ended.status == 0, ended.text
    assert [json.loads(line)["status"] for line in ended.out.splitlines()] == ["approval_required"] * 2
    assert ended.text.count("Allow it?") == 1


def test_a_job_in_the_foreground_asks(asking: Path) -> None:
    ended = Ended(["run"], [b"y\n"], asking, CALL, program=JOB, AT="front")
    assert [json.loads(line)["status"] for line in ended.out.splitlines()] == ["ok"]
    assert (ended.status, (asking / "a").exists()) == (0, True)
