"""Approvals channel: puts a request to a person on a stream of its own, and takes the answer from it.

Must never grant by silence, by the end of the stream or by a line that is no answer: then the request stays
in the queue. Nothing that an agent sends reaches the stream but as text inside a request.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.approvals.requests import PENDING, Request
from ringfence.toolkit.call import call_id_of
from ringfence.toolkit.cli import approval_messages
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.scopes import Scope, scopes
from ringfence.toolkit.line_reader import Lines

if TYPE_CHECKING:
    from ringfence.toolkit.approvals.store import Approvals
    from ringfence.toolkit.granting.reach import Reach

_PIECE = 1 << 16
_REMEMBERED = 1000  # requests that were put here and may still be answered late
STALLED = 60.0  # seconds in which the other end takes nothing in, after which it is given up


class _Over(Exception):
    """The other end is gone, or the stream can no longer be understood."""


class ApprovalChannel:
    """The approver of a session whose person answers on the descriptors `source` and `sink`.

    Calling it puts one request, waits, and leaves the answer in `approvals`, which has to be set first.
    `timeout` is how many seconds one request waits (None: until it expires), `poll_every` how often it is
    looked up whether the request was answered elsewhere. `answering` is the line of the call at hand; `warn`
    is called when nobody can be asked here. `reach` finds what a scope opens (None: it is not known).
    """

    approvals: Approvals
    reach: Callable[[Request, Scope], Reach | None]

    def __init__(  # noqa: PLR0913  one stream and one clock each, given by the command
        self,
        source: int,
        sink: int,
        *,
        timeout: float | None = None,
        poll_every: float = 0.5,
        clock: Callable[[], float] = time.monotonic,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.answering: bytes | None = None
        self._source, self._sink = source, sink
        self._timeout, self._poll_every, self._clock = timeout, poll_every, clock
        self._lines = Lines(approval_messages.MAX_ANSWER)
        self._waiting: deque[bytes] = deque()
        self._shown: deque[str] = deque(maxlen=_REMEMBERED)
        self._lock = threading.Lock()
        self._cut = False
        self._warn = warn
        self.open = True
        for descriptor in {source, sink}:
            os.set_blocking(descriptor, False)
            os.set_inheritable(descriptor, False)

    def __call__(
        self,
        request: Request,
        *,
        call: str | int | None = None,
        called_off: Callable[[], bool] = lambda: False,
    ) -> None:
        """Put the request and wait for what becomes of it. One at a time; others wait here meanwhile."""
        while not self._lock.acquire(timeout=self._poll_every):
            if called_off():
                return
        try:
            if self.open:
                self._ask(request, call if self.answering is None else call_id_of(self.answering), called_off)
        except _Over:
            self.close()
            self._warn("the approvals channel is closed: what asks waits in the queue")
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the descriptors; what is asked from now on stays in the queue."""
        if self.open:
            self.open = False
            for descriptor in {self._source, self._sink}:
                os.close(descriptor)

    def _ask(self, request: Request, call: str | int | None, called_off: Callable[[], bool]) -> None:
        if request.id not in self._shown:
            self._shown.append(request.id)
        opens = [(scope, self.reach(request, scope)) for scope in scopes(request)]
        self._send(approval_messages.asked(request, call, opens))
        try:
            reason = self._wait(request.id, called_off)
        except BaseException as error:
            with suppress(_Over, CallError):
                why = "the channel was closed" if isinstance(error, _Over) else "ringfence ended"
                self._report_closed(request.id, why)
            raise
        self._report_closed(request.id, reason)

    def _wait(self, asked: str, called_off: Callable[[], bool]) -> str:
        """Why the request is over; "" once its answer was taken."""
        ends = None if self._timeout is None else self._clock() + self._timeout
        while True:
            state = self.approvals.get(asked).state
            if state != PENDING:
                return f"{state} elsewhere"
            if called_off():
                return "the call was called off"
            try:
                line = self._next_line()
                if line is not None and self._take(line, asked):
                    return ""
            except CallError as error:
                return error.message
            if ends is not None and self._clock() >= ends:
                return "nobody answered in time"

    def _take(self, line: bytes, asked: str) -> bool:
        """Record the answer; whether it was the one that is waited for. Raises CallError for no answer."""
        name, answer = approval_messages.read_answer(line, time.time())
        if name not in self._shown:
            raise CallError("not_found", "The answer is to a request that was not put here", where="id")
        if name == asked:
            self.approvals.answer(name, answer)
            return True
        # Late: it is still the person's word on that request, for when the agent sends its call again.
        reason = ""
        try:
            if self.approvals.get(name).state == PENDING:
                self.approvals.answer(name, answer)
            else:
                reason = "was over before"
        except CallError as error:
            reason = error.message
        self._report_closed(name, reason)
        return False

    def _next_line(self) -> bytes | None:
        """The next line; None where none came for a while."""
        if not self._waiting:
            events = _events(self._poll_every, {self._sink: 0, self._source: select.POLLIN})
            # What the other end wrote before it went is read first.
            if not events.get(self._source):
                if events.get(self._sink):
                    raise _Over
                return None
            try:
                data = os.read(self._source, _PIECE)
            except BlockingIOError:
                return None
            except OSError as error:
                raise _Over from error
            if not data:
                raise _Over  # a line without its end may have been cut: it is no answer
            self._waiting.extend(self._lines.add(data))
        return self._waiting.popleft() if self._waiting else None

    def _report_closed(self, name: str, reason: str) -> None:
        self._send(approval_messages.closed(self.approvals.get(name), reason))

    def _send(self, message: dict[str, Any]) -> None:
        left = memoryview(approval_messages.line(message))
        if self._cut:
            raise _Over
        gives_up = self._clock() + STALLED
        while left:
            try:
                left = left[os.write(self._sink, left[:_PIECE]) :]
                gives_up = self._clock() + STALLED
            except BlockingIOError:
                if self._clock() >= gives_up:
                    self._cut = True  # half a line is out: nothing after it could be understood
                    raise _Over from None
                _events(self._poll_every, {self._sink: select.POLLOUT})
            except OSError as error:
                raise _Over from error


def _events(seconds: float, wanted: dict[int, int]) -> dict[int, int]:
    """What happened at descriptors within a time, that another end has gone included."""
    poll = select.poll()
    for descriptor, mask in wanted.items():
        poll.register(descriptor, mask)
    return dict(poll.poll(seconds * 1000))
