"""Deadline of a hook: a child process judges, and its parent, which the host waits for, watches the clock.

A timer in the judging process would be blocked by C code or by a disk that does not respond; a second process
is not. Must not use the policy: it has to end in time whatever happens there.
"""

from __future__ import annotations

import os
import signal
import sys
import time

DEADLINE, MOST = 30.0, 50.0  # seconds; the installed time-outs are 60
_BLOCKED = 2


def seconds(text: str) -> float:
    """Return a deadline from the command line, in seconds.

    ValueError unless it is over 0 and at most MOST.
    """
    found = float(text)
    if not 0 < found <= MOST:
        raise ValueError
    return found


def watch(deadline: float) -> None:
    """Fork. The child returns and continues; the parent never returns, and exits with 2 at the deadline.

    The deadline counts from the start of the process. The child's stdout is passed on after the child has
    exited with 0; with any other status nothing is passed on, and the parent exits with 2.
    """
    if sys.stdout is None:
        raise OSError("the answer cannot be read")
    left = deadline - _age()
    if left <= 0:
        _block(deadline)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where a host ignores it, a child cannot be waited for
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(left) + 2)  # ends the child if the parent was killed
        os.dup2(writing, 1)
        os.close(reading)
        os.close(writing)
        return
    try:
        os.close(writing)
        status = _wait(child, reading, left, deadline)
    except BaseException:  # noqa: BLE001  fails closed: any failure blocks the call
        status = _BLOCKED
    os._exit(status)


def _wait(child: int, reading: int, left: float, deadline: float) -> int:
    def late(*_: object) -> None:
        os.kill(child, signal.SIGKILL)
        _block(deadline)

    signal.signal(signal.SIGALRM, late)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, left)
    output = b""
    while part := os.read(reading, 1 << 16):
        output += part
    if os.waitpid(child, 0)[1] != 0:
        return _BLOCKED
    while output:
        output = output[os.write(1, output) :]
    return 0


def _block(deadline: float) -> None:
    os.write(2, f"ringfence: blocked, as it could not be judged within {deadline:g} s\n".encode())
    os._exit(_BLOCKED)


def _age() -> float:
    """Return the seconds since this process started; 0 where the kernel does not report it."""
    try:
        with open("/proc/self/stat", "rb") as file:
            started = int(file.read().rpartition(b")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - started / os.sysconf("SC_CLK_TCK")
    except (AttributeError, IndexError, OSError, ValueError):
        return 0.0
    return max(age, 0.0) if started else 0.0
