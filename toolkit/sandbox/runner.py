"""Runner of commands: starts one in the sandbox, carries its streams, and reports how it ended."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ringfence.toolkit.sandbox.channel import KILL, receive
from ringfence.toolkit.sandbox.cleaning import prepare_scratch, remove_private_parts
from ringfence.toolkit.sandbox.copying import copy_tree
from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.git_metadata import outside_metadata
from ringfence.toolkit.sandbox.hidden_names import own_homes
from ringfence.toolkit.sandbox.mount_points import mount_points_below
from ringfence.toolkit.sandbox.request import Request
from ringfence.toolkit.sandbox.resolving import in_the_copy, resolve
from ringfence.toolkit.sandbox.server_client import SERVER
from ringfence.toolkit.sandbox.spec import Ended, Spec, Stop
from ringfence.toolkit.sandbox.streams import OnOutput, Streams
from ringfence.toolkit.sandbox.terminal import Terminal

_CHECK = 0.1  # seconds between two calls of `check`
_NO_NAMESPACES = ("namespaces_forbidden", "mount_refused", "proc_masked")
_CANNOT_START = {1: 126, 8: 126, 13: 126, 21: 126}  # by errno; all others: 127


def run(
    spec: Spec,
    *,
    stdin: bytes | int | None = None,
    on_output: OnOutput | None = None,
    check: Callable[[], None] | None = None,
    terminal: int | None = None,
) -> Ended:
    """Run the command and return how it ended; SandboxError if it could not be started as asked.

    `stdin`: bytes, a descriptor, or None for an empty one. `on_output(stream, piece)` gets pieces of stream 1
    or 2 as they come. `check` is called at least every 0.1 s; what it raises is raised here once every
    process of the command is dead. `terminal` is a descriptor of the caller's controlling terminal: those of
    the caller's descriptors 0 to 2 that are a terminal become the command's, with job control, and what the
    command writes to it is not in `output`.
    """
    if sys.platform != "linux":
        raise SandboxError("not_on_this_system", f"no sandbox for commands on {sys.platform}")
    people = Terminal(terminal) if terminal is not None else None
    request = resolve(spec, people.streams if people else None)
    prepare_scratch(spec.scratch)
    notes = list(_notes(request))
    began, started = time.monotonic(), time.time_ns()
    if spec.level == "copy":
        copy_tree(spec.workspace, f"{spec.scratch}/copy", request.hidden, spec.through)
    with Streams(spec.limits.output, stdin, on_output, request.terminals) as streams:
        try:
            outcome = _attempt(request, streams, check, people)
            if spec.level == "copy" and outcome.error and outcome.error.code in _NO_NAMESPACES:
                notes.append(f"Without user namespaces ({outcome.error.message}), so under Landlock alone.")
                _refuse_through(spec)
                outcome = _attempt(in_the_copy(request), streams, check, people)
        finally:
            remove_private_parts(spec.scratch)
    if outcome.error is not None:
        raise outcome.error
    if outcome.failed is not None:
        streams.add(2, f"{spec.argv[0]}: {os.strerror(outcome.failed)}\n".encode())
    status, number = outcome.status(streams)
    return Ended(
        status=status,
        signal=number,
        stopped=outcome.reason(streams),
        seconds=time.monotonic() - began,
        level=spec.level,
        output=streams.tail(),
        output_bytes=streams.count,
        started_ns=started,
        notes=tuple(notes),
    )


def _notes(request: Request) -> Iterator[str]:
    for home in own_homes() if request.namespaces else ():
        if mount_points_below(home) and home not in (one.path for one in request.homes):
            yield f"{home} is read-only inside, since it has mount points."
    for place in outside_metadata(request.workspace):
        yield f"Git's data is in {place}, outside the workspace: commands can read it and not change it."


def _refuse_through(spec: Spec) -> None:
    if spec.through:
        text = "directories that are written at once need user namespaces, and this machine has none"
        raise SandboxError("bad_request", text, place="through")


def _attempt(
    request: Request, streams: Streams, check: Callable[[], None] | None, people: Terminal | None
) -> _Outcome:
    """Run once, and return the report of it; every process is dead then."""
    if not request.namespaces:
        os.makedirs(f"{request.scratch}/tmp", mode=0o700, exist_ok=True)
    outcome = _Outcome()
    with _send(request, streams) as channel:
        try:
            _follow(channel, streams, outcome, check, people)
        finally:
            if people:
                people.reclaim()
            _finish(channel)
    if outcome.error is None:
        streams.started()
        streams.drain()
    return outcome


@dataclass(slots=True)
class _Outcome:
    """The messages of the supervisor and the first process."""

    wait_status: int | None = None
    stopped: Stop | None = None
    failed: int | None = None
    error: SandboxError | None = None

    def status(self, streams: Streams) -> tuple[int, int | None]:
        """The exit status, and the signal that ended the command."""
        if self.failed is not None:
            return _CANNOT_START.get(self.failed, 127), None
        if self.wait_status is None:
            if self.reason(streams) is None:
                raise SandboxError("sandbox_died", "the sandbox ended without a word", place="supervisor")
            return 128 + signal.SIGKILL, signal.SIGKILL
        code = os.waitstatus_to_exitcode(self.wait_status)
        return (code, None) if code >= 0 else (128 - code, -code)

    def reason(self, streams: Streams) -> Stop | None:
        """The limit that ended the command."""
        if streams.exceeded:
            return "output"
        return "scratch" if self._file_too_large() else self.stopped

    def _file_too_large(self) -> bool:
        """Whether the kernel ended the command, or a shell's last command, for the size of a file."""
        if self.wait_status is None:
            return False
        return os.waitstatus_to_exitcode(self.wait_status) in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ)


def _send(request: Request, streams: Streams) -> socket.socket:
    """Hand the request to the server, and return the caller's end of the channel."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    memory_fd = os.memfd_create("request", os.MFD_CLOEXEC)
    try:
        os.write(memory_fd, request.encoded())
        SERVER.send(request.place, (*streams.of_command, theirs.fileno(), memory_fd))
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
        os.close(memory_fd)
    return ours


def _follow(
    channel: socket.socket,
    streams: Streams,
    outcome: _Outcome,
    check: Callable[[], None] | None,
    people: Terminal | None,
) -> None:
    """Carry streams and messages until the channel ends; raise what `check` raises."""
    while True:
        if streams.wait(channel, _CHECK if check else None):
            message = receive(channel)
            if message is None:
                return
            if "started" in message:
                streams.started()
            _take(message, outcome, channel, people)
        if streams.exceeded:
            channel.send(KILL)
            streams.close_output()
        if check is not None:
            check()


def _take(
    message: dict[str, object], outcome: _Outcome, channel: socket.socket, people: Terminal | None
) -> None:
    match message:
        case {"error": str(code), "message": str(text), "place": str(place)}:
            outcome.error = SandboxError(code, text, place=place)
        case {"stopped": ("seconds" | "memory" | "processes" | "scratch") as reason}:
            outcome.stopped = outcome.stopped or reason
        case {"failed": int(number)}:
            outcome.failed = number
        case {"ended": int(status)}:
            outcome.wait_status = status
        case {"suspended": int(_)} if people is not None:
            people.suspend(channel)
        case _:
            pass


def _finish(channel: socket.socket) -> None:
    """Wait until every process is dead."""
    try:
        channel.shutdown(socket.SHUT_WR)  # the supervisor ends what is left
        while receive(channel) is not None:
            pass
    except OSError:
        pass
