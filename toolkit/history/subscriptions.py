"""Subscriptions: subscribers are notified of changes after they are made and recorded.

Each has its own thread and bounded queue: a slow or failing subscriber misses events and delays no call.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ringfence.toolkit.history.records import DONE, ItemRow

CREATED, UPDATED, DELETED, RESTORED = "created", "updated", "deleted", "restored"
_WAITING = 10_000


@dataclass(frozen=True, slots=True)
class Event:
    """One path's change, done and recorded; `call` is Ringfence's id of the call."""

    kind: str
    path: str
    session: str
    agent: str
    call: str
    tool: str


Subscriber = Callable[[Event], object]


class Subscription:
    """One subscriber; `missed` counts events that did not fit into the queue or made the subscriber fail."""

    def __init__(self, subscriber: Subscriber) -> None:
        self.missed = 0
        self._closed = False
        self._subscriber = subscriber
        self._waiting: queue.Queue[Event | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, daemon=True, name="ringfence-events")
        self._thread.start()

    def put(self, event: Event) -> None:
        """Queue an event for the subscriber; count it in `missed` if the queue is full. Never blocks."""
        if self._closed:
            return
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            self.missed += 1

    def close(self, wait: float = 1.0) -> None:
        """Deliver queued events for at most `wait` seconds, and end."""
        self._closed = True
        try:
            self._waiting.put(None, timeout=wait)
        except queue.Full:
            return
        self._thread.join(wait)

    def _run(self) -> None:
        while (event := self._waiting.get()) is not None:
            try:
                self._subscriber(event)
            except BaseException:  # noqa: BLE001  a subscriber must not end the thread, not even with SystemExit
                self.missed += 1


def events(items: Iterable[ItemRow], states: Mapping[int, str]) -> list[Event]:
    """Return the events of an operation's items by their outcomes (`states` by number).

    A move is an event at each end.
    """
    found = []
    for item in items:
        if states.get(item.n) != DONE:
            continue
        after = UPDATED if item.before is not None or item.lost else CREATED
        if item.tool in ("undo", "restore"):
            after = RESTORED
        if item.kind in ("delete", "move"):
            found.append(_event(DELETED, item.path, item))
        if item.kind != "delete":
            found.append(_event(after, item.path2 or item.path, item))
    return found


def _event(kind: str, path: str, item: ItemRow) -> Event:
    return Event(kind, path, item.session, item.agent, item.call, item.tool)
