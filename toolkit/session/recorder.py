"""Recorder of a session: writes each call's record, then tells subscribers and updates the audit's copy.

Gives no answer without its record: if the record cannot be written, the answer is that error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ringfence.toolkit.call import Result, failed
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.outcome import Outcome
from ringfence.toolkit.history.records import DONE, PENDING, UNKNOWN
from ringfence.toolkit.plan.impact import usage
from ringfence.toolkit.session import responses
from ringfence.toolkit.session.attempt import Attempt, Context

if TYPE_CHECKING:
    from ringfence.toolkit.audit.jsonl_mirror import JsonlMirror
    from ringfence.toolkit.history.subscriptions import Subscriber, Subscription


class Recorder:
    """Records the calls of one session. `mirror` is the file with the audit's copy, if there is one."""

    def __init__(self, context: Context) -> None:
        self.mirror: JsonlMirror | None = None
        self._history = context.history
        self._state = context.state
        self._session = context.session
        self._subscriptions: list[Subscription] = []

    def copy_audit_to(self, path: str, rotate: str | None) -> None:
        """Copy every audit record to a file from now on. Raises CallError for a file that cannot be used."""
        from ringfence.toolkit.audit.jsonl_mirror import JsonlMirror, Rotation

        self.mirror = JsonlMirror(path, self._state, None if rotate is None else Rotation.of(rotate))

    def subscribe(self, subscriber: Subscriber) -> Subscription:
        """Call `subscriber`, in a thread of its own, for every path that is changed from now on."""
        from ringfence.toolkit.history.subscriptions import Subscription

        subscription = Subscription(subscriber)
        self._subscriptions.append(subscription)
        return subscription

    def close(self) -> None:
        """Update and close the audit's copy, and end the subscriptions."""
        if self.mirror is not None:
            self._copy_audit()
            self.mirror.close()
            self.mirror = None
        for subscription in self._subscriptions:
            subscription.close()

    def record(self, attempt: Attempt, result: Result) -> Result:
        """Record a call and return its result, or an error without any other data if that is impossible."""
        result = self._record(attempt, result)
        self._copy_audit()
        return result

    def _record(self, attempt: Attempt, result: Result) -> Result:
        result.data["call_id"] = attempt.name  # made for this call alone
        record = responses.record(attempt, result)
        seen = self._by_session(attempt.seen if result.ok else {})
        outcome = attempt.outcome
        try:
            if outcome is None:
                self._history.note(seen, record)
            else:
                if attempt.tool is not None:  # the session's agent has not seen a person's own act
                    seen |= self._by_session(outcome.seen)
                incomplete = set(outcome.stands.values()) != {DONE}
                # A change of unknown outcome counts against limits as if it was made.
                done = usage(attempt.stands(PENDING, UNKNOWN)) if incomplete else None
                self._history.finish(outcome.op, outcome.states, seen, record, done)
        except CallError as error:
            if outcome is None:
                # A call without a record gets no answer but the error.
                return replace(failed(attempt.call.id, error), data={"call_id": attempt.name})
            if outcome.logged and not result.ok:
                message = "The change failed, which could not be recorded: a power cut now may bring it about"
                unknown = CallError("outcome_unknown", message)
                result = replace(failed(attempt.call.id, unknown), data=result.data)
        if outcome is not None:
            self._notify(outcome)
        return result

    def _by_session(self, seen: dict[str, str]) -> dict[tuple[str, str], str]:
        return {(self._session, path): digest for path, digest in seen.items()}

    def _notify(self, outcome: Outcome) -> None:
        if not self._subscriptions:
            return
        try:
            items = list(self._history.items("op.id = ?", (outcome.op,)))
        except CallError:
            return  # the changes are made and recorded, whether or not subscribers learn of them
        from ringfence.toolkit.history.subscriptions import events

        for event in events(items, outcome.stands):
            for subscription in self._subscriptions:
                subscription.put(event)

    def _copy_audit(self) -> None:
        if self.mirror is not None:
            try:
                self.mirror.catch_up()
            except CallError as error:
                import logging  # slow to import, and seldom needed

                # The record is in the state; the next call copies what is missing.
                logging.getLogger("ringfence").warning("%s", error)
