"""The approvals channel at the command line: which descriptors it takes, and what `run` does with it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ringfence
from tests.cli.person import POLICY, Person, root

__all__ = ["root"]
ROOT = Path(__file__).resolve().parents[2]


def start(root: Path, *words: str, passed: tuple[int, ...] = (), **settings: Any) -> subprocess.Popen[str]:
    (root / "ringfence.yaml").write_text(POLICY)
    command = [sys.executable, "-m", "ringfence", "run", "--root", str(root), *words]
    return subprocess.Popen(
        command,
        cwd=ROOT,
        text=True,
        pass_fds=passed,
        **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | settings,
    )


def lines(*paths: str) -> str:
    calls = [
        {"id": f"call {path}", "tool": "delete_file", "arguments": {"path": f"src/{path}"}} for path in paths
    ]
    return "".join(json.dumps(call) + "\n" for call in calls)


def answers(out: str) -> list[tuple[str, str]]:
    return [(one["id"], one["status"]) for one in map(json.loads, out.splitlines())]


def says_by_name(person: Person, asked: dict[str, Any]) -> None:
    person.say({"id": asked["id"], "grant": asked["call"] == "call a.py"})


def test_run_with_one_end_of_a_pair_of_sockets(root: Path) -> None:
    ours, theirs = socket.socketpair()
    with start(root, "--approvals-fd", str(theirs.fileno()), passed=(theirs.fileno(),)) as gate:
        theirs.close()
        person = Person(ours, says_by_name)
        out, err = gate.communicate(lines("a.py", "b.py"), timeout=60)
    assert (gate.returncode, err) == (0, "")
    assert answers(out) == [("call a.py", "ok"), ("call b.py", "denied")]
    assert person.closed() == [("granted", ""), ("refused", "")]
    assert '"asked"' not in out


def test_run_with_two_pipes(root: Path) -> None:
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    passed = (their_in, their_out)
    with (
        start(root, "--approvals-fd", f"{their_in},{their_out}", passed=passed) as gate,
        os.fdopen(our_in, "r") as questions,
        os.fdopen(our_out, "w", buffering=1) as words,
    ):
        os.close(their_in)
        os.close(their_out)
        assert gate.stdin and gate.stdout
        gate.stdin.write(lines("a.py"))
        gate.stdin.flush()
        asked = json.loads(questions.readline())
        print(json.dumps({"id": asked["id"], "grant": True}), file=words)
        assert json.loads(gate.stdout.readline())["status"] == "ok"
        assert json.loads(questions.readline())["state"] == "granted"
        # The reading end goes while the other one stays open: nobody could hear a question.
        questions.close()
        gate.stdin.write(lines("b.py"))
        gate.stdin.flush()
        assert json.loads(gate.stdout.readline())["status"] == "approval_required"
        gate.stdin.close()
        assert gate.wait(60) == 0


def test_the_reader_of_a_pipe_goes_while_a_question_waits(root: Path) -> None:
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    with start(root, "--approvals-fd", f"{their_in},{their_out}", passed=(their_in, their_out)) as gate:
        os.close(their_in)
        os.close(their_out)
        assert gate.stdin and gate.stdout
        gate.stdin.write(lines("a.py"))
        gate.stdin.flush()
        with os.fdopen(our_in, "r") as questions:
            assert json.loads(questions.readline())["event"] == "asked"
        assert json.loads(gate.stdout.readline())["status"] == "approval_required"
        os.close(our_out)
        gate.stdin.close()
        assert gate.wait(60) == 0


def test_run_with_a_socket_that_the_harness_listens_on(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "approvals"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(1)
        with start(root, "--approvals-socket", str(path)) as gate:
            person = Person(listener.accept()[0], says_by_name)
            out, err = gate.communicate(lines("a.py", "b.py"), timeout=60)
    assert (gate.returncode, err) == (0, "")
    assert answers(out) == [("call a.py", "ok"), ("call b.py", "denied")]
    assert len(person.done()) == 4


def test_a_harness_that_dies_leaves_the_requests_in_the_queue(root: Path) -> None:
    ours, theirs = socket.socketpair()
    with start(root, "--approvals-fd", str(theirs.fileno()), passed=(theirs.fileno(),)) as gate:
        theirs.close()
        ours.close()
        out, err = gate.communicate(lines("a.py", "b.py"), timeout=60)
    assert gate.returncode == 0
    assert answers(out) == [("call a.py", "approval_required"), ("call b.py", "approval_required")]
    assert err == "the approvals channel is closed: what asks waits in the queue\n"


def test_no_answer_in_time_at_the_command_line(root: Path) -> None:
    ours, theirs = socket.socketpair()
    words = ("--approvals-fd", str(theirs.fileno()), "--approvals-timeout", "0s")
    with ours, start(root, *words, passed=(theirs.fileno(),)) as gate:
        theirs.close()
        out, _ = gate.communicate(lines("a.py"), timeout=60)
    assert answers(out) == [("call a.py", "approval_required")]


def test_granted_by_the_command_meanwhile(root: Path) -> None:
    ours, theirs = socket.socketpair()

    def act(person: Person, asked: dict[str, Any]) -> None:
        grant = ("approvals", "grant", asked["id"], "--root", str(root))
        command = [sys.executable, "-m", "ringfence", *grant]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)

    with start(root, "--approvals-fd", str(theirs.fileno()), passed=(theirs.fileno(),)) as gate:
        theirs.close()
        person = Person(ours, act)
        out, _ = gate.communicate(lines("a.py"), timeout=60)
    assert answers(out) == [("call a.py", "ok")]
    assert person.closed() == [("granted", "granted elsewhere")]


def test_the_channel_is_not_what_the_agent_can_write_to(root: Path) -> None:
    """A socket that is stdin as well: the agent would answer for the person."""
    ours, theirs = socket.socketpair()
    with (
        ours,
        theirs,
        start(
            root, "--approvals-fd", str(theirs.fileno()), passed=(theirs.fileno(),), stdin=theirs.fileno()
        ) as gate,
    ):
        out, err = gate.communicate(timeout=60)
    assert (gate.returncode, out) == (2, "")
    assert "is the same stream as stdin, stdout or stderr" in err


# What is refused, and what is said: {PAIR} is an end of two sockets, {IN} and {OUT} are ends of two pipes,
# {READ} and {WRITE} both ends of one, {DATAGRAM} is a socket of no stream, {LONE} one not connected.
REFUSED = [
    (["--approvals-fd", "three"], "neither a descriptor's number nor IN,OUT"),
    (["--approvals-fd", "-1"], "neither a descriptor's number nor IN,OUT"),
    (["--approvals-fd", "{PAIR},"], "neither a descriptor's number nor IN,OUT"),
    (["--approvals-fd", "0"], "0, 1 and 2 are the agent's side"),
    (["--approvals-fd", "1"], "0, 1 and 2 are the agent's side"),
    (["--approvals-fd", "{PAIR},2"], "0, 1 and 2 are the agent's side"),
    (["--approvals-fd", "999"], "999 is not open here"),
    (["--approvals-fd", "999999"], "999999 is not open here"),
    (["--approvals-fd", "{FILE}"], "neither a pipe nor a connected stream socket"),
    (["--approvals-fd", "{DATAGRAM}"], "neither a pipe nor a connected stream socket"),
    (["--approvals-fd", "{LONE}"], "neither a pipe nor a connected stream socket"),
    (["--approvals-fd", "{IN}"], "one pipe goes one way"),
    (["--approvals-fd", "{OUT},{IN}"], "cannot be read from"),
    (["--approvals-fd", "{PAIR},{IN}"], "cannot be written to"),
    (["--approvals-fd", "{READ},{WRITE}"], "would come back from IN"),
    (["--approvals-fd", "{PAIR}", "--ask", "queue"], "--ask queue: not with an approvals channel"),
    (["--approvals-fd", "{PAIR}", "--ask", "prompt"], "--ask prompt: not with an approvals channel"),
    (["--approvals-fd", "{PAIR}", "--approvals-socket", "/none"], "give one of them"),
    (["--approvals-fd", "{PAIR}", "--approvals-timeout", "soon"], "not a duration such as 90s or 10m"),
    (["--approvals-timeout", "9s"], "only with --approvals-fd or --approvals-socket"),
    (["--approvals-socket", "/nowhere/at/all"], "No such file or directory"),
    (["--approvals-socket", "x" * 200], "AF_UNIX path too long"),
]


@pytest.mark.parametrize(("words", "said"), REFUSED, ids=[" ".join(words) for words, _ in REFUSED])
def test_what_is_no_channel_is_usage(
    ringfence: Ringfence, tmp_path: Path, words: list[str], said: str
) -> None:
    pair, datagrams, lone = socket.socketpair(), socket.socketpair(type=socket.SOCK_DGRAM), socket.socket()
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    known = {
        "{PAIR}": pair[0].fileno(),
        "{DATAGRAM}": datagrams[0].fileno(),
        "{LONE}": lone.fileno(),
        "{IN}": their_in,
        "{OUT}": their_out,
        "{READ}": our_in,
        "{WRITE}": their_out,
        "{FILE}": file,
    }
    for name, descriptor in known.items():
        words = [word.replace(name, str(descriptor)) for word in words]
    done = ringfence("run", *words, stdin=lines("a.py").encode())
    for end in (*pair, *datagrams, lone):
        end.close()
    for descriptor in (their_in, our_out, our_in, their_out, file):
        os.close(descriptor)
    assert (done.status, done.out) == (2, "")
    assert said in done.err


def test_what_is_refused_is_left_open(ringfence: Ringfence, workspace: Path) -> None:
    """A caller in the same process keeps what it gave."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert ringfence("run", "--approvals-fd", str(theirs.fileno()), "--ask", "deny").status == 2
        theirs.sendall(b"x")
        assert ours.recv(1) == b"x"
