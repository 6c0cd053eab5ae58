"""Server as a process with the rights of this user: for a person who chose no sandbox for it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.upstream.message_lines import MessageLines, written
from ringfence.toolkit.upstream.pipe_writer import PipeWriter
from ringfence.toolkit.upstream.stderr_lines import StderrLines
from ringfence.toolkit.upstream.transport import Message, OnEnd, OnMessage

_PIECE = 1 << 16
GRACE = 2.0  # seconds between asking a server to end and ending it


class ServerProcess:
    """A server without a sandbox, in a process group of its own."""

    level = "none"

    def __init__(
        self, words: tuple[str, ...], folder: str, env: Mapping[str, str], note: Callable[[str], None]
    ) -> None:
        self._words = words
        self._folder = folder
        self._env = env
        self._note = note
        self._stderr = StderrLines(note)
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: PipeWriter | None = None
        self._threads: list[threading.Thread] = []

    def start(self, on_message: OnMessage, on_end: OnEnd) -> None:
        """Start the command. Raises CallError `upstream_unavailable`."""
        try:
            self._process = process = subprocess.Popen(
                self._words,
                cwd=self._folder,
                env=dict(self._env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise CallError(
                "upstream_unavailable", f"'{self._words[0]}' cannot be started: {error.strerror}"
            ) from None
        assert process.stdin is not None
        self._writer = PipeWriter(os.dup(process.stdin.fileno()))
        process.stdin.close()
        reads = threading.Thread(target=self._read, args=(process, on_message, on_end), daemon=True)
        hears = threading.Thread(target=self._hear, args=(process.stderr,), daemon=True)
        self._threads = [reads, hears]
        for thread in self._threads:
            thread.start()

    def _read(self, process: subprocess.Popen[bytes], on_message: OnMessage, on_end: OnEnd) -> None:
        lines = MessageLines(on_message, self._note)
        reason: str | None = None
        assert process.stdout is not None
        with process.stdout as source:
            while reason is None and (piece := source.read(_PIECE)):
                reason = lines.add(piece)
        if reason is not None:
            _signal(process, signal.SIGKILL)
        try:
            status = process.wait(GRACE)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)  # it has closed its output, so it answers nothing any more
            status = process.wait()
        self._threads[1].join(GRACE)
        said = f": {self._stderr.last[-1]}" if self._stderr.last else ""
        on_end(reason or f"it ended with status {status}{said}")

    def _hear(self, source: IO[bytes] | None) -> None:
        assert source is not None
        with source:
            while piece := source.read(_PIECE):
                self._stderr.add(piece)
        self._stderr.end()

    def send(self, message: Message) -> None:
        """Send a message. Raises CallError `upstream_unavailable`."""
        if self._writer is None:
            raise CallError("upstream_unavailable", "The MCP server does not run")
        self._writer.write(written(message))

    def close(self) -> None:
        """Ask the server to end, then end it with all that it started."""
        process = self._process
        if process is None or self._writer is None:
            return
        self._writer.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(subprocess.TimeoutExpired):
                process.wait(GRACE)
                break
            _signal(process, number)
        _signal(process, signal.SIGKILL)  # what it has started
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(GRACE)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
