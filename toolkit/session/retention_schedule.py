"""Schedule of a session's retention: from time to time beside its calls, and once more when it closes.
Sweeps the scratches of commands then, too.

Imports the retention only when it is due. Never begins before the session's first call.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.retention import TURN
from ringfence.toolkit.session.left_scratches import sweep_scratches

if TYPE_CHECKING:
    from collections.abc import Callable

    from ringfence.policy import Policy
    from ringfence.toolkit.session.attempt import Context

OFTEN = 256  # retention may be due after so many operations of all processes, or calls of this one
SOON = 600.0  # seconds after which retention is due again
_POLL = 0.01  # seconds
_AT_EXIT = 0.5  # seconds by which retention may delay the end of a process


class RetentionSchedule:
    """Decides when a session's process carries out retention. Uses one thread, which pauses while a call
    runs.
    """

    def __init__(
        self, context: Context, policy: Callable[[], Policy | None], *, read_only: bool = False
    ) -> None:
        """`policy` returns the policy in force, or None if none loads; then nothing is deleted."""
        self._context = context
        self._read_only = read_only
        self._policy = policy
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._busy = False
        self._calls = 0
        self._since = 0
        self._checked_at = time.monotonic()

    def call_began(self) -> None:
        """Pause a running retention between two portions until the call is answered."""
        self._busy = True
        self._calls += 1

    def call_ended(self) -> None:
        """Begin retention in a thread if it may be due."""
        self._busy = False
        if self._calls - self._since < OFTEN and time.monotonic() - self._checked_at < SOON:
            return
        self._since, self._checked_at = self._calls, time.monotonic()
        if self._thread is None or not self._thread.is_alive():
            thread = threading.Thread(target=self._run, name="ringfence-retention", daemon=True)
            with suppress(RuntimeError):  # no thread is available; the next call tries again
                thread.start()
                self._thread = thread

    def close(self) -> None:
        """Stop a running retention between two portions; then carry out due work that takes little time."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()
        if self._calls:
            self._carry_out(time.monotonic() + _AT_EXIT)
        if not self._read_only:
            sweep_scratches(self._context)

    def _run(self) -> None:
        sweep_scratches(self._context)
        self._carry_out(None)

    def _carry_out(self, until: float | None) -> None:
        def go_on() -> bool:
            if until is not None:
                return time.monotonic() < until
            # Polled, because an event that each call clears and sets would cost all of them more. A call that
            # ended meanwhile was answered first, also if the next one has begun.
            calls = self._calls
            while self._busy and calls == self._calls and not self._closing.wait(_POLL):
                pass
            return not self._closing.is_set()

        try:
            policy = self._policy()
            if policy is not None and not self._context.dry_run and self._is_due():
                from ringfence.toolkit.session.automatic_retention import carry_out

                carry_out(self._context, policy, go_on)
        except CallError as error:
            import logging  # slow to import, and seldom needed

            logging.getLogger("ringfence").warning("retention was not carried out: %s", error)

    def _is_due(self) -> bool:
        state = self._context.state
        rows = state.rows(
            "SELECT coalesce(max(id), 0), (SELECT value FROM meta WHERE name = ?) FROM op", (TURN,)
        )
        last, value = int(rows[0][0]), rows[0][1]
        if value is None:  # no process had the turn yet: counted from the first change
            first = state.rows("SELECT started FROM op WHERE id = (SELECT min(id) FROM op)")
            value = f"|{first[0][0]}|0" if first else f"|{time.time()}|0"
        owner, when, op = str(value).split("|")
        soon = 0 <= time.time() - float(when) < SOON  # a clock that was set back makes it due
        return (last - int(op) >= OFTEN or not soon) and (not owner or state.dead(owner))
