"""Command process: gives up its rights, waits for the terminal, and becomes the command."""

from __future__ import annotations

import os
import signal
import socket

from ringfence.toolkit.sandbox.channel import send
from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.privileges import drop_privileges, limit_resources
from ringfence.toolkit.sandbox.request import Request
from ringfence.toolkit.sandbox.system_calls import close_from

_SET_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD, signal.SIGTTOU)


def start_command(request: Request, channel: socket.socket) -> int:
    """Start the command in a process group of its own, and return its number."""
    ready, go = os.pipe2(os.O_CLOEXEC)
    command = os.fork()
    if command == 0:
        os.close(go)
        _become_command(request, channel, ready)
    os.close(ready)
    os.setpgid(command, command)
    give_terminal(request, command)
    os.close(go)
    return command


def _become_command(request: Request, channel: socket.socket, ready: int) -> None:
    try:
        limit_resources(request)
        drop_privileges(request)
        os.read(ready, 1)  # the end of the pipe: the process group has the terminal
        for number in _SET_BY_PYTHON:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.umask(0o022)
        close_from(3, on_exec=True)
        _execute(request, channel)
    except SandboxError as error:
        send(channel, error=error.code, message=error.message, place=error.place)
    except OSError as error:
        send(channel, error="start_failed", message=str(error), place="command")
    os._exit(1)


def _execute(request: Request, channel: socket.socket) -> None:
    try:
        os.execvpe(request.argv[0], request.argv, request.env)
    except OSError as error:
        send(channel, failed=error.errno)
    os._exit(127)


def give_terminal(request: Request, group: int) -> None:
    """Make a process group the foreground job of the terminal, if there is one."""
    if request.terminals:
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            os.tcsetpgrp(request.terminals[0], group)
        except OSError:
            pass  # the terminal is gone, or the caller is not in its session
