"""Fork server: a small process that forks a supervisor for each command, so that starting one is cheap.

The caller may be large and have threads, where Python code after a fork is not safe. The server has one
thread and is started once for each calling process; it ends with it.
"""

from __future__ import annotations

import array
import atexit
import errno
import os
import select
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass

from ringfence.toolkit.sandbox.call_filter import filter_program
from ringfence.toolkit.sandbox.channel import tell
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
_SERVER = 3  # the descriptor of the server's socket in the server
_NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS
_PLACES = {b"i": _NAMESPACES | CLONE_NEWNET, b"n": _NAMESPACES, b"p": 0}
# Builds the packages above this one without their `__init__`, which import what a server does not need.
_START = """
import sys, types
root, name = sys.argv[1], ""
for part in ("ringfence", "toolkit"):
    name = f"{name}.{part}".lstrip(".")
    module = types.ModuleType(name)
    module.__path__ = [root if part == "ringfence" else f"{root}/{part}"]
    sys.modules[name] = module
from ringfence.toolkit.sandbox.fork_server import serve
serve(int(sys.argv[2]))
"""


@dataclass(frozen=True, slots=True)
class _Running:
    """A supervisor that was started, and the server's copy of its channel."""

    process: int
    channel: socket.socket


def serve(caller: int) -> None:
    """Serve until the process of number `caller` is dead or closes its end; never returns."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, _SERVER)
    os.setpgid(0, 0)  # signals typed at the terminal are not for the server
    try:
        held = os.pidfd_open(caller)
    except ProcessLookupError:
        os._exit(0)
    try:
        filter_program(internet=True), filter_program(internet=False)  # made once, for all supervisors
    except SandboxError:
        pass  # said by each run
    poll = select.poll()
    for descriptor in (server.fileno(), held):
        poll.register(descriptor, select.POLLIN)
    running: dict[int, _Running] = {}
    while True:
        ready = dict(poll.poll())
        for process in ready.keys() & running.keys():
            poll.unregister(process)
            os.close(process)
            ended = running.pop(process)
            os.waitpid(ended.process, 0)
            ended.channel.close()  # its end tells the caller that every process of the command is dead
        if held in ready or (server.fileno() in ready and not _take(server, poll, running)):
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
        tell(channel, error="namespaces_forbidden", message=f"no user namespace: {reason}", place="clone")
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


class ForkServer:
    """The caller's end: starts the server at the first request, and again after a fork or a death."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._socket: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def send(self, place: bytes, descriptors: tuple[int, ...]) -> None:
        """Send the descriptors of one request; they may be closed afterwards."""
        with self._lock:
            for last in (False, True):
                try:
                    self._send(place, descriptors)
                    return
                except OSError as error:
                    self._close()
                    if last:
                        raise SandboxError(
                            "sandbox_died", f"the fork server: {error}", place="server"
                        ) from None

    def _send(self, place: bytes, descriptors: tuple[int, ...]) -> None:
        if self._socket is None or self._owner != os.getpid():
            self._start()
        assert self._socket is not None
        rights = array.array("i", descriptors)
        self._socket.sendmsg([place], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])

    def _start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            held = theirs.fileno()
            root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
            code = f"import os\nos.dup2({held}, {_SERVER})\nos.closerange({_SERVER + 1}, 256){_START}"
            arguments = [sys.executable, "-I", "-S", "-c", code, root, str(os.getpid())]
            null = subprocess.DEVNULL
            self._server = subprocess.Popen(
                arguments, stdin=null, stdout=null, stderr=None, pass_fds=(held,), env={}, cwd="/"
            )
        self._socket, self._owner = ours, os.getpid()

    def close(self) -> None:
        """End the server, and wait for it."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._server is not None and self._owner == os.getpid():
            self._server.wait()
        self._socket = self._server = None


SERVER = ForkServer()  # one for the process: it is started once
atexit.register(SERVER.close)
