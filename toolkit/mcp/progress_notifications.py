"""Progress notifications of one call: its steps, and what a command writes as it comes.

Bounded in rate and size: a client that wants all of the output reads the answer. What a command writes is
escaped.
"""

from __future__ import annotations

import codecs
import time
from collections.abc import Callable
from typing import Any

from ringfence.toolkit.mcp.jsonrpc import Message, notification
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.text import escape

EVERY = 0.1  # seconds between two notifications
MOST_AT_ONCE = 4 << 10  # bytes of output in one notification; of more, the end
MOST_OUTPUT = 256 << 10  # bytes of output that are sent for one call
ENOUGH = "(more output follows in the answer)"


class ProgressNotifications:
    """Notifications of one call with the client's `token`. `notify` sends a message.

    The progress rises with each: by steps, and by bytes while a command writes.
    """

    def __init__(
        self,
        notify: Callable[[Message], None],
        token: str | int,
        cancelled: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._notify = notify
        self._token = token
        self._cancelled = cancelled
        self._clock = clock
        self._last = -EVERY  # when the last notification was sent
        self._written = 0  # bytes of output so far, before which no step counts
        self._sent = 0  # bytes of output in notifications
        self._waiting = b""  # output that is not sent yet, at most MOST_AT_ONCE of it
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def progress(self) -> Progress:
        """Return the progress to give to the call."""
        return Progress(self._step, self._given_up, output=self._output)

    def _step(self, what: str, done: int, total: int | None) -> None:
        if self._is_due():
            self._send(what, self._written + done, None if total is None else self._written + total)

    def _output(self, _stream: int, piece: bytes) -> None:
        self._written += len(piece)
        self._waiting = (self._waiting + piece)[-MOST_AT_ONCE:]
        self._flush()

    def _given_up(self) -> bool:
        """Whether the client cancelled; asked often while a command runs, so output that waits is sent."""
        self._flush()
        return self._cancelled()

    def _flush(self) -> None:
        if not self._waiting or self._sent > MOST_OUTPUT or not self._is_due():
            return
        self._sent += len(self._waiting)
        text = self._decoder.decode(self._waiting)
        self._waiting = b""
        self._send(escape(text, newlines=True) if self._sent <= MOST_OUTPUT else ENOUGH, self._written)

    def _is_due(self) -> bool:
        return self._clock() - self._last >= EVERY

    def _send(self, what: str, done: int, total: int | None = None) -> None:
        self._last = self._clock()
        params: dict[str, Any] = {"progressToken": self._token, "progress": done, "message": what}
        self._notify(
            notification("notifications/progress", params | ({} if total is None else {"total": total}))
        )
