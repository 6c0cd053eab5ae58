"""Session pool: a session for each agent's token, opened on first use, and one for people, without calls.

A session answers one call at a time; waiting calls occupy no thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread

from ringfence.toolkit.call import Result, call_id_of, failed
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.http.metrics import Metrics
from ringfence.toolkit.http.tokens import Caller
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session.session import Session

THREADS = 4  # threads that one caller's requests may use at once


@dataclass(slots=True)
class Disconnect:
    """Whether the client that waits for a response has disconnected."""

    event: threading.Event = field(default_factory=threading.Event)

    def progress(self) -> Progress:
        """Return the progress that cancels a call nobody waits for, while nothing has been changed."""
        return Progress(None, self.event.is_set, "The client left before anything was changed")


@dataclass(slots=True)
class SessionSlot:
    """One agent's session, and the queue for it."""

    caller: Caller
    session: Session
    turn: anyio.Lock = field(default_factory=anyio.Lock)


class SessionPool:
    """The sessions of a server. `opened(agent, session id or None)` opens one."""

    def __init__(self, opened: Callable[[str, str | None], Session], metrics: Metrics) -> None:
        self._opened = opened
        self.metrics = metrics
        self.approver = opened("default", None)  # the session for people, which makes no calls
        self._slots: dict[str, SessionSlot] = {}
        self._opening = threading.Lock()
        self._threads: dict[str | None, anyio.CapacityLimiter] = {}
        self._tasks: anyio.abc.TaskGroup | None = None

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Allow background work during the block; work may outlive the request that started it."""
        async with anyio.create_task_group() as self._tasks:
            yield

    def start(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: Any) -> None:
        """Start work that is finished even if nobody waits for it."""
        assert self._tasks is not None, "the server runs"
        self._tasks.start_soon(work, *arguments)

    def close(self) -> None:
        """Close every session."""
        for slot in self._slots.values():
            slot.session.close()
        self.approver.close()

    async def run(self, work: Callable[[], Any], caller: Caller | None = None) -> Any:
        """Run work that blocks on disks and locks in a thread.

        It is finished even if its caller disconnects.

        Each caller has its own threads, so none waits for another's work.
        """
        key = None if caller is None else caller.key
        threads = self._threads.get(key)
        if threads is None:
            threads = self._threads[key] = anyio.CapacityLimiter(THREADS)
        return await anyio.to_thread.run_sync(work, limiter=threads)

    async def slot_of(self, caller: Caller) -> SessionSlot:
        """Return the session slot of this agent's token."""
        known = self._slots.get(caller.key)
        return known if known is not None else await self.run(lambda: self._open(caller), caller)

    def _open(self, caller: Caller) -> SessionSlot:
        with self._opening:
            if caller.key not in self._slots:
                self._slots[caller.key] = SessionSlot(caller, self._opened(caller.name, caller.session))
            return self._slots[caller.key]

    async def call(self, caller: Caller, body: bytes, disconnect: Disconnect) -> Result:
        """Answer one call in its turn; a call whose client disconnected in the queue is not started."""
        slot = await self.slot_of(caller)
        async with slot.turn:
            if disconnect.event.is_set():
                return failed(call_id_of(body), CallError("cancelled", "The client left before it began"))
            began = time.perf_counter()
            result: Result = await self.run(lambda: slot.session.call(body, disconnect.progress()), caller)
        self.metrics.call(_tool_in(body), result, time.perf_counter() - began)
        return result


def _tool_in(body: bytes) -> str:
    from ringfence.toolkit.call import parse_call

    try:
        return parse_call(body).tool
    except CallError:
        return ""
