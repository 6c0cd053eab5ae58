"""Faults as data: what goes wrong between a client library and a store, at which request, and what was seen.

A proxy asks its `Schedule` about each request and reports what really happened. Makes no requests itself.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

# What each kind does. `before`: the store never sees the request; `after`: the store has acted on it.
KINDS = {
    "drop before": "the connection ends; the request does not reach the store",
    "refuse before": "an answer `status`; the request does not reach the store",
    "late": "the request reaches the store `seconds` later, whether or not the client still waits",
    "drop after": "the store acts; the connection ends before the first byte of its reply",
    "refuse after": "the store acts; its reply is replaced by an answer `status`",
    "slow": "the store acts; its reply comes `seconds` later",
    "cut": "the store acts; the connection ends after half of its reply",
    "stale": "a look is answered with the first answer that the same look had; the store is not asked",
}
UNASKED = frozenset({"drop before", "refuse before", "stale"})


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong at the `nth` request (from 1) that fits, and at `times` requests in a row.

    `methods` and `target` choose the requests that fit: by method (all, if empty), and by a part of their
    target. With `down` nothing reaches the store afterwards, until the proxy is armed anew or disarmed.
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
        """A fault as a case writes it. Raises ValueError for a key that there is not."""
        unknown = set(data) - {field.name for field in fields(cls)}
        if unknown:
            raise ValueError(f"a fault has no {', '.join(sorted(unknown))}")
        return cls(**{**data, "methods": tuple(data.get("methods", ()))})

    def fits(self, method: str, target: str) -> bool:
        return (not self.methods or method in self.methods) and self.target in target

    def __str__(self) -> str:
        shown = f"{self.kind} {self.status}" if self.kind.startswith("refuse") else self.kind
        times = f" x{self.times}" if self.times > 1 else ""
        return f"{shown}{times}{', then down' if self.down else ''}"


DOWN = Fault("drop before")  # what a request meets while nothing reaches the store


@dataclass(frozen=True, slots=True)
class Seen:
    """One request and its end: what the store did, and what the client was told.

    `answer` is the store's own answer ("" where it was not asked), `told` the client's: an answer, "dropped",
    "half", or "gone" where the client did not wait. `acted` says that the store did what was asked.
    """

    number: int
    method: str
    target: str
    fault: str
    answer: str
    acted: bool
    told: str

    @property
    def reached(self) -> bool:
        return self.answer != ""


class Schedule:
    """Which request meets a fault, and what was seen; used by many threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._fault: Fault | None = None
        self._fitting = 0
        self._number = 0
        self._open = 0
        self._down = False
        self._seen: list[Seen] = []

    def arm(self, fault: Fault | None) -> None:
        """Begin anew, counting from here; None lets everything pass."""
        with self._changed:
            self._fault, self._fitting, self._number, self._down = fault, 0, 0, False
            self._seen = []

    def next(self, method: str, target: str) -> tuple[int, Fault | None]:
        """The number of a request that has come, and what it meets. `end` has to follow."""
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
        with self._changed:
            self._open -= 1
            self._seen.append(seen)
            self._changed.notify_all()

    def seen(self) -> tuple[Seen, ...]:
        """The requests that have ended since the proxy was armed, in the order in which they came."""
        with self._changed:
            return tuple(sorted(self._seen, key=lambda seen: seen.number))

    def wait(self, seconds: float) -> None:
        """Until no request is under way. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._open == 0, seconds):
                raise TimeoutError(f"{self._open} requests did not end in {seconds} s")
