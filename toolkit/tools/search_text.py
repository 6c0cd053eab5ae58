"""search_text: find lines of text files that contain a string or match a regular expression.

Bounded in time, in files and in output; the answer reports a bound that was reached.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ringfence.policy.detection.linear_regex import Matcher, PatternError
from ringfence.policy.model import Amount
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Entry, Place, Plan
from ringfence.toolkit.text import decode, escape, is_binary, plural, size, split_lines
from ringfence.toolkit.tools import _messages, preconditions
from ringfence.toolkit.tools._entry_filter import Names

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

MAX_FOUND = 200
MAX_LINES = 1000  # lines that are shown, with those around the matches
MAX_FILE = 1 << 20
MAX_LINE = 10_000
MAX_SHOWN = 500
MAX_SECONDS = 10.0

# Reasons why a file is not searched, by the code of its read error.
_SKIPPED = {
    "permission_denied": "unreadable",
    "not_found": "changed",
    "path_changed": "changed",
    "is_directory": "changed",
    "not_regular_file": "changed",
    "too_large": "large",
    "denied_by_policy": "withheld",
}

# The position of the match in a line, or -1.
Find = Callable[[str], int]


@dataclass(slots=True)
class _Search:
    """Results so far, and the reason if the search ended early."""

    find: Find
    deadline: float
    # How many lines to show before and after each match.
    around: tuple[int, int] = (0, 0)
    shown: int = 0
    matches: list[dict[str, Any]] = field(default_factory=list)
    searched: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan no change; answer with the lines that hold a text or match a regular expression in linear time."""
    place = view.place("path")
    stat = preconditions.present(place, f"'{preconditions.shown(place)}' not found")
    find = _finder(arguments["query"], regex=arguments["regex"], ignore_case=arguments["ignore_case"])
    around = int(arguments["before"]), int(arguments["after"])
    search = _Search(find, time.monotonic() + MAX_SECONDS, around)
    if stat.kind == DIRECTORY:
        _look_through(search, _files(arguments, view, place), view)
    else:
        _look_through(search, [Entry(place.real, stat)], view, place)
    return Plan(
        content=_content(search, arguments["query"], view),
        data={
            **_data(search, place),
            **_messages.ignored_fields(view),
            **_messages.not_entered_fields(view),
        },
        gives=_gives(search),
    )


def _finder(query: str, *, regex: bool, ignore_case: bool) -> Find:
    if not regex:
        if ignore_case:
            literal = re.compile(re.escape(query), re.IGNORECASE)
            return lambda line: -1 if (found := literal.search(line)) is None else found.start()
        return lambda line: line.find(query)
    try:
        matcher = Matcher(f"(?i:{query})" if ignore_case else query)
    except PatternError as error:
        message = f"The query is not a usable regular expression: {error}"
        hint = "simplify it, or search for a plain string with regex: false"
        raise CallError("invalid_arguments", message, where="query", hint=hint) from None
    return lambda line: 0 if matcher.found_in(line[:MAX_LINE]) else -1


def _files(arguments: dict[str, Any], view: View, place: Place) -> Iterable[Entry]:
    pattern = arguments.get("pattern")
    wanted = Names(pattern, place.real, "pattern") if pattern else None
    for entry in view.walk(place, include_ignored=arguments["include_ignored"]):
        if entry.stat.kind == FILE and (wanted is None or wanted.match(entry)):
            yield entry


def _look_through(search: _Search, entries: Iterable[Entry], view: View, place: Place | None = None) -> None:
    for entry in entries:
        if time.monotonic() > search.deadline:
            search.stopped = "time"
        elif entry.stat.size is not None and entry.stat.size > MAX_FILE:
            search.skipped["large"] += 1
        else:
            data = _read(search, entry, view, place)
            if data is not None:
                search.searched += 1
                _look_into(search, entry.path, data)
        if search.stopped:
            return


def _read(search: _Search, entry: Entry, view: View, place: Place | None) -> bytes | None:
    """Return a file's text, or None if it is skipped, which is counted. For the file that a call names, an
    error fails the call.
    """
    try:
        data = view.read(place or entry, MAX_FILE)
        if is_binary(data):
            search.skipped["binary"] += 1
            return None
        return view.shown(place or entry, data)
    except CallError as error:
        if place is not None or error.code not in _SKIPPED:
            raise
        search.skipped[_SKIPPED[error.code]] += 1
        return None


def _look_into(search: _Search, path: str, data: bytes) -> None:
    lines = list(split_lines(data))
    before, after = search.around
    for number, raw in enumerate(lines, start=1):
        line = _text(raw)
        at = search.find(line)
        if at >= 0:
            above = lines[max(number - 1 - before, 0) : number - 1]
            below = lines[number : number + after]
            search.shown += 1 + len(above) + len(below)
            if len(search.matches) == MAX_FOUND or search.shown > MAX_LINES:
                search.stopped = "matches"
                return
            match: dict[str, Any] = {"path": path, "line": number, "text": _part(line, at)}
            for name, around in (("before", above), ("after", below)):
                if around:
                    match[name] = [_part(_text(each), 0) for each in around]
            search.matches.append(match)
        elif number % 256 == 0 and time.monotonic() > search.deadline:
            search.stopped = "time"
            return


def _text(line: bytes) -> str:
    return decode(line).rstrip("\r\n")


def _part(line: str, at: int) -> str:
    """Return the line, or the part of a long line around the match."""
    if len(line) <= MAX_SHOWN:
        return line
    start = max(0, min(at - MAX_SHOWN // 4, len(line) - MAX_SHOWN))
    end = start + MAX_SHOWN
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")


_STOPPED = {
    "time": f"[Stopped after {MAX_SECONDS:.0f} seconds; search a directory further down]",
    "matches": "[There are more; only the first {found} lines are shown]",
}


_WHY: dict[str, Callable[[int], str]] = {
    "large": lambda n: f"{plural(n, 'file')} over {size(MAX_FILE)}",
    "binary": lambda n: plural(n, "binary file"),
    "unreadable": lambda n: f"{plural(n, 'file')} without read permission",
    "changed": lambda n: f"{plural(n, 'file')} that changed meanwhile",
    "withheld": lambda n: f"{plural(n, 'file')} withheld because of the content",
}


def _content(search: _Search, query: str, view: View) -> str:
    rows = _rows(search) if any(search.around) else list(map(_row, search.matches))
    files = len({match["path"] for match in search.matches})
    found = len(search.matches)
    if found:
        total = f"{plural(found, 'matching line')} in {plural(files, 'file')}"
    else:
        total = f"No lines found containing '{escape(query)}'"
    skipped = [text(search.skipped[why]) for why, text in _WHY.items() if search.skipped[why]]
    skipped += _messages.not_entered(view)
    if skipped:
        total += f" (not searched: {', '.join(skipped)})"
    stopped = _STOPPED[search.stopped].format(found=found) if search.stopped else None
    return _messages.message("\n".join(rows), stopped, _messages.ignored(view, "searched", "searches"), total)


def _row(match: dict[str, Any]) -> str:
    return f"{escape(match['path'])}:{match['line']}: {match['text']}"


def _rows(search: _Search) -> list[str]:
    """Return matches with the lines around them, each line once; `--` is between lines that are apart."""
    lines: dict[str, dict[int, str]] = {}
    for match in search.matches:
        found, number = lines.setdefault(match["path"], {}), match["line"]
        above, path = match.get("before", []), escape(match["path"])
        around = [*enumerate(above, number - len(above)), *enumerate(match.get("after", []), number + 1)]
        for at, text in around:
            found.setdefault(at, f"{path}-{at}- {text}")
        found[number] = _row(match)
    rows: list[str] = []
    for found in lines.values():
        last = None
        for at in sorted(found):
            if rows and at - 1 != last:
                rows.append("--")
            rows.append(found[at])
            last = at
    return rows


def _gives(search: _Search) -> Amount:
    texts = (
        text
        for match in search.matches
        for text in (match["text"], *match.get("before", ()), *match.get("after", ()))
    )
    shown = sum(len(text.encode("utf-8", "surrogateescape")) for text in texts)
    return Amount(len({match["path"] for match in search.matches}), shown)


def _data(search: _Search, place: Place) -> dict[str, Any]:
    return {
        "path": place.named,
        "matches": search.matches,
        "count": len(search.matches),
        "files_searched": search.searched,
        **{f"skipped_{why}": search.skipped[why] for why in _WHY},
        "truncated": search.stopped is not None,
        "stopped": search.stopped,
    }
