"""Supervisor of one command: process 1 of its pid namespace, which reaps, watches limits, and ends it all.

It makes the mounts first and keeps its rights over the namespaces, which the command never has. It is killed
when its parent dies; the kernel then kills every other process of the namespace.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import struct
import time

from ringfence.toolkit.sandbox.channel import FOREGROUND, KILL, RESUME, TERMINATE, send
from ringfence.toolkit.sandbox.command import give_terminal, start_command
from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.mounts import Mounts, mount_proc
from ringfence.toolkit.sandbox.orphans import end_descendants
from ringfence.toolkit.sandbox.request import Request, read_request
from ringfence.toolkit.sandbox.spec import Stop
from ringfence.toolkit.sandbox.system_calls import (
    adopt_orphans,
    close_from,
    die_with_parent,
    not_dumpable,
)
from ringfence.toolkit.sandbox.usage import Watch

_SET_INTERFACE_FLAGS, _UP = 0x8914, 1
CHANNEL, REQUEST, PARENT = 3, 4, 5  # the descriptors that a supervisor starts with, after the three streams


def supervise() -> None:
    """Run as the supervisor; never returns."""
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, CHANNEL)
    try:
        die_with_parent(PARENT)
        request = read_request(REQUEST)
        scratch = os.open(request.scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.dup2(scratch, REQUEST, inheritable=False)  # from here on that of the scratch directory
        if request.namespaces:
            _prepare_namespaces(request)
            die_with_parent(PARENT)  # new credentials may have undone it
        else:
            adopt_orphans()
        not_dumpable()
        if not request.terminal:
            os.setsid()
        os.chdir(os.path.join(request.directory, request.cwd))
        _Supervisor(request, channel).run()
    except SandboxError as error:
        send(channel, error=error.code, message=error.message, place=error.place)
    except OSError as error:
        send(channel, error="start_failed", message=str(error), place="supervisor")
    os._exit(0)


def _prepare_namespaces(request: Request) -> None:
    try:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{request.user} {request.user} 1"),
            ("gid_map", f"{request.group} {request.group} 1"),
        ):
            proc_fd = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
            os.write(proc_fd, text.encode())
            os.close(proc_fd)
    except OSError as error:
        text = f"the system gives a user namespace no rights: {error.strerror}"
        raise SandboxError("namespaces_forbidden", text, place="uid_map") from None
    if not request.network:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SET_INTERFACE_FLAGS, struct.pack("16sh14x", b"lo", _UP))
    try:
        Mounts(request).build()
    except OSError as error:
        raise SandboxError("mount_refused", str(error), place=request.workspace) from None
    mount_proc()


class _Supervisor:
    """The command's process, its limits, and the caller's messages."""

    def __init__(self, request: Request, channel: socket.socket) -> None:
        self._request = request
        self._channel = channel
        self._end = time.monotonic() + request.seconds
        self._woken, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._command = start_command(request, channel)
        send(channel, started=True)
        keep = (CHANNEL, REQUEST, self._woken, waker)
        _close_all_but(keep, request.terminals)
        self._watch = Watch(request, REQUEST)
        self._poll = select.poll()
        self._poll.register(self._woken, select.POLLIN)
        self._poll.register(channel, select.POLLIN)

    def run(self) -> None:
        """Return once the command has ended or was stopped; the others are dead when this process is."""
        while not self._reaped():
            now = time.monotonic()
            ready = dict(self._poll.poll(max(0.0, min(self._end, self._watch.due) - now) * 1000))
            if self._woken in ready:
                os.read(self._woken, 4096)
            if CHANNEL in ready and not self._obey():
                break
            if stopped := self._exceeded():
                send(self._channel, stopped=stopped)
                break
        if not self._request.namespaces:
            end_descendants()

    def _exceeded(self) -> Stop | None:
        now = time.monotonic()
        if now >= self._end:
            return "seconds"
        return self._watch.exceeded() if now >= self._watch.due else None

    def _reaped(self) -> bool:
        """Reap what has ended; True if the command has."""
        while True:
            try:
                found, status = os.waitpid(-1, os.WNOHANG | (os.WUNTRACED if self._request.terminal else 0))
            except ChildProcessError:
                return True
            if found == self._command and os.WIFSTOPPED(status):
                send(self._channel, suspended=os.WSTOPSIG(status))
            elif found == self._command:
                send(self._channel, ended=status)
                return True
            elif found == 0:
                return False

    def _obey(self) -> bool:
        """Obey a message of the caller; False if it ends the command."""
        try:
            order = self._channel.recv(2)
        except OSError:
            return False
        if order[:1] in (b"", KILL):
            return False
        if order[:1] == FOREGROUND:
            give_terminal(self._request, self._command)
        number = order[1] if order[:1] == TERMINATE else signal.SIGCONT
        if order[:1] in (FOREGROUND, RESUME, TERMINATE):
            try:
                os.killpg(self._command, number)
            except ProcessLookupError:
                pass
        return True


def _close_all_but(keep: tuple[int, ...], terminals: tuple[int, ...]) -> None:
    """Close the command's streams in this process, so that they end with the command, and all others."""
    for descriptor in range(max(keep)):
        if descriptor not in keep and descriptor not in terminals:
            try:
                os.close(descriptor)
            except OSError:
                pass
    close_from(max(keep) + 1)
