"""Spans and moments as a person writes them: `2h`, `7d`, or an RFC 3339 time."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ringfence.toolkit.text import rfc3339

_RFC3339 = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds(text: str, units: str = "smhd") -> int | None:
    """How long `30m`, `2h` or `7d` is; None for anything else."""
    found = re.fullmatch(rf"([0-9]{{1,6}})([{units}])", text)
    return None if found is None else int(found[1]) * _SECONDS[found[2]]


def moment(text: str) -> float | None:
    """POSIX seconds of a time as RFC 3339 writes it, with its zone; None for anything else.

    A time that could not be told again is None too: before the year 1 or after 9999 in UTC, a leap second.
    """
    found = _RFC3339.fullmatch(text)
    return None if found is None else _told(text.upper())


def instant(text: str) -> float | None:
    """The same for a person, who may leave out the zone, or give a date: this host's then."""
    return _told(text)


def _told(text: str) -> float | None:
    try:
        found = datetime.fromisoformat(text).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return None
    return None if rfc3339(found) is None else found


def ahead(text: str, now: float) -> float | None:
    """POSIX seconds of a span from `now` or of a time; None for anything else."""
    span = seconds(text)
    return instant(text) if span is None else now + span
