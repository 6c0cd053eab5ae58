"""Times in seconds since 1970 as text in UTC; has no clock."""

from __future__ import annotations

_DAY = 86_400
_FROM_MARCH_OF_YEAR_0 = 719_468  # days to 1970
_ERA = 146_097  # days of 400 years


def rfc3339(time: float) -> str:
    """Return a time as RFC 3339 in UTC, in whole seconds."""
    second = int(time // 1) % _DAY
    return f"{date(time)}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"


def date(time: float) -> str:
    """Return the date of a time in UTC, by counting years from March on (Hinnant's `civil_from_days`)."""
    era, day = divmod(int(time // _DAY) + _FROM_MARCH_OF_YEAR_0, _ERA)
    year = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153  # 0 is March
    year += 400 * era + (month >= 10)
    return f"{year:04}-{month + 3 if month < 10 else month - 9:02}-{day - (153 * month + 2) // 5 + 1:02}"
