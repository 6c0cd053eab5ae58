"""Supervisor of one command: makes its namespaces and mounts, watches its limits, and ends all its processes.

Lives outside the pid namespace. It ends when the caller closes the channel or dies, and everything with it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable

from ringfence.toolkit.sandbox.channel import FOREGROUND, KILL, RESUME, TERMINATE, tell
from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.first_process import FOREGROUND_SIGNAL, first_process, keep_open
from ringfence.toolkit.sandbox.mounts import Mounts
from ringfence.toolkit.sandbox.request import Request, read_request
from ringfence.toolkit.sandbox.spec import Stop
from ringfence.toolkit.sandbox.system_calls import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    adopt_orphans,
    die_with_parent,
    not_dumpable,
    unshare,
)
from ringfence.toolkit.sandbox.usage import Watch

_SET_INTERFACE_FLAGS, _UP = 0x8914, 1
CHANNEL, REQUEST = 3, 4  # the descriptors a supervisor starts with, after the three streams


def supervise(parent: int) -> None:
    """Run as the supervisor, on descriptors 0 to 4; never returns. `parent` is a descriptor of the parent."""
    die_with_parent(parent)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, CHANNEL)
    try:
        request = read_request(REQUEST)
        scratch = os.open(request.scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        os.dup2(scratch, REQUEST, inheritable=False)  # from here on that of the scratch directory
        if request.namespaces:
            _enter_namespaces(request)
            die_with_parent(parent)  # new credentials may have undone it
            _mount(request)
        else:
            adopt_orphans()
        not_dumpable()
        me = os.pidfd_open(os.getpid())
        first = os.fork()
        if first == 0:
            first_process(request, channel, me)
        _follow(request, channel, first)
    except SandboxError as error:
        tell(channel, error=error.code, message=error.message, place=error.place)
    except OSError as error:
        tell(channel, error="start_failed", message=str(error), place="supervisor")
    os._exit(0)


def _enter_namespaces(request: Request) -> None:
    user, group = os.geteuid(), os.getegid()
    flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS
    try:
        unshare(flags if request.network else flags | CLONE_NEWNET)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            held = os.open(f"/proc/self/{name}", os.O_WRONLY | os.O_CLOEXEC)
            os.write(held, text.encode())
            os.close(held)
    except OSError as error:
        reason = "their number is limited to none" if error.errno == errno.ENOSPC else error.strerror
        raise SandboxError("namespaces_forbidden", f"no user namespace: {reason}", place="namespaces") from None
    if not request.network:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _SET_INTERFACE_FLAGS, struct.pack("16sh14x", b"lo", _UP))


def _mount(request: Request) -> None:
    try:
        Mounts(request).build()
    except OSError as error:
        raise SandboxError("mount_refused", str(error), place=error.filename or request.workspace) from None


def _follow(request: Request, channel: socket.socket, first: int) -> None:
    """Wait for the first process, and end it at a limit or at the caller's word."""
    keep_open(REQUEST, request.terminals)
    process = os.pidfd_open(first)
    watch = Watch(request, REQUEST)
    poll = select.poll()
    poll.register(process, select.POLLIN)
    poll.register(channel, select.POLLIN)
    end = time.monotonic() + request.seconds
    stopped: Stop | None = None
    while True:
        now = time.monotonic()
        wait = min(end, watch.due) - now if stopped is None else 1.0
        ready = dict(poll.poll(max(0.0, wait) * 1000))
        if process in ready:
            break
        if channel.fileno() in ready and not _obey(channel, process):
            poll.unregister(channel)
            signal.pidfd_send_signal(process, signal.SIGKILL)
        now = time.monotonic()
        if stopped is None and now >= end:
            stopped = "seconds"
        elif stopped is None and now >= watch.due:
            stopped = watch.exceeded()
        if stopped is not None:
            tell(channel, stopped=stopped)
            signal.pidfd_send_signal(process, signal.SIGKILL)
    os.waitpid(first, 0)
    if not request.namespaces:
        _end_orphans()


def _obey(channel: socket.socket, process: int) -> bool:
    """Do what the caller says; False once there is nothing more to listen to."""
    try:
        order = channel.recv(16)
    except OSError:
        return False
    actions: dict[bytes, Callable[[], None]] = {
        KILL: lambda: signal.pidfd_send_signal(process, signal.SIGKILL),
        RESUME: lambda: signal.pidfd_send_signal(process, signal.SIGCONT),
        FOREGROUND: lambda: signal.pidfd_send_signal(process, FOREGROUND_SIGNAL),
        TERMINATE: lambda: signal.pidfd_send_signal(process, order[1]),
    }
    if not order:
        return False
    actions[order[:1]]()
    return True


def _end_orphans() -> None:
    """Kill every process that the command left behind, until there is none."""
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
    """The direct children; those whose own parent is killed become direct children then."""
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
