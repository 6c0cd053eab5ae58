"""The pager, as git uses it: for answers of more than a screen at a terminal, $RINGFENCE_PAGER, then $PAGER.

Only the person's own environment says what is run; what is shown is escaped before it gets here.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from shutil import get_terminal_size
from typing import TextIO

_OFF = ("", "cat")
_LESS = "FRX"  # ends by itself on one screen, shows colour, leaves what was read on the screen


def show(lines: Iterable[str], stdout: TextIO, *, page: bool) -> None:
    """Print lines; with `page` in the pager, if they are more than a screen."""
    rest = iter(lines)
    first = list(islice(rest, get_terminal_size().lines)) if page else []
    command = _pager()
    if len(first) < get_terminal_size().lines or command in _OFF:
        for line in chain(first, rest):
            print(line, file=stdout)
        return
    stdout.flush()
    try:
        _paged(command, chain(first, rest))
    except OSError:
        for line in chain(first, rest):  # no shell, no pipe: there is still the terminal
            print(line, file=stdout)


def _pager() -> str:
    """What to run; "" where the person wants none. An empty variable is an answer, too."""
    for name in ("RINGFENCE_PAGER", "PAGER"):
        if name in os.environ:
            return os.environ[name].strip()
    return "less"


def _paged(command: str, lines: Iterable[str]) -> None:
    environment = {"LESS": _LESS, "LV": "-c", **os.environ}
    with subprocess.Popen(
        command, shell=True, stdin=subprocess.PIPE, encoding="utf-8", errors="backslashreplace",
        env=environment,
    ) as pager:  # fmt: skip
        assert pager.stdin is not None
        with _left_to_the_pager():
            with suppress(BrokenPipeError):  # the person has seen enough
                for line in lines:
                    pager.stdin.write(f"{line}\n")
            with suppress(BrokenPipeError):
                pager.stdin.close()
            pager.wait()


@contextmanager
def _left_to_the_pager() -> Iterator[None]:
    """Leave ^C to the pager, which only stops looking."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
