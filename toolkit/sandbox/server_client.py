"""Client of the fork server: starts the server once for the process, and sends it requests."""

from __future__ import annotations

import array
import atexit
import os
import socket
import subprocess
import sys
import threading

from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.fork_server import SERVER_SOCKET

# Builds the packages without their `__init__`, which import what a server does not need.
_START = """
import sys, types
root, name, path = sys.argv[1], "", sys.argv[1]
for part in ("ringfence", "toolkit", "sandbox"):
    name = f"{name}.{part}".lstrip(".")
    path = root if part == "ringfence" else f"{path}/{part}"
    module = types.ModuleType(name)
    module.__path__ = [path]
    sys.modules[name] = module
from ringfence.toolkit.sandbox.fork_server import serve
serve(int(sys.argv[2]))
"""


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
            descriptor = theirs.fileno()
            root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
            first = (
                f"import os\nos.dup2({descriptor}, {SERVER_SOCKET})\nos.closerange({SERVER_SOCKET + 1}, 256)"
            )
            code = f"{first}{_START}"
            arguments = [sys.executable, "-I", "-S", "-c", code, root, str(os.getpid())]
            null = subprocess.DEVNULL
            self._server = subprocess.Popen(
                arguments, stdin=null, stdout=null, stderr=null, pass_fds=(descriptor,), env={}, cwd="/"
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
