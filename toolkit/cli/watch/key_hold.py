"""Hold on keys: what has just appeared on the screen takes no answer until it was there for a while."""

from __future__ import annotations

from collections.abc import Callable

TOO_EARLY = "This has just appeared: read it, then press again."


class KeyHold:
    """A hold of some seconds by a clock. A key that comes too early begins it anew, so no key that is held
    down, and none that is pressed again and again, ever answers.
    """

    def __init__(self, clock: Callable[[], float], seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._since = clock()

    def begin(self) -> None:
        """Begin the hold: something else is on the screen."""
        self._since = self._clock()

    def is_over(self) -> bool:
        """Whether a key counts now."""
        now = self._clock()
        over = now - self._since >= self._seconds
        if not over:
            self._since = now
        return over
