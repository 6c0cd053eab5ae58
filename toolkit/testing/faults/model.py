"""Faults as data: what goes wrong between a client library and a store, at which request, and the outcome.

A proxy asks its `Schedule` about each request and reports the true outcome. Sends no requests itself.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

# The effect of each kind. `before`: the store never gets the request; `after`: it has acted on it.
KINDS = {
    "drop before": "the connection ends; the request does not reach the store",
    "refuse before": "a reply with `status`; the request does not reach the store",
    "late": "the request reaches the store `seconds` later, even if the client no longer waits",
    "drop after": "the store acts; the connection ends before the first byte of its reply",
    "refuse after": "the store acts; its reply is replaced by one with `status`",
    "slow": "the store acts; its reply arrives `seconds` later",
    "cut": "the store acts; the connection ends after half of its reply",
    "stale": "a read gets the first reply to the same read; the request does not reach the store",
}
NOT_FORWARDED = frozenset({"drop before", "refuse before", "stale"})


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault at the `nth` matching request (from 1), and at `times` matching requests in a row.

    `methods` and `target` select requests: by method (all, if empty), and by a part of their target. With
    `down` nothing reaches the store afterwards, until the proxy is armed again or disarmed.
    """

    kind: str
    nth: int = 1
    times: int = 1
    status: int = 503
    seconds: float = 1.0
    methods: tuple[str, ...] = ()
    target: str = ""
    down: bool = False

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no fault is called {self.kind!r}; there are {', '.join(KINDS)}")
        if self.nth < 1 or self.times < 1:
            raise ValueError("requests are counted from 1")

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Fault:
        """Return the fault that a case describes. ValueError for an unknown key."""
        unknown = set(data) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"a fault has no {', '.join(sorted(unknown))}")
        return cls(**{**data, "methods": tuple(data.get("methods", ()))})

    def fits(self, method: str, target: str) -> bool:
        """Whether the fault applies to a request with this method and target."""
        return (not self.methods or method in self.methods) and self.target in target

    def __str__(self) -> str:
        shown = f"{self.kind} {self.status}" if self.kind.startswith("refuse") else self.kind
        times = f" x{self.times}" if self.times > 1 else ""
        return f"{shown}{times}{', then down' if self.down else ''}"


DOWN = Fault("drop before")  # the fault of every request while nothing reaches the store


@dataclass(frozen=True, slots=True)
class Seen:
    """One request and its outcome: the store's reply, and the reply that the client received.

    `answer` is the store's reply ("" if the request did not reach it). `received` is what the client got: a
    reply, "dropped", "half", or "gone" if the client did not wait. `acted`: the store did what was requested.
    """

    number: int
    method: str
    target: str
    fault: str
    answer: str
    acted: bool
    received: str

    @property
    def told(self) -> str:
        """Older name of `received`."""
        return self.received

    @property
    def reached(self) -> bool:
        """Whether the request reached the store."""
        return self.answer != ""


class Schedule:
    """Selects the requests that meet a fault, and collects outcomes; safe to use from many threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._fault: Fault | None = None
        self._fitting = 0
        self._number = 0
        self._open = 0
        self._down = False
        self._seen: list[Seen] = []

    def arm(self, fault: Fault | None) -> None:
        """Start again and count from here; None lets every request pass."""
        with self._changed:
            self._fault, self._fitting, self._number, self._down = fault, 0, 0, False
            self._seen = []

    def next(self, method: str, target: str) -> tuple[int, Fault | None]:
        """Return the number of a new request and its fault, or None. `end` has to follow."""
        with self._changed:
            self._open += 1
            self._number += 1
            if self._down:
                return self._number, DOWN
            fault = self._fault
            if fault is None or not fault.fits(method, target):
                return self._number, None
            self._fitting += 1
            if not fault.nth <= self._fitting < fault.nth + fault.times:
                return self._number, None
            self._down = fault.down and self._fitting == fault.nth + fault.times - 1
            return self._number, fault

    def end(self, seen: Seen) -> None:
        """Record the outcome of a request."""
        with self._changed:
            self._open -= 1
            self._seen.append(seen)
            self._changed.notify_all()

    def seen(self) -> tuple[Seen, ...]:
        """Return the finished requests since the proxy was armed, in the order of arrival."""
        with self._changed:
            return tuple(sorted(self._seen, key=lambda seen: seen.number))

    def wait(self, seconds: float) -> None:
        """Wait until no request is in progress, at most these seconds. TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._open == 0, seconds):
                raise TimeoutError(f"{self._open} requests did not end in {seconds} s")
