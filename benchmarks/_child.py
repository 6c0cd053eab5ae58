"""How the benchmarks start a process of its own, and what it costs, as with the package installed.

Must be the only place that says what such a process gets from the shell.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence

PYTHON = sys.executable


def environment(**more: str) -> dict[str, str]:
    """Return the shell's environment, with byte code written and read.

    A shell may forbid that, and each start would compile all sources anew, which no installed package does.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **more}


def run(command: Sequence[str], given: bytes = b"", env: dict[str, str] | None = None) -> tuple[float, str]:
    """Return the processor seconds of one process, to which other work adds nothing, and what it said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command, input=given, stdout=subprocess.PIPE, env=environment() if env is None else env, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout.decode()


def in_turns(starts: Sequence[Callable[[], float]], turns: int) -> list[float]:
    """Return the median of each, in turns, so that a busy moment meets all of them.

    The first start of each does not count: it writes the byte code, and brings the files into memory.
    """
    for start in starts:
        start()
    rounds = [[start() for start in starts] for _ in range(turns)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]
