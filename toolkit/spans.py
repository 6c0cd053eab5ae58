"""Moments as a person writes them: `2h` from now, or an RFC 3339 time."""

from __future__ import annotations

import re
from datetime import datetime

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def ahead(text: str, now: float) -> float | None:
    """POSIX seconds of `30m`, `2h`, `7d` from `now` or of an RFC 3339 time; None for anything else."""
    span = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if span:
        return now + int(span[1]) * _UNITS[span[2]]
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError):
        return None
