"""Text for people: sizes, times, names, diffs. Pure: makes text from values.

Must never pass on a character that hides, reorders or forges what a reader sees.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from math import floor
from typing import TYPE_CHECKING, Any

from ringfence.policy.invisible_characters import INVISIBLE, written_out

if TYPE_CHECKING:
    from ringfence.toolkit.file_text import FileText

QUOTED = 400  # characters of a foreign text that are displayed
_UNITS = ("KB", "MB", "GB", "TB", "PB", "EB")
_CONTEXT = 3
_SHORT_LINES, _SHORT_LINE, _SHORT_BYTES = 40, 200, 4096  # lines, characters of one, bytes of a short diff
# Comparing n lines with m others costs up to n * m; beyond this the middle counts as replaced whole.
_COMPARED = 1_000_000


def size(n: int | None) -> str:
    """Return a size such as `512 B`, `2.3 KB` or `unknown`: 1024-based, one decimal."""
    if n is None:
        return "unknown"
    if n < 1024:
        return f"{n} B"
    value = float(n)
    for unit in _UNITS:
        value /= 1024
        # 1023.95 would round to "1024.0 KB".
        if value < 1023.95 or unit == _UNITS[-1]:
            return f"{value:.1f} {unit}"
    raise AssertionError("unreachable")


def when(t: float | None) -> str:
    """Return a time in this host's zone, as `2026-01-15 14:23:45`; `unknown` for None."""
    try:
        return "unknown" if t is None else _local(floor(t))
    except (ValueError, OverflowError, OSError):
        return "unknown"


def zoned(t: float | None) -> str:
    """Return a time in this host's zone, with the zone, as `2026-01-15 14:23:45 UTC+01:00`."""
    from datetime import datetime  # few answers have a time

    try:
        found = "unknown" if t is None else datetime.fromtimestamp(floor(t)).astimezone().isoformat(" ")
    except (ValueError, OverflowError, OSError):
        return "unknown"
    return f"{found[:19]} UTC{found[19:]}" if t is not None else found


def age(seconds: float) -> str:
    """Return a span that has passed, in its largest unit: `42 s`, `12 min`, `3 h`, `2 days`."""
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    return f"{whole // 3600} h" if whole < 86_400 else plural(whole // 86_400, "day")


def rfc3339(t: float | None) -> str | None:
    """Return a time for programs: RFC 3339 in UTC with milliseconds; None if it cannot be written."""
    if t is None:
        return None
    try:
        second = floor(t)
        millis = round((t - second) * 1e6) // 1000
        # Just below a whole second, rounding to microseconds gives the next second.
        return f"{_second(second)}.{millis:03d}Z" if millis < 1000 else f"{_second(second + 1)}.000Z"
    except (ValueError, OverflowError, OSError):
        return None


# The files of a directory tend to have few different times.
@functools.lru_cache(maxsize=1024)
def _local(t: int) -> str:
    from datetime import datetime

    return datetime.fromtimestamp(t).isoformat(" ")


@functools.lru_cache(maxsize=1024)
def _second(t: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(t, UTC).isoformat().removesuffix("+00:00")


def plural(n: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: `1 file`, `1,200 files`."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def escape(s: str, newlines: bool = False) -> str:
    r"""Return `s` with every character that hides or moves text written as `\xNN`, `\uNNNN` or `\UNNNNNNNN`.

    With `newlines`, line feeds and tabs stay, for text of several lines.
    """
    if s.isascii() and s.isprintable():
        return s
    return re.sub(
        INVISIBLE, lambda found: found[0] if newlines and found[0] in "\n\t" else written_out(found[0]), s
    )


def escaped(names: list[str]) -> list[str]:
    """Return each of these names as `escape` does; most have nothing to escape in any of them."""
    every = "".join(names)
    return names if every.isascii() and every.isprintable() else [escape(name) for name in names]


def quoted(words: str) -> str:
    """Return a foreign text in one line: escaped, in quotation marks, and cut to a length."""
    shown = escape(words)
    if len(shown) <= QUOTED:
        return f'"{shown}"'
    return f'"{shown[:QUOTED]}…" ({len(words):,} characters)'


def is_binary(data: bytes) -> bool:
    """Whether `data` is binary, not lines: it contains a NUL."""
    return b"\0" in data


def count_lines(data: bytes) -> int:
    """Return the number of lines; a last one without a line feed counts, too."""
    return data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))


def split_lines(data: bytes) -> list[bytes]:
    """Return the lines with their ends, split at line feeds only: every byte is in exactly one of them."""
    pieces = data.split(b"\n")
    lines = [piece + b"\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def decode(data: bytes) -> str:
    r"""Return bytes as text for reading; bytes that are not UTF-8 become `\xNN`."""
    return data.decode("utf-8", "backslashreplace")


def diff(path: str, before: bytes | None, after: bytes | None) -> str:
    """Return a complete unified diff, one line about it if a side is binary, or "" if nothing differs.

    None is a missing file. UTF-16 and UTF-32 are compared as text. Control characters stay; the interface
    escapes them.
    """
    if before == after:
        return ""
    old, new = _text(before), _text(after)
    shown = escape(path)
    if is_binary(old.data) or is_binary(new.data):
        return _binary(shown, before, after)
    head = [
        "--- " + ("/dev/null" if before is None else f"a/{shown}"),
        "+++ " + ("/dev/null" if after is None else f"b/{shown}"),
    ]
    if old.codec != new.codec and before and after:
        head.insert(0, f"Encoding {shown} {old.encoding} -> {new.encoding}")
    body = [line for group in _groups(split_lines(old.data), split_lines(new.data)) for line in group]
    return "\n".join([*head, *body]) + "\n"


def short_diff(whole: str) -> str:
    """Return the beginning of a diff without the names of its files, for an answer; "" if it has no lines.

    What is left out is counted in a last line. Carriage returns are shown only where some lines lack them.
    """
    start = whole.find("\n@@ ") + 1
    if not start:
        return ""
    lines, kept, left = whole[start:].removesuffix("\n").split("\n"), [], _SHORT_BYTES
    if all(line.endswith("\r") or line[0] in "@\\" for line in lines):
        lines = [line.removesuffix("\r") for line in lines]
    for line in lines[:_SHORT_LINES]:
        shown = line if len(line) <= _SHORT_LINE else f"{line[:_SHORT_LINE]}…"
        left -= len(shown.encode("utf-8", "surrogateescape")) + 1
        if left < 0:
            break
        kept.append(shown)
    if more := len(lines) - len(kept):
        kept.append(f"[{plural(more, 'more line')} of the diff not shown]")
    return "\n".join(kept)


def count_changed(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """Return how many lines `diff` has as added and as removed; (0, 0) if a side is binary."""
    old, new = _text(before).data, _text(after).data
    if is_binary(old) or is_binary(new):
        return 0, 0
    found = list(_changes(split_lines(old), split_lines(new)))
    return sum(j2 - j1 for _, _, j1, j2 in found), sum(i2 - i1 for i1, i2, _, _ in found)


def _text(data: bytes | None) -> FileText:
    from ringfence.toolkit.file_text import file_text  # only what shows changes needs it

    return file_text(data or b"")


def _binary(shown: str, before: bytes | None, after: bytes | None) -> str:
    if before is None or after is None:
        return f"Binary file {shown}, {len(before or after or b''):,} bytes\n"
    return f"Binary file {shown}, {len(before):,} bytes before, {len(after):,} bytes after\n"


_Change = tuple[int, int, int, int]


def _groups(old: list[bytes], new: list[bytes]) -> Iterator[Iterator[str]]:
    """Yield the hunks; changes that are closer than twice the context share one."""
    hunk: list[_Change] = []
    for change in _changes(old, new):
        if hunk and change[0] - hunk[-1][1] > 2 * _CONTEXT:
            yield _hunk(old, new, hunk)
            hunk = []
        hunk.append(change)
    if hunk:
        yield _hunk(old, new, hunk)


def _changes(old: list[bytes], new: list[bytes]) -> Iterator[_Change]:
    """Yield each differing range as (from, to) in `old` and (from, to) in `new`."""
    start = 0
    shorter = min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    a, b = old[start : len(old) - end], new[start : len(new) - end]
    if not (a or b):
        return
    # If a side has nothing left, or both have one line, no search is needed.
    if not a or not b or len(a) == len(b) == 1 or len(a) * len(b) > _COMPARED:
        yield start, start + len(a), start, start + len(b)
        return
    from difflib import SequenceMatcher  # only what shows changes needs it

    for tag, i1, i2, j1, j2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            yield start + i1, start + i2, start + j1, start + j2


def _hunk(old: list[bytes], new: list[bytes], changes: list[_Change]) -> Iterator[str]:
    lead = min(_CONTEXT, changes[0][0])
    tail = min(_CONTEXT, len(old) - changes[-1][1])
    first_old, first_new = changes[0][0] - lead, changes[0][2] - lead
    last_old, last_new = changes[-1][1] + tail, changes[-1][3] + tail
    yield f"@@ -{_range(first_old, last_old)} +{_range(first_new, last_new)} @@"
    at = first_old
    for i1, i2, j1, j2 in changes:
        yield from _marked(" ", old[at:i1])
        yield from _marked("-", old[i1:i2])
        yield from _marked("+", new[j1:j2])
        at = i2
    yield from _marked(" ", old[at:last_old])


def _range(first: int, last: int) -> str:
    length = last - first
    if length == 1:
        return str(first + 1)
    return f"{first + 1 if length else first},{length}"


def _marked(mark: str, lines: list[bytes]) -> Iterator[str]:
    for line in lines:
        if line.endswith(b"\n"):
            yield mark + decode(line[:-1])
        else:
            yield mark + decode(line)
            yield "\\ No newline at end of file"


def because(decision: Mapping[str, Any] | None) -> str:
    """Return the rule or limit that asks, in one line."""
    if not decision:
        return "no rule decides"
    limit = decision.get("limit")
    if limit:
        return f"a limit: {decision.get('reason') or limit.get('key')}"
    rule = decision.get("rule")
    if not rule:
        return "no rule decides, so a person does"
    where = f"{rule['file']}:{rule['line']}" if rule.get("file") else "the policy"
    agent = f" of agent {rule['agent']}" if rule.get("agent") else ""
    reason = f" ({rule['reason']})" if rule.get("reason") else ""
    return f'{where}, {rule["tier"]} rule{agent}: {rule["key"]} "{rule["pattern"]}"{reason}'


MAX_DIFF = 1 << 20  # for larger content only the size is reported
