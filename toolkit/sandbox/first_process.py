"""First process of a command: starts it, reaps every orphan, passes signals on, and says how it ended.

With namespaces it is process 1 of its pid namespace, so that the kernel kills everything when it exits.
"""

from __future__ import annotations

import os
import signal
import socket
from types import FrameType

from ringfence.toolkit.sandbox.channel import tell
from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.mounts import mount_proc
from ringfence.toolkit.sandbox.privileges import drop_privileges, limit_resources
from ringfence.toolkit.sandbox.request import Request
from ringfence.toolkit.sandbox.system_calls import close_from, die_with_parent, not_dumpable

_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
FOREGROUND_SIGNAL = signal.SIGUSR1  # from the supervisor: give the command the terminal, and continue it
_CHANNEL = 3  # the descriptor of the channel in these processes
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def first_process(request: Request, channel: socket.socket, parent: int) -> None:
    """Run as the first process; never returns."""
    try:
        die_with_parent(parent)
        if not request.terminal:
            os.setsid()
        if request.namespaces:
            mount_proc()
        os.chdir(os.path.join(request.workspace, request.cwd))
        os.umask(0o022)
        limit_resources(request)
        drop_privileges(request)
        not_dumpable()
        command = _start(request, channel)
        _serve(request, channel, command)
    except SandboxError as error:
        tell(channel, error=error.code, message=error.message, place=error.place)
    except OSError as error:
        tell(channel, error="start_failed", message=str(error), place=request.cwd)
    os._exit(1)


def _start(request: Request, channel: socket.socket) -> int:
    ready, go = os.pipe()
    command = os.fork()
    if command == 0:
        os.close(go)
        _command(request, channel, ready)
    os.close(ready)
    os.setpgid(command, command)
    _take_terminal(request, command)
    os.close(go)
    tell(channel, started=True)
    return command


def _command(request: Request, channel: socket.socket, ready: int) -> None:
    """Become the command; never returns."""
    try:
        os.read(ready, 1)  # the end of the pipe: the process group has the terminal
        for number in (*_IGNORED_BY_PYTHON, signal.SIGTTOU, *_PASSED_ON, signal.SIGCONT, FOREGROUND_SIGNAL):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        close_from(3, on_exec=True)
        os.execvpe(request.argv[0], request.argv, request.env)
    except OSError as error:
        tell(channel, failed=error.errno)
        os._exit(126 if isinstance(error, PermissionError) else 127)


def _take_terminal(request: Request, group: int) -> None:
    if request.terminals:
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            os.tcsetpgrp(request.terminals[0], group)
        except OSError:
            pass  # the terminal is gone, or the caller is not in its session


def _serve(request: Request, channel: socket.socket, command: int) -> None:
    """Reap until the command has ended."""

    def pass_on(number: int, _: FrameType | None) -> None:
        if number == FOREGROUND_SIGNAL:
            _take_terminal(request, command)
            number = signal.SIGCONT
        try:
            os.killpg(command, number)
        except ProcessLookupError:
            pass

    for number in (*_PASSED_ON, signal.SIGCONT, FOREGROUND_SIGNAL):
        signal.signal(number, pass_on)
    keep_open(_CHANNEL, request.terminals)
    _reap(channel, command, request.terminal)
    os._exit(0)


def keep_open(last: int, terminals: tuple[int, ...]) -> None:
    """Close the command's streams in this process, so that they end with the command, and all above `last`."""
    for stream in range(3):
        if stream not in terminals:
            os.close(stream)
    close_from(last + 1)


def _reap(channel: socket.socket, command: int, terminal: bool) -> None:
    """Wait for every child until the command has ended, and say so."""
    while True:
        found, status = os.waitpid(-1, os.WUNTRACED if terminal else 0)
        if found != command:
            continue
        if os.WIFSTOPPED(status):
            tell(channel, suspended=os.WSTOPSIG(status))
        else:
            tell(channel, ended=status)
            return
