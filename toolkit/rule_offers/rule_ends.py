"""Ends of rules from answers: the words that a person chooses from, and the time that each means.

Pure.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from ringfence.toolkit.durations import ahead

TODAY, WEEK, NEVER = "today", "week", "never"
ENDS = {WEEK: "in a week", TODAY: "at the end of today", NEVER: "without an end"}


def rule_end(text: str | None, now: float) -> int | None:
    """Return when a rule ends, in POSIX seconds (None: never), by a word of ENDS, a duration or a time.

    Raises ValueError, with the reason, for anything else and for a time that has passed.
    """
    if text == NEVER:
        return None
    if text in (None, WEEK):
        found: float | None = now + 7 * 86_400
    elif text == TODAY:
        tomorrow = datetime.fromtimestamp(now).astimezone() + timedelta(days=1)
        found = tomorrow.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    else:
        found = ahead(str(text), now)
    if found is None:
        raise ValueError(f"none of {', '.join(ENDS)}, no duration such as 2h, no RFC 3339 time")
    if found <= now:
        raise ValueError("the rule would end before it begins")
    return -int(-found // 60) * 60
