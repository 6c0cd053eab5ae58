"""Server as a process in the sandbox of commands, at level `landlock`.

It sees the real workspace, because it lives long: nothing of it is planned. What the sandbox promises is that
it writes nowhere but in the workspace, and that only where its tools write, has no network unless a person
said so, sees no secrets of the home directory, and ends with this process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.sandbox import SandboxError
from ringfence.toolkit.sandbox import run as run_in_sandbox
from ringfence.toolkit.upstream.message_lines import MessageLines, written
from ringfence.toolkit.upstream.pipe_writer import PipeWriter
from ringfence.toolkit.upstream.process import GRACE
from ringfence.toolkit.upstream.stderr_lines import StderrLines
from ringfence.toolkit.upstream.transport import Message, OnEnd, OnMessage

if TYPE_CHECKING:
    from ringfence.toolkit.sandbox import Spec


class _Ended(Exception):
    """The server has to end."""


class SandboxedServer:
    """A server in the sandbox; `spec` says how, `remove` takes its scratch directory away at the end."""

    level = "landlock"

    def __init__(self, spec: Spec, note: Callable[[str], None], remove: Callable[[], None]) -> None:
        self._spec = spec
        self._note = note
        self._remove = remove
        self._stderr = StderrLines(note)
        self._writer: PipeWriter | None = None
        self._thread: threading.Thread | None = None
        self._end = threading.Event()
        self._reason: str | None = None

    def start(self, on_message: OnMessage, on_end: OnEnd) -> None:
        """Start the command; what makes it impossible comes as the end."""
        read, write = os.pipe2(os.O_CLOEXEC)
        self._writer = PipeWriter(write)
        work = (read, MessageLines(on_message, self._note), on_end)
        self._thread = threading.Thread(target=self._run, args=work, daemon=True)
        self._thread.start()

    def _run(self, stdin: int, lines: MessageLines, on_end: OnEnd) -> None:
        def output(stream: int, piece: bytes) -> None:
            if stream == 1:
                self._reason = self._reason or lines.add(piece)
            else:
                self._stderr.add(piece)

        def check() -> None:
            if self._reason is not None or self._end.is_set():
                raise _Ended

        try:
            ended = run_in_sandbox(self._spec, stdin=stdin, on_output=output, check=check)
            reason = f"it ended with status {ended.status}"
            reason += f" ({ended.stopped})" if ended.stopped else ""
        except _Ended:
            reason = self._reason or "it was ended"
        except SandboxError as error:
            reason = f"no sandbox for it: {error.message}; {error.hint}"
        finally:
            os.close(stdin)
            self._remove()
        self._stderr.end()
        said = f": {self._stderr.last[-1]}" if self._stderr.last and self._reason is None else ""
        if self._writer is not None:
            self._writer.close()
        on_end(f"{reason}{said}")

    def send(self, message: Message) -> None:
        """Send a message. Raises CallError `upstream_unavailable`."""
        if self._writer is None:
            raise CallError("upstream_unavailable", "The MCP server does not run")
        self._writer.write(written(message))

    def close(self) -> None:
        """Ask the server to end, then end it with all that it started."""
        if self._writer is None or self._thread is None:
            return
        self._writer.close()
        if self._thread is threading.current_thread():
            return
        self._thread.join(GRACE)
        self._end.set()
        self._thread.join()
