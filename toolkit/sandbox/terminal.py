"""Terminal of a person: the command is its foreground job, and job control works as without a sandbox."""

from __future__ import annotations

import os
import signal
import socket

from ringfence.toolkit.sandbox.channel import FOREGROUND, RESUME


class Terminal:
    """The caller's controlling terminal while a command has it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._group = os.getpgrp()
        self.streams = tuple(stream for stream in range(3) if _is_terminal(stream))

    def reclaim(self) -> None:
        """Make the caller the foreground job again, if its command is."""
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
        try:
            os.tcsetpgrp(self._descriptor, self._group)
        except OSError:
            pass  # the terminal is gone
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def suspend(self, channel: socket.socket) -> None:
        """Stop the caller's own job, as its command was stopped; continue the command when it continues."""
        self.reclaim()
        os.killpg(self._group, signal.SIGSTOP)
        in_foreground = os.tcgetpgrp(self._descriptor) == self._group
        channel.send(FOREGROUND if in_foreground else RESUME)


def _is_terminal(stream: int) -> bool:
    try:
        return os.isatty(stream)
    except OSError:
        return False
