"""Fork server: a small process that forks a supervisor for each command, so that starting one is cheap.

The caller may be large and have threads, where Python code after a fork is not safe. The server has one
thread and is started once for each calling process; it ends with it.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import socket
from dataclasses import dataclass

from ringfence.toolkit.sandbox.call_filter import filter_program
from ringfence.toolkit.sandbox.channel import send
from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.supervisor import CHANNEL, PARENT, supervise
from ringfence.toolkit.sandbox.system_calls import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    close_from,
    fork_into,
)

_PASSED = 5  # descriptors of a request: three streams, the channel, the request itself
SERVER_SOCKET = 3  # the descriptor of the server's socket in the server
_NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS
_PLACES = {b"i": _NAMESPACES | CLONE_NEWNET, b"n": _NAMESPACES, b"p": 0}


@dataclass(frozen=True, slots=True)
class _Running:
    """A supervisor that was started, and the server's copy of its channel."""

    process: int
    channel: socket.socket


def serve(caller: int) -> None:
    """Serve until the process of number `caller` is dead or closes its end; never returns."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, SERVER_SOCKET)
    os.setpgid(0, 0)  # signals typed at the terminal are not for the server
    gc.disable()  # a collection in a child would copy every page that it looks at
    try:
        pidfd = os.pidfd_open(caller)
    except ProcessLookupError:
        os._exit(0)
    try:
        filter_program(internet=True), filter_program(internet=False)  # made once, for all supervisors
    except SandboxError:
        pass  # each run reports it
    poll = select.poll()
    for descriptor in (server.fileno(), pidfd):
        poll.register(descriptor, select.POLLIN)
    running: dict[int, _Running] = {}
    while True:
        ready = dict(poll.poll())
        for process in ready.keys() & running.keys():
            poll.unregister(process)
            os.close(process)
            ended = running.pop(process)
            os.waitpid(ended.process, 0)
            ended.channel.close()  # the caller sees its end: every process of the command is dead
        if pidfd in ready or (server.fileno() in ready and not _take(server, poll, running)):
            os._exit(0)


def _take(server: socket.socket, poll: select.poll, running: dict[int, _Running]) -> bool:
    """Start a supervisor for the next request; False at the end."""
    try:
        place, passed, _, _ = socket.recv_fds(server, 1, _PASSED, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return False
    if not place:
        return False
    channel = socket.socket(fileno=passed[CHANNEL])
    me = os.pidfd_open(os.getpid())
    try:
        child = fork_into(_PLACES[place]) if _PLACES[place] else os.fork()
        if child == 0:
            _place([*passed, me])
            supervise()
        process = os.pidfd_open(child)
        running[process] = _Running(child, channel)
        poll.register(process, select.POLLIN)
    except OSError as error:
        reason = "their number is limited to none" if error.errno == errno.ENOSPC else error.strerror
        send(channel, error="namespaces_forbidden", message=f"no user namespace: {reason}", place="clone")
        channel.close()
    for descriptor in (*passed[:CHANNEL], *passed[CHANNEL + 1 :], me):
        os.close(descriptor)
    return True


def _place(passed: list[int]) -> None:
    """Move the descriptors of a request to 0 and on, and close all others."""
    high = [os.dup2(descriptor, 100 + index, inheritable=False) for index, descriptor in enumerate(passed)]
    for index, descriptor in enumerate(high):
        os.dup2(descriptor, index, inheritable=index < CHANNEL)
    close_from(PARENT + 1)
