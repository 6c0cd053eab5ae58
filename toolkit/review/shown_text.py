"""Text of the pages as markup: invisible characters in boxes, paths and commands that break well, times.

Everything here escapes HTML; a value that does not pass through it is escaped by the templates.
"""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta

from markupsafe import Markup, escape

from ringfence.policy.invisible_characters import INVISIBLE
from ringfence.toolkit.text import rfc3339

# Control characters that are known by a name; the rest is shown by number.
_CONTROLS = {
    "\0": "NUL", "\a": "BEL", "\b": "BS", "\t": "TAB", "\n": "LF", "\r": "CR", "\x1b": "ESC", "\x7f": "DEL",
}  # fmt: skip
_PATH_ENDS = re.compile(r"(?<=/)(?=.)", re.DOTALL)


def boxed(text: str, lines: bool = False) -> Markup:
    """Return text with each invisible or reordering character as `U+202E` in a box.

    With `lines`, line feeds and tabs stay.
    """
    found, at = [], 0
    for each in re.finditer(INVISIBLE, text):
        if lines and each[0] in "\n\t":
            continue
        found += [escape(text[at : each.start()]), _box(each[0])]
        at = each.end()
    return Markup("").join([*found, escape(text[at:])])


def _box(character: str) -> Markup:
    number = ord(character)
    name = _CONTROLS.get(character, f"U+{number:04X}")
    if 0xDC80 <= number <= 0xDCFF:
        name = f"byte {number - 0xDC00:02X}"  # a byte of a name that is not UTF-8
    return Markup('<span class="esc">{}</span>').format(name)


def path(text: str, directory: bool = False) -> Markup:
    """Return a path that breaks after its slashes only, unless one of its names is wider than the page."""
    whole = text + "/" if directory and not text.endswith("/") else text
    parts = Markup("<wbr>").join(map(boxed, _PATH_ENDS.split(whole)))
    return Markup('<span class="path">{}</span>').format(parts)


def command(text: str) -> Markup:
    """Return a command that breaks between its words only."""
    found = [Markup('<span class="w">{}</span>').format(boxed(word)) for word in text.split(" ")]
    return Markup('<code class="cmd">{}</code>').format(Markup(" ").join(found))


def age(seconds: float) -> str:
    """Return a span as people say it: `20 s`, `42 min`, `3 h`, `2 days`."""
    seconds = max(seconds, 0)
    if seconds < 60:
        return f"{int(seconds)} s"
    if seconds < 3600:
        return f"{int(seconds // 60)} min"
    if seconds < 48 * 3600:
        return f"{int(seconds // 3600)} h"
    return f"{int(seconds // 86400)} days"


def since(moment: float | None, now: float | None = None) -> str:
    """Return the age of a time in POSIX seconds: `42 min`."""
    return "unknown" if moment is None else age((time.time() if now is None else now) - moment)


def clock(moment: float | None, seconds: bool = False) -> str:
    """Return a time of today as `15:45`, and another with its date, in the server's zone."""
    found = _local(moment)
    if found is None:
        return "unknown"
    text = f"{found:%H:%M:%S}" if seconds else f"{found:%H:%M}"
    return text if found.date() == datetime.now().date() else f"{day(moment)}, {text}"


def second(moment: float | None) -> str:
    """Return a time of day as `15:45:19`, for where the date is written beside it."""
    found = _local(moment)
    return "unknown" if found is None else f"{found:%H:%M:%S}"


def day(moment: float | None) -> str:
    """Return a date as `28 Nov 2026`; the year is left out if it is this one."""
    found = _local(moment)
    if found is None:
        return "unknown"
    year = "" if found.year == datetime.now().year else f" {found.year}"
    return f"{found.day} {found:%b}{year}"


def full(moment: float | None) -> str:
    """Return a time as `28 Nov 2026, 15:45:19`."""
    found = _local(moment)
    return "unknown" if found is None else f"{found.day} {found:%b %Y, %H:%M:%S}"


def at(moment: float | None, words: str | None = None) -> Markup:
    """Return a time element; its words are the clock time unless others are given."""
    if _local(moment) is None:
        return Markup(escape(words or "unknown"))
    text = clock(moment) if words is None else words
    return Markup('<time datetime="{}" title="{}">{}</time>').format(rfc3339(moment), full(moment), text)


def zone() -> str:
    """Return the server's time zone: `CET, UTC+1`."""
    now = datetime.now().astimezone()
    offset = now.utcoffset() or timedelta(0)
    hours, minutes = divmod(abs(int(offset.total_seconds())) // 60, 60)
    if not offset:
        return "UTC"
    sign = "+" if offset > timedelta(0) else "−"
    number = f"UTC{sign}{hours}" + (f":{minutes:02}" if minutes else "")
    name = now.tzname() or ""
    return f"{name}, {number}" if name[:1].isalpha() else number


def _local(moment: float | None) -> datetime | None:
    if moment is None or rfc3339(moment) is None:
        return None
    try:
        return datetime.fromtimestamp(moment)
    except (ValueError, OverflowError, OSError):
        return None
