"""search_text: find lines of text files that contain a string or match a regular expression.

Bounded in time, in files and in output; the answer reports a bound that was reached, and how to narrow.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ringfence.policy.detection.linear_regex import Budget, Matcher, PatternError, WorkExceeded
from ringfence.policy.model import Amount
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_text import text_of
from ringfence.toolkit.paths import parent
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Entry, Place, Plan
from ringfence.toolkit.text import decode, escape, is_binary, plural, size, split_lines
from ringfence.toolkit.tools import _messages, preconditions
from ringfence.toolkit.tools._entry_filter import Names, excluding
from ringfence.toolkit.tools._narrowing import Tally, count_on, unasked
from ringfence.toolkit.tools.matched_lines import by_file

if TYPE_CHECKING:
    from ringfence.toolkit.workspace.view import View

MAX_FOUND = 200
MAX_LINES = 1000  # lines that are shown, with those around the matches
MAX_FILE = 1 << 20
MAX_LINE = 10_000
MAX_SHOWN = 500
MAX_SECONDS = 10.0
# After the last line that is shown, only for the count by folder: lines, and bytes that are read for them.
MAX_COUNTED_LINES, MAX_COUNTED_BYTES = 2_000, 4 << 20
_UNTIMED = 1 << 14  # bytes that are searched between two looks at the time
_PLACING = 100_000  # visits to find the place of a match in a long line

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
    # Whether a text may have a line with a match; False is certain, and cheaper than to look at each line.
    may_have: Callable[[str], bool]
    deadline: float
    # Files that were walked, and lines that were found.
    files: Tally
    lines: Tally
    # How many lines to show before and after each match.
    around: tuple[int, int] = (0, 0)
    shown: int = 0
    matches: list[dict[str, Any]] = field(default_factory=list)
    searched: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    stopped: str | None = None
    # Bytes since the last look at the time, and bytes left to read after the last line that is shown.
    untimed: int = 0
    left: int = MAX_COUNTED_BYTES

    def out_of_time(self, done: int) -> bool:
        """Whether the time is up; the clock is read only after some bytes of work."""
        self.untimed += done
        if self.untimed < _UNTIMED:
            return False
        self.untimed = 0
        return time.monotonic() > self.deadline


def plan(arguments: dict[str, Any], view: View) -> Plan:
    """Plan no change; answer with the lines that hold a text or match a regular expression in linear time."""
    place = view.place("path")
    stat = preconditions.present(place, f"'{preconditions.shown(place)}' not found")
    find, may_have = _finder(
        arguments["query"], regex=arguments["regex"], ignore_case=arguments["ignore_case"]
    )
    around = int(arguments["before"]), int(arguments["after"])
    base = place.real if stat.kind == DIRECTORY else parent(place.real)
    files, lines = Tally(base), Tally(base)
    search = _Search(find, may_have, time.monotonic() + MAX_SECONDS, files, lines, around)
    if stat.kind == DIRECTORY:
        with view.reading_ahead(_files(arguments, view, place), MAX_FILE) as entries:
            _look_through(search, entries, view)
            _look_on(search, entries, view)
    else:
        _look_through(search, iter([Entry(place.real, stat)]), view, place)
    return Plan(
        content=_content(search, arguments["query"], view),
        data={
            **_data(search, place),
            **_messages.ignored_fields(view),
            **_messages.not_entered_fields(view),
        },
        gives=_gives(search),
    )


def _finder(query: str, *, regex: bool, ignore_case: bool) -> tuple[Find, Callable[[str], bool]]:
    """Return the function that finds a match in a line, and one that says whether a text may have one."""
    if not regex:
        if ignore_case:
            literal = re.compile(re.escape(query), re.IGNORECASE)
            return (
                lambda line: -1 if (found := literal.search(line)) is None else found.start(),
                lambda text: literal.search(text) is not None,
            )
        return lambda line: line.find(query), lambda text: query in text
    try:
        matcher = Matcher(query, re.IGNORECASE if ignore_case else 0)
    except PatternError as error:
        message = f"The query is not a usable regular expression: {error}"
        hint = error.hint or "simplify it, or search for a plain string with regex: false"
        raise CallError("invalid_arguments", message, where="query", hint=hint) from None

    def find(line: str) -> int:
        if not matcher.found_in(line[:MAX_LINE]):
            return -1
        return 0 if len(line) <= MAX_SHOWN else _place_of(matcher, line[:MAX_LINE])

    return find, lambda _: True


def _place_of(matcher: Matcher, line: str) -> int:
    """Return where a match begins, so that a long line can be shown there; 0 if that takes too much work."""
    try:
        spans = matcher.spans(line, Budget(_PLACING))
    except WorkExceeded:
        return 0
    return spans[0][0] if spans else 0


def _files(arguments: dict[str, Any], view: View, place: Place) -> Iterator[Entry]:
    pattern = arguments.get("pattern")
    wanted = Names(pattern, place.real, "pattern") if pattern else None
    walked = view.walk(
        place,
        include_ignored=arguments["include_ignored"],
        kinds_only=True,
        wanted=None if wanted is None else wanted.among,
    )
    entries = excluding(walked, place.real, arguments["exclude_patterns"])
    return (entry for entry in entries if entry.stat.kind == FILE and (wanted is None or wanted.match(entry)))


def _look_through(search: _Search, entries: Iterator[Entry], view: View, place: Place | None = None) -> None:
    for entry in entries:
        view.check()
        search.files.add(entry.path)
        if search.out_of_time(_UNTIMED):
            search.stopped = "time"
            return
        if entry.stat.size is not None and entry.stat.size > MAX_FILE:
            search.skipped["large"] += 1
            continue
        data = _read(search, entry, view, place)
        if data is None:
            continue
        search.searched += 1
        _look_into(search, entry.path, data)
        if search.stopped:
            return


def _look_on(search: _Search, entries: Iterator[Entry], view: View) -> None:
    """Count by folder what a search that ended early has left, without asking anybody for it."""
    if search.stopped == "time":
        count_on(entries, view, search.files)
    if search.stopped != "matches":
        return
    asked, skipped = len(view.asked), search.skipped.copy()
    for entry in unasked(entries, view):
        known = entry.stat.size
        if known is not None and known > MAX_FILE:
            continue
        search.left -= known or 0
        data = _read(search, entry, view, None) if search.left >= 0 else None
        if known is None and data is not None:
            search.left -= len(data)
        if len(view.asked) > asked:
            del view.asked[asked:]
        elif data is not None:
            _count_in(search, entry.path, split_lines(data))
        if search.left < 0 or search.lines.bounded:
            search.lines.bounded = True
            break
    search.skipped = skipped


def _count_in(search: _Search, path: str, lines: Iterable[bytes]) -> None:
    for raw in lines:
        if search.lines.total >= MAX_COUNTED_LINES or search.out_of_time(len(raw)):
            search.lines.bounded = True
            return
        if search.find(_text(raw)) >= 0:
            search.lines.add(path)


def _read(search: _Search, entry: Entry, view: View, place: Place | None) -> bytes | None:
    """Return a file's text, or None if it is skipped, which is counted. For the file that a call names, an
    error fails the call.
    """
    try:
        data = text_of(view.read(place or entry, MAX_FILE))
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
    if not search.may_have(decode(data)):
        return
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
                _count_in(search, path, lines[number - 1 :])
                return
            match: dict[str, Any] = {"path": path, "line": number, "text": _part(line, at)}
            for name, around in (("before", above), ("after", below)):
                if around:
                    match[name] = [_part(_text(each), 0) for each in around]
            search.matches.append(match)
            search.lines.add(path)
        elif search.out_of_time(len(raw)):
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


def _stopped(search: _Search) -> str | None:
    """Return the note about a bound that was reached, with how to narrow."""
    if search.stopped == "time":
        done = f"{search.searched:,} of {search.files.of()} files were searched"
        advice = search.files.advice(otherwise="give a pattern for the names of files")
        return f"[Stopped after {MAX_SECONDS:.0f} seconds: {done}; {advice}]"
    if search.stopped == "matches":
        advice = search.lines.advice(otherwise="give a longer query")
        return (
            f"[Of {search.lines.of()} lines only the first {len(search.matches):,} lines are shown; {advice}]"
        )
    return None


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
    ignored = _messages.ignored(view, "searched", "searches")
    return _messages.message("\n".join(rows), _stopped(search), ignored, total)


def _row(match: dict[str, Any]) -> str:
    return f"{escape(match['path'])}:{match['line']}: {match['text']}"


def _rows(search: _Search) -> list[str]:
    """Return matches with the lines around them, each line once; `--` is between lines that are apart."""
    rows: list[str] = []
    for path, lines in by_file(search.matches).items():
        last = None
        for at, (text, matches) in lines.items():
            if rows and at - 1 != last:
                rows.append("--")
            mark = ":" if matches else "-"
            rows.append(f"{escape(path)}{mark}{at}{mark} {text}")
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
    narrow = {"time": search.files, "matches": search.lines}.get(search.stopped or "")
    return {
        "path": place.named,
        "matches": search.matches,
        "count": len(search.matches),
        "files_searched": search.searched,
        **{f"skipped_{why}": search.skipped[why] for why in _WHY},
        "truncated": search.stopped is not None,
        "stopped": search.stopped,
        **(narrow.fields() if narrow is not None else {}),
    }
