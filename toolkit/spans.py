"""Spans and moments as a person writes them: `2h`, `7d`, or an RFC 3339 time."""

from __future__ import annotations

import re
from datetime import datetime

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def seconds(text: str, units: str = "smhd") -> int | None:
    """How long `30m`, `2h` or `7d` is; None for anything else."""
    found = re.fullmatch(rf"([0-9]{{1,6}})([{units}])", text)
    return None if found is None else int(found[1]) * _SECONDS[found[2]]


def instant(text: str) -> float | None:
    """POSIX seconds of an RFC 3339 time; None for anything else."""
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError):
        return None


def ahead(text: str, now: float) -> float | None:
    """POSIX seconds of a span from `now` or of a time; None for anything else."""
    span = seconds(text)
    return instant(text) if span is None else now + span
