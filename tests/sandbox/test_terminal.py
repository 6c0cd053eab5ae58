"""A person's terminal: the command is its foreground job, with job control, sizes, and signals typed."""

from __future__ import annotations

import os
import pty
import select
import shlex
import signal
import struct
import sys
import time
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("overlay_works")

CALLER = """
import sys
from ringfence.toolkit.sandbox import Spec, run
ended = run(Spec(tuple(sys.argv[3:]), sys.argv[1], sys.argv[2]), terminal=0)
sys.stdout.buffer.write(ended.output)
print("ended", ended.status, ended.signal, flush=True)
"""
PROMPT = "ready> "


class Screen:
    """A shell with job control on a new terminal, and what it has shown."""

    def __init__(self, place: Path) -> None:
        self.shown = ""
        (place / "caller.py").write_text(CALLER)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PS1": PROMPT, "HISTFILE": ""}
        self._child, self._leader = pty.fork()
        if self._child == 0:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environment)
        os.set_blocking(self._leader, False)
        words = (sys.executable, str(place / "caller.py"), str(place / "workspace"), str(place / "scratch"))
        self.caller = shlex.join(words)
        self.until(PROMPT)

    def type(self, text: str) -> None:
        self.shown = ""
        os.write(self._leader, text.encode())

    def until(self, text: str, *, pressing: str = "") -> str:
        """Read until a text is shown, and return what was shown since the last typing.

        `pressing` is a key to press again each second: a shell shows the line of a job before the job has the
        terminal, and what is pressed in between is lost.
        """
        end, press = time.monotonic() + 30, time.monotonic() + 1
        while text not in self.shown:
            if pressing and time.monotonic() > press:
                os.write(self._leader, pressing.encode())
                press = time.monotonic() + 1
            assert time.monotonic() < end, f"{text!r} was not shown: {self.shown!r}"
            if select.select([self._leader], [], [], 0.1)[0]:
                try:
                    self.shown += os.read(self._leader, 65536).decode("utf-8", "replace")
                except OSError:
                    pytest.fail(f"the terminal has ended before {text!r}: {self.shown!r}")
        return self.shown

    def resize(self, rows: int, columns: int) -> None:
        ioctl(self._leader, 0x5414, struct.pack("HHHH", rows, columns, 0, 0))

    def close(self) -> None:
        os.close(self._leader)  # hangs up
        os.kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)


@pytest.fixture
def screen(place: Path) -> Iterator[Screen]:
    made = Screen(place)
    yield made
    made.close()


def test_the_command_has_the_terminal(screen: Screen) -> None:
    screen.type(
        f"{screen.caller} sh -c 'test -t 0 && test -t 1 && test -t 2 && tty && stty size && exit 7'\n"
    )
    screen.until("ended 7 None")
    assert "/dev/" in screen.shown


def test_the_interrupt_key_reaches_the_command_alone(screen: Screen) -> None:
    screen.type(f"{screen.caller} sh -c 'echo go; exec sleep 100'\n")
    screen.until("go\r\n")
    screen.type("\x03")
    screen.until("ended 130 2")
    screen.until(PROMPT)


def test_the_suspend_key_stops_the_job_and_fg_continues_it(screen: Screen) -> None:
    screen.type(f"{screen.caller} sh -c 'echo go; read line; echo got $line'\n")
    screen.until("go\r\n")
    screen.type("\x1a")
    screen.until("Stopped")
    screen.type("echo between\n")
    screen.until("between\r\n")
    screen.type("fg\n")
    screen.until("caller.py")
    screen.type("typed\n")
    screen.until("got typed")
    screen.until("ended 0")


def test_an_interactive_shell_with_job_control_inside(screen: Screen) -> None:
    screen.type(f"PS1='in''side> ' {screen.caller} bash --norc --noprofile -i\n")
    assert "no job control" not in screen.until("inside> ")
    screen.type("sh -c 'echo $((40 + 2)); exec sleep 100'\n")
    screen.until("42\r\n")
    screen.type("\x1a")
    screen.until("Stopped")
    screen.until("inside> ")
    screen.type("fg\n")
    screen.until("sleep 100")
    screen.type("\x03")
    screen.until("inside> ", pressing="\x03")
    screen.type("exit 5\n")
    screen.until("ended 5")


def test_a_new_size_reaches_the_command(screen: Screen) -> None:
    screen.type(
        f"{screen.caller} bash -c 'trap \"stty size; exit\" WINCH; echo go; while :; do sleep 0.05; done'\n"
    )
    screen.until("go\r\n")
    screen.resize(33, 77)
    screen.until("33 77")
    screen.until("ended 0")


def test_output_to_a_file_is_not_given_as_a_descriptor(place: Path, screen: Screen) -> None:
    out = shlex.quote(str(place / "out"))
    screen.type(f"{screen.caller} readlink /proc/self/fd/1 > {out}; cat {out}\n")
    screen.until("ended 0")
    screen.until("pipe:[")


def test_typing_into_the_terminal_is_refused(screen: Screen) -> None:
    code = "import fcntl; fcntl.ioctl(0, 0x5412, b'x')"
    screen.type(f"{screen.caller} /usr/bin/python3 -c {shlex.quote(code)}\n")
    assert "Operation not permitted" in screen.until("ended 1")
