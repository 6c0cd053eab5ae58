"""Hold on keys: what has just appeared on the screen takes no answer until it was there for a while."""

from __future__ import annotations

from collections.abc import Callable

TOO_EARLY = "This has just appeared: read it, then press again."


class KeyHold:
    """A time, in seconds by a clock, in which no key answers a request.

    A key within that time starts the time again, so neither a held key nor a repeated one ever answers.
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
