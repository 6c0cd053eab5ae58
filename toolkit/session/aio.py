"""Session for asynchronous code: each call runs in one thread, one after the other.

Permits nothing more than a session. Cancelling stops a call before its first change; a call that is already
changing files is finished and recorded before the cancellation is raised.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from ringfence.toolkit.approvals.requests import Answer, Request
from ringfence.toolkit.call import Result, ToolCall
from ringfence.toolkit.progress import Progress, ReportStep

if TYPE_CHECKING:
    from ringfence.toolkit.session.call_handler import Approver
    from ringfence.toolkit.session.session import Session

T = TypeVar("T")


class AsyncSession:
    """`Session` with awaitable methods and the same parameters; opened and closed by `async with`.

    An approver is called in the session's thread, so it may block without blocking the event loop.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._arguments = arguments
        self._options = options
        # One thread: SQLite's connection stays in its thread, and calls stay in order.
        self._thread = ThreadPoolExecutor(1, "ringfence")
        self._session: Session | None = None
        self._off = threading.Event()  # set once the running call is cancelled
        if options.get("approver") is not None:
            self._options["approver"] = self._asking(options["approver"])

    def _asking(self, approver: Approver) -> Approver:
        """Return the approver; a grant that comes after the call was cancelled does not count."""

        def ask(request: Request) -> Answer | None:
            answer = approver(request)
            return Answer(False, reason="called off meanwhile") if self._off.is_set() else answer

        return ask

    async def __aenter__(self) -> AsyncSession:
        from ringfence.toolkit.session.session import Session

        self._session = await self._run(lambda: Session(*self._arguments, **self._options))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._run(self.session.close)
        finally:
            self._thread.shutdown(wait=True)

    @property
    def session(self) -> Session:
        """The session itself, for reading (`policy`, `approvals`). Raises RuntimeError before it is open."""
        if self._session is None:
            raise RuntimeError("use it with `async with`")
        return self._session

    async def call(
        self, call: ToolCall | dict[str, Any] | str | bytes, progress: ReportStep | None = None
    ) -> Result:
        """Answer one call. A cancelled call ends once the session's state is consistent."""
        off = threading.Event()

        def run() -> Result | None:
            self._off = off
            return None if off.is_set() else self.session.call(call, Progress(progress, off.is_set))

        result = await self._run(run, off)
        assert result is not None, "only a call that was called off is not made"
        return result

    async def undo(self, call: str, **options: Any) -> Result:
        """Take back what one call changed, as `Session.undo` does."""
        return await self._run(lambda: self.session.undo(call, **options))

    async def restore(self, path: str, version: str, **options: Any) -> Result:
        """Bring one file back to a version, as `Session.restore` does."""
        return await self._run(lambda: self.session.restore(path, version, **options))

    async def _run(self, work: Callable[[], T], off: threading.Event | None = None) -> T:
        future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        cancelled: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.shield(asyncio.wait([future]))
            except asyncio.CancelledError as error:
                # The thread cannot be stopped; its result has to be known before the caller continues.
                cancelled = error
                if off is not None:
                    off.set()
        if cancelled is not None:
            future.exception()
            raise cancelled
        return future.result()
