"""Durations and times as a person writes them: `2h`, `7d`, or an RFC 3339 time."""

from __future__ import annotations

import re

from ringfence.toolkit.text import rfc3339

_RFC3339 = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?"
    r"(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds(text: str, units: str = "smhd") -> int | None:
    """Return the seconds of `30m`, `2h` or `7d`; None for anything else."""
    found = re.fullmatch(rf"([0-9]{{1,6}})([{units}])", text)
    return None if found is None else int(found[1]) * _SECONDS[found[2]]


def moment(text: str) -> float | None:
    """Return the POSIX seconds of an RFC 3339 time with its zone; None for anything else.

    Also None for a time that could not be printed again: before the year 1 or after 9999 in UTC, or a leap
    second.
    """
    found = re.fullmatch(_RFC3339, text)
    return None if found is None else _posix_seconds(text.upper())


def instant(text: str) -> float | None:
    """Return the same for a person's input, which may be a date or lack the zone; then this host's zone
    counts.
    """
    return _posix_seconds(text)


def _posix_seconds(text: str) -> float | None:
    try:
        from datetime import UTC, datetime

        found = datetime.fromisoformat(text).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return None
    return None if rfc3339(found) is None else found


def ahead(text: str, now: float) -> float | None:
    """Return the POSIX seconds of a duration from `now`, or of a time; None for anything else."""
    span = seconds(text)
    return instant(text) if span is None else now + span
