"""Starter of a program whose only network is its own loopback; run as `python launch.py FD [--alone]`.

Opens a listening socket on loopback, hands it over through the UNIX socket FD, reads there which program to
start, and becomes it. With `--alone` it is in a network namespace of its own: the program can then reach
nothing but the parent process, which has the listening socket.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import sys

_SET_FLAGS = 0x8914  # SIOCSIFFLAGS
_UP_AND_RUNNING = 0x41


def main() -> None:
    """Hand the socket over, and become the program."""
    if "--alone" in sys.argv:
        _raise_loopback()
    with socket.socket(fileno=int(sys.argv[1])) as parent:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.send_fds(parent, [b"s"], [server.fileno()])
        told = json.loads(parent.makefile("rb").readline())
    os.chdir(told["cwd"])
    os.execve(told["words"][0], told["words"], told["env"])


def _raise_loopback() -> None:
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP_AND_RUNNING))


if __name__ == "__main__":
    main()
