"""Orphans of a command without a pid namespace: finds every process it left behind, and kills it."""

from __future__ import annotations

import os
import signal


def end_descendants() -> None:
    """Kill every descendant of this process, which adopts them one after the other, until there is none."""
    while True:
        for child in _children():
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children() -> list[int]:
    me = str(os.getpid()).encode()
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", "rb") as line:
                    _, _, rest = line.read().rpartition(b") ")
            except OSError:
                continue
            if rest.split()[1] == me:
                found.append(int(name))
    return found
