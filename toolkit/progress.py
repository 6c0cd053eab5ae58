"""Progress of a call: reports steps to the caller, and whether the caller has cancelled.

A call can be cancelled only before its first change; after that it is finished.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ringfence.toolkit.errors import CallError

# Receives the name of the current work, the number of completed steps, and their total (None: unknown).
ReportStep = Callable[[str, int, int | None], None]
# Receives a piece of a command's output: 1 for standard output or 2 for standard error, and the bytes.
Output = Callable[[int, bytes], None]


class Progress:
    """One call's progress. `report` is called for each step; `cancelled` returns whether the caller has given
    up, and `message` is that of the error then.

    `output` receives what a command writes, as soon as the command writes it. `terminal`: a command runs on
    this process's own terminal, for a person. `stdin` is a descriptor that a command reads instead of the
    call's text.
    """

    __slots__ = (
        "_cancelled",
        "_done",
        "_lock",
        "_message",
        "_report",
        "_total",
        "output",
        "stdin",
        "terminal",
    )

    def __init__(  # noqa: PLR0913  the parts of a progress, most by keyword
        self,
        report: ReportStep | None = None,
        cancelled: Callable[[], bool] | None = None,
        message: str = "Cancelled before anything was changed",
        *,
        output: Output | None = None,
        terminal: bool = False,
        stdin: int | None = None,
    ) -> None:
        self._report = report
        self._cancelled = cancelled
        self._message = message
        self._done = 0
        self._total: int | None = None
        self._lock = threading.Lock()
        self.output = output
        self.terminal = terminal
        self.stdin = stdin

    @classmethod
    def of(cls, given: Progress | ReportStep | None) -> Progress:
        """Return the Progress for an argument: a Progress, a function to call for each step, or None."""
        return given if isinstance(given, Progress) else cls(given)

    def silent(self) -> Progress:
        """Return the same progress without the output of commands."""
        return Progress(
            self._report, self._cancelled, self._message, terminal=self.terminal, stdin=self.stdin
        )

    def start(self, total: int | None) -> None:
        """Restart the count, with `total` steps if known."""
        self._done, self._total = 0, total

    def step(self, what: str, by: int = 1) -> None:
        """Count `by` more steps of the work `what` as done, never more than the total, and report them."""
        if self._report is None or not by:
            return
        with self._lock:  # parts of a call may run in parallel
            done = self._done + by
            self._done = done if self._total is None else min(done, self._total)
            self._report(what, self._done, self._total)

    def check(self) -> None:
        """Raise CallError `cancelled` if the caller has given up. Only called while nothing is changed."""
        if self._cancelled is not None and self._cancelled():
            raise CallError("cancelled", self._message)
