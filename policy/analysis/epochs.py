"""Intervals between the ends of entries: since when and until when something is so, as text and as JSON.

Has no clock: times are arguments, in seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringfence.policy.evaluation.dates import date, rfc3339
from ringfence.policy.evaluation.engine import Engine


def from_now_on(policies: Sequence[Engine], now: float) -> tuple[float, ...]:
    """Return a time for each interval that is not over: now, and each later end of an entry."""
    ends = {end for policy in policies for end in policy.ends if end > now}
    return (now, *sorted(ends))


def intervals(times: Sequence[float], so: Sequence[bool]) -> Iterator[tuple[int, float | None, float | None]]:
    """Yield each run of neighbouring intervals in which something is so: its first index, start and end.

    The start is None for the first of all intervals, the end for the last.
    """
    at = 0
    while at < len(so):
        if not so[at]:
            at += 1
            continue
        first = at
        while at < len(so) and so[at]:
            at += 1
        yield first, times[first] if first else None, times[at] if at < len(so) else None


def period_of(since: float | None, until: float | None) -> str:
    """Return an interval as text after a statement; empty for all time."""
    if since is None and until is None:
        return ""
    start = f" from {text(since)} on" if since is not None else ""
    end = f" until {text(until)}" if until is not None else ""
    return f"{start}{end}"


def text(time: float) -> str:
    """Return a time as its date if it is midnight in UTC, else with the time."""
    return date(time) if time % 86_400 == 0 else rfc3339(time)


def end(time: float) -> str:
    """Return the end of an entry as text: of a whole day in UTC, as entries are written, that day."""
    return f"after {text(time - 86_400)}" if time % 86_400 == 0 else f"at {text(time)}"


def in_json(time: float | None) -> str | None:
    """Return a time as RFC 3339 in UTC, or None."""
    return None if time is None else rfc3339(time)
