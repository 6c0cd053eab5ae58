"""Streams of the approvals channel: from a command's options to descriptors that only a person's side has.

Refuses what the agent's side could reach, and what is no stream between two ends.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from ringfence.toolkit.cli.approval_channel import ApprovalChannel
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import UsageError
from ringfence.toolkit.durations import seconds

_STANDARD = (0, 1, 2)
_ROOT = 0
_PATIENCE = 5.0  # seconds to connect


@contextmanager
def channel_of(arguments: argparse.Namespace, screen: Screen) -> Iterator[ApprovalChannel]:
    """The channel that the options ask for, closed in the end."""
    given, path = arguments.approvals_fd, arguments.approvals_socket
    if given is None and path is None:
        raise UsageError("--approvals-timeout: only with --approvals-fd or --approvals-socket")
    if given is not None and path is not None:
        raise UsageError("--approvals-fd and --approvals-socket: give one of them")
    if arguments.ask is not None:
        raise UsageError(f"--ask {arguments.ask}: not with an approvals channel, which answers the requests")
    timeout = _timeout(arguments.approvals_timeout)
    source, sink = _connected(path) if given is None else _inherited(given)
    channel = ApprovalChannel(source, sink, timeout=timeout, warn=lambda text: screen.note(text, "yellow"))
    try:
        yield channel
    finally:
        channel.close()


def _timeout(text: str | None) -> int | None:
    found = None if text is None else seconds(text)
    if text is not None and found is None:
        raise UsageError(f"--approvals-timeout {text}: not a duration such as 90s or 10m")
    return found


def _inherited(given: str) -> tuple[int, int]:
    """The descriptors of `N` or `IN,OUT`. Raises UsageError for what is no stream of a person's own."""
    found = re.fullmatch(r"([0-9]{1,6})(?:,([0-9]{1,6}))?", given)
    if found is None:
        raise UsageError(f"--approvals-fd {given}: neither a descriptor's number nor IN,OUT")
    source = int(found[1])
    sink = source if found[2] is None else int(found[2])
    kinds = [_kind(given, descriptor) for descriptor in (source, sink)]
    if source == sink and kinds[0] != "socket":
        raise UsageError(f"--approvals-fd {given}: one pipe goes one way; give two of them as IN,OUT")
    if source != sink and _identity(source) == _identity(sink):
        raise UsageError(f"--approvals-fd {given}: what is written to OUT would come back from IN")
    for descriptor, mode, name in ((source, os.O_WRONLY, "read from"), (sink, os.O_RDONLY, "written to")):
        if _mode(descriptor) == mode:
            raise UsageError(f"--approvals-fd {given}: {descriptor} cannot be {name}")
    return source, sink


def _kind(given: str, descriptor: int) -> str:
    """Whether it is a "pipe" or a "socket" that is neither of the streams of calls and results."""
    where = f"--approvals-fd {given}"
    if descriptor in _STANDARD:
        raise UsageError(f"{where}: 0, 1 and 2 are the agent's side; pass another descriptor")
    try:
        kind = os.fstat(descriptor).st_mode
    except OSError:
        message = f"{descriptor} is not open here; whoever starts ringfence has to pass it on"
        raise UsageError(f"{where}: {message}") from None
    if _identity(descriptor) in map(_identity, _STANDARD):
        raise UsageError(f"{where}: {descriptor} is the same stream as stdin, stdout or stderr")
    if stat.S_ISFIFO(kind):
        return "pipe"
    if stat.S_ISSOCK(kind) and _is_stream(descriptor):
        return "socket"
    raise UsageError(f"{where}: {descriptor} is neither a pipe nor a connected stream socket")


def _identity(descriptor: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_stream(descriptor: int) -> bool:
    with socket.socket(fileno=os.dup(descriptor)) as end:
        try:
            end.getpeername()
        except OSError:
            return False
        return end.type == socket.SOCK_STREAM


def _mode(descriptor: int) -> int:
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE


def _connected(path: str) -> tuple[int, int]:
    """A connection to the socket that a program of the same user listens on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as end:
        end.settimeout(_PATIENCE)
        try:
            end.connect(path)
        except OSError as error:
            raise UsageError(f"--approvals-socket {path}: {error.strerror or error}") from None
        if _owner(end) not in (None, os.getuid(), _ROOT):
            raise UsageError(f"--approvals-socket {path}: another user listens there")
        descriptor = end.detach()
    return descriptor, descriptor


def _owner(end: socket.socket) -> int | None:
    """The account that listens; None where the system does not say."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(user)
