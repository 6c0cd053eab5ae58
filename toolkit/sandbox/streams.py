"""Streams of a command: what it reads and writes, through pipes, with the end of the output kept.

A command gets pipes and terminals alone. It could open a file again, for writing, through `/proc/self/fd`.
"""

from __future__ import annotations

import os
import select
import socket
import stat
from collections import deque
from collections.abc import Callable
from types import TracebackType

OnOutput = Callable[[int, bytes], None]

_PIECE = 65536
_RUNAWAY = 1024  # a command that writes this many times what is kept is stopped


class Streams:
    """The streams of one command; a context that closes what is left of them."""

    def __init__(
        self, keep: int, stdin: bytes | int | None, on_output: OnOutput | None, terminals: tuple[int, ...]
    ) -> None:
        self.count = 0  # bytes written so far
        self._keep = keep
        self._on_output = on_output
        self._pieces: deque[bytes] = deque()
        self._kept = 0
        self._given: list[int] = []  # to be closed once the command has them
        self._readers: dict[int, int] = {}  # our ends of the output, and which stream each is
        self._feed: bytes = b""
        self._source: int | None = None
        self._writer: int | None = None
        self._poll = select.poll()
        self.of_command = tuple(
            stream if stream in terminals else (self._input(stdin) if stream == 0 else self._output(stream))
            for stream in range(3)
        )

    def _input(self, stdin: bytes | int | None) -> int:
        if stdin is None or stdin == b"":
            return self._keep_given(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        if isinstance(stdin, int) and stat.S_ISFIFO(os.fstat(stdin).st_mode):
            return stdin
        read, self._writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._writer, False)
        if isinstance(stdin, bytes):
            self._feed = stdin
        else:
            self._source = stdin
        self._listen_for_input()
        return self._keep_given(read)

    def _keep_given(self, descriptor: int) -> int:
        self._given.append(descriptor)
        return descriptor

    def _output(self, stream: int) -> int:
        read, write = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(read, False)
        self._readers[read] = stream
        self._poll.register(read, select.POLLIN)
        return self._keep_given(write)

    def _listen_for_input(self) -> None:
        """Wait for room if there is something to write, else for something to read."""
        assert self._writer is not None
        if self._feed:
            self._poll.register(self._writer, select.POLLOUT)
        elif self._source is not None:
            self._poll.register(self._source, select.POLLIN)
        else:
            os.close(self._writer)
            self._writer = None

    def started(self) -> None:
        """Close what the command has now."""
        for descriptor in self._given:
            os.close(descriptor)
        self._given.clear()

    @property
    def exceeded(self) -> bool:
        """Whether the command has written far more than anybody could want."""
        return self.count > self._keep * _RUNAWAY

    def wait(self, channel: socket.socket, seconds: float | None) -> bool:
        """Carry what is there, after waiting for something; True if the channel has a message or its end."""
        self._poll.register(channel, select.POLLIN)
        ready = dict(self._poll.poll(None if seconds is None else seconds * 1000))
        self._poll.unregister(channel)
        message = channel.fileno() in ready
        for descriptor in ready:
            if descriptor in self._readers:
                self._read(descriptor)
            elif descriptor == self._writer:
                self._write()
            elif descriptor == self._source:
                self._refill()
        return message

    def _read(self, descriptor: int) -> bool:
        """Take one piece of output; False where there is none now."""
        try:
            piece = os.read(descriptor, _PIECE)
        except BlockingIOError:
            return False
        if not piece:
            self._end(descriptor)
            return False
        self.add(self._readers[descriptor], piece)
        return True

    def _end(self, descriptor: int) -> None:
        del self._readers[descriptor]
        self._poll.unregister(descriptor)
        os.close(descriptor)

    def add(self, stream: int, piece: bytes) -> None:
        """Count a piece of output, keep it, and hand it on."""
        self.count += len(piece)
        self._pieces.append(piece)
        self._kept += len(piece)
        while self._kept - len(self._pieces[0]) >= self._keep:
            self._kept -= len(self._pieces.popleft())
        if self._on_output is not None:
            self._on_output(stream, piece)

    def _write(self) -> None:
        assert self._writer is not None
        try:
            self._feed = self._feed[os.write(self._writer, self._feed[:_PIECE]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # the command does not read on
            self._feed, self._source = b"", None
        if not self._feed:
            self._poll.unregister(self._writer)
            self._listen_for_input()

    def _refill(self) -> None:
        assert self._source is not None
        self._poll.unregister(self._source)
        try:
            self._feed = os.read(self._source, _PIECE)
        except OSError:
            self._feed = b""
        if not self._feed:
            self._source = None
        self._listen_for_input()

    def close_output(self) -> None:
        """Read no more of the output."""
        for descriptor in list(self._readers):
            self._end(descriptor)

    def drain(self) -> None:
        """Read what is left of the output; nobody writes any more."""
        for descriptor in list(self._readers):
            while self._read(descriptor):
                pass

    def tail(self) -> bytes:
        """Return the end of the output."""
        return b"".join(self._pieces)[-self._keep :] if self._keep else b""

    def __enter__(self) -> Streams:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.started()
        self.close_output()
        if self._writer is not None:
            os.close(self._writer)
            self._writer = None
