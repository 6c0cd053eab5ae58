"""How far a call is, told to whoever waits for it, and whether anybody still waits.

A call is cancelled only before its first change: what has begun to change files is finished.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ringfence.toolkit.errors import CallError

# What is being done, how many steps of it are done, and of how many (None: not known).
Tell = Callable[[str, int, int | None], None]


class Progress:
    """One call's progress. `tell` is told of each step; `cancelled` says whether the caller has given up."""

    __slots__ = ("_cancelled", "_done", "_lock", "_tell", "_total", "_why")

    def __init__(
        self,
        tell: Tell | None = None,
        cancelled: Callable[[], bool] | None = None,
        why: str = "Cancelled before anything was changed",
    ) -> None:
        self._tell = tell
        self._cancelled = cancelled
        self._why = why
        self._done = 0
        self._total: int | None = None
        self._lock = threading.Lock()

    @classmethod
    def of(cls, given: Progress | Tell | None) -> Progress:
        """What a caller gave: a Progress, a function to tell, or nothing."""
        return given if isinstance(given, Progress) else cls(given)

    def start(self, total: int | None) -> None:
        """Begin to count anew, `total` steps where that is known."""
        self._done, self._total = 0, total

    def step(self, what: str, by: int = 1) -> None:
        """Note that `by` more steps are done, never more than there are."""
        if self._tell is None or not by:
            return
        with self._lock:  # parts of a call may be carried out side by side
            done = self._done + by
            self._done = done if self._total is None else min(done, self._total)
            self._tell(what, self._done, self._total)

    def check(self) -> None:
        """Raise CallError `cancelled` once the caller has given up; asked only while nothing is changed."""
        if self._cancelled is not None and self._cancelled():
            raise CallError("cancelled", self._why)
