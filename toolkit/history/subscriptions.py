"""Tells subscribers what was changed, after the fact.

Each has a thread and a bounded queue of its own: one that is slow or fails misses events and hurts no call.
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
    """One subscriber; `missed` counts what did not fit into its queue or made it fail."""

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
        """Deliver what waits, for at most `wait` seconds, and end."""
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
            except BaseException:  # noqa: BLE001  one that wants to end the program ends nothing here either
                self.missed += 1


def events(items: Iterable[ItemRow], states: Mapping[int, str]) -> list[Event]:
    """What subscribers are told of an operation's items, by what became of each (`states` by number).

    A move is gone at one end and there at the other.
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
