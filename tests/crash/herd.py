"""Processes forked to be killed: at their Nth step, together, one by one, or frozen first.

Each tells what it did through a pipe of its own; whatever it had said before it was killed counts.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from tests.crash.agents import Say, said
from tests.crash.harness import Steps

PATIENCE = 60.0  # seconds in which a process that kills itself has to come to it
STEPS = 260
STYLES = ("step", "step", "together", "one by one", "frozen")


@dataclass(slots=True)
class Process:
    id: int
    out: int
    heard: bytes = b""
    status: int | None = None  # until it has ended and was waited for

    def hear(self) -> None:
        piece = os.read(self.out, 1 << 16)
        self.heard += piece
        if not piece:
            os.close(self.out)
            _, self.status = os.waitpid(self.id, 0)

    def signal(self, number: int) -> None:
        if self.status is None:
            os.kill(self.id, number)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.heard.splitlines(keepends=True) if line.endswith(b"\n")]


@dataclass(slots=True)
class Herd:
    """The processes of one round."""

    chance: random.Random
    processes: list[Process] = field(default_factory=list)

    def fork(self, act: Callable[[Say], object], at: int = 0) -> None:
        out, tell = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(out)
            self._child(act, at, tell)
        os.close(tell)
        self.processes.append(Process(process, out))

    def _child(self, act: Callable[[Say], object], at: int, tell: int) -> NoReturn:
        write = os.write  # which a step wraps

        def say(line: dict[str, Any]) -> None:
            write(tell, said(line))

        try:
            if at:
                Steps(at, lambda label: say({"killed at": label}))
            act(say)
        except BaseException as error:
            say({"fault": f"{type(error).__name__}: {error}"})
        os._exit(0)

    def kill(self, style: str) -> None:
        """Kill them all, however they are at it. Those with a step of their own come to it first."""
        if style == "step":
            self.listen(1 << 30, PATIENCE)
        else:
            self.listen(self.chance.randint(0, 5), PATIENCE)
            time.sleep(self.chance.uniform(0, 0.01))
        order = self.chance.sample(self.processes, len(self.processes))
        if style == "frozen":
            order[0].signal(signal.SIGSTOP)
            self.listen(self.chance.randint(0, 3), 0.02)  # the others go on meanwhile
            for process in order[1:]:
                process.signal(signal.SIGSTOP)
        for process in order:
            process.signal(signal.SIGKILL)
            if style == "one by one":
                self.listen(self.chance.randint(0, 2), 0.02)
        self.listen(1 << 30, PATIENCE)

    def listen(self, lines: int, seconds: float) -> None:
        """Until they have said so many lines more, or all have ended, or the time is up."""
        wanted = lines + self._said()
        until = time.monotonic() + seconds
        while self._said() < wanted:
            living = {process.out: process for process in self.processes if process.status is None}
            ready = select.select(living, [], [], max(0.0, until - time.monotonic()))[0] if living else []
            if not ready:
                return
            for fd in ready:
                living[fd].hear()

    def _said(self) -> int:
        return sum(process.heard.count(b"\n") for process in self.processes)

    @property
    def killed(self) -> int:
        return sum(process.status == signal.SIGKILL for process in self.processes)

    def labels(self) -> Counter[str]:
        lines = (line for process in self.processes for line in process.lines())
        return Counter(line["killed at"] for line in lines if "killed at" in line)
