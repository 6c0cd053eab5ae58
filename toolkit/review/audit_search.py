"""Search of the audit page: filters from an address, the calls that match, and what else could be asked for.

Reads a bounded number of records; what it did not read, it says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from ringfence.policy.patterns.syntax import PatternError, parse
from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.audit import command_records
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.review.call_rows import CallRow, Record, changes, destroys, rows
from ringfence.toolkit.session.session import Session

SHOWN = 100  # calls on one page
COUNTED = 2_000  # matching records that are counted
EXAMINED = 5_000  # candidate records that are read for one page
_DIRECT = ("session", "agent", "tool", "path", "command", "effect", "would", "outcome", "by")
_FLAGS: Mapping[str, Callable[[Record], bool]] = {"changes": changes, "destroys": destroys}
NAMES = (*_DIRECT, *_FLAGS, "from", "to")
# What a chip says of a filter; the value follows.
_CHIPS = {
    "session": "session",
    "agent": "agent",
    "tool": "tool",
    "path": "path",
    "command": "command",
    "effect": "verdict",
    "would": "rules on trial say",
    "outcome": "outcome",
    "by": "approved by",
    "from": "from",
    "to": "until",
    "changes": "changes only",
    "destroys": "destroys",
}
_OFFERED = 3  # people and agents that are offered as filters


@dataclass(frozen=True, slots=True)
class Chip:
    """A filter: its words, its value ("" if the words say all), how many calls it has, and its query."""

    words: str
    value: str
    query: str
    count: int = 0


@dataclass(frozen=True, slots=True)
class Search:
    """Filters of an address; `given` has the values that are not empty, by name."""

    given: Mapping[str, str]
    wanted: audit.RecordFilter

    def query(self, **changed: str | None) -> str:
        """Return the query of an address with some filters changed, and without those that become None."""
        found = {**self.given, **changed}
        return urlencode([(name, value) for name, value in found.items() if value])

    def active(self) -> list[Chip]:
        """Return a chip for each filter; its query is the search without the filter."""
        return [
            Chip(_CHIPS[name], "" if name in _FLAGS else value, self.query(**{name: None}))
            for name, value in self.given.items()
        ]

    def rows(self, records: list[dict[str, Any]], request: Callable[[str], Request | None]) -> list[CallRow]:
        """Return the calls of records that fit: only the row says that a refused call destroys nothing."""
        return [row for row in rows(records, request) if row.destroys or "destroys" not in self.given]

    def keeps(self, record: Record) -> bool:
        """Whether a record fits the filters that are no condition of the index."""
        return all(fits(record) for name, fits in _FLAGS.items() if name in self.given)


@dataclass(frozen=True, slots=True)
class Found:
    """The calls of one page, and what is counted.

    `counted` calls match; `more`: not every record was counted. `older` is the query of the next page, None
    at the end.
    """

    rows: list[CallRow]
    counted: int
    more: bool
    offered: list[Chip]
    older: str | None


def search_of(query: Mapping[str, str]) -> Search:
    """Return the search of an address. Raises CallError `invalid_arguments` with the filter."""
    given = {name: query[name].strip() for name in NAMES if query.get(name, "").strip()}
    direct: dict[str, Any] = {name: given.get(name) for name in _DIRECT}
    _check(direct)
    since, until = _day(given, "from"), _day(given, "to")
    return Search(
        given,
        audit.RecordFilter(
            **direct,
            since=None if since is None else _midnight(since),
            until=None if until is None else _midnight(until + timedelta(days=1)),
        ),
    )


def _check(direct: Mapping[str, str | None]) -> None:
    for name, test in (("command", command_records.pattern), ("path", parse)):
        try:
            if direct[name] is not None:
                test(str(direct[name]))
        except PatternError as error:
            raise CallError("invalid_arguments", error.message, where=name, hint=error.hint) from None


def _day(given: Mapping[str, str], name: str) -> date | None:
    try:
        found = date.fromisoformat(given[name]) if name in given else None
        if found is not None:
            _midnight(found + timedelta(days=1))
    except (ValueError, OverflowError, OSError):
        raise CallError(
            "invalid_arguments", f"'{given[name]}' is no date", where=name, hint="write it as 2026-01-31"
        ) from None
    return found


def _midnight(day: date) -> float:
    """Return the beginning of a local day, in POSIX seconds."""
    return datetime(day.year, day.month, day.day).astimezone().timestamp()


def find(session: Session, search: Search, before: int | None) -> Found:
    """Return one page of the calls before record number `before`, and the counts over the newest ones."""
    known: dict[str, Request | None] = {}

    def request(approval: str) -> Request | None:
        if approval not in known:
            try:
                known[approval] = session.approvals.get(approval)
            except CallError:
                known[approval] = None  # no longer kept
        return known[approval]

    newest, rest = _read(session, search, None)
    counted = search.rows(newest, request)
    shown, after = (counted, rest) if before is None else _rows(session, search, before, request)
    if len(shown) > SHOWN:
        # The next page begins with the first call that is not on this one.
        after = int(shown[SHOWN].record["seq"]) + 1
    older = None if after is None else search.query(before=str(after))
    return Found(shown[:SHOWN], len(counted), rest is not None, _offered(search, counted), older)


def _rows(
    session: Session, search: Search, before: int, request: Callable[[str], Request | None]
) -> tuple[list[CallRow], int | None]:
    records, after = _read(session, search, before)
    return search.rows(records, request), after


def _read(session: Session, search: Search, before: int | None) -> tuple[list[dict[str, Any]], int | None]:
    """Return matching records, newest first, and the number before which more may be; None at the end."""
    state, found = session.state, list[dict[str, Any]]()
    for looked, record in enumerate(audit.candidates(state, search.wanted, before=before, back=True)):
        if looked >= EXAMINED or len(found) >= COUNTED:
            return found, int(record["seq"]) + 1
        if search.keeps(record) and search.wanted.fits(state, record):
            found.append(record)
    return found, None


def every(session: Session, search: Search) -> Iterator[dict[str, Any]]:
    """Yield all matching records, oldest first."""
    return filter(search.keeps, audit.matching(session.state, search.wanted))


def _offered(search: Search, found: list[CallRow]) -> list[Chip]:
    """Return filters that would leave some of the calls, with how many."""
    chips: list[Chip] = []

    def offer(words: str, name: str, value: str, count: int, shown: str = "") -> None:
        if name not in search.given and 0 < count < len(found):
            chips.append(Chip(words, shown, search.query(**{name: value}), count))

    effects = Counter(str((row.decision or {}).get("effect")) for row in found)
    offer("asked", "effect", "ask", effects["ask"])
    offer("denied", "effect", "deny", effects["deny"])
    offer("destroys", "destroys", "1", sum(row.destroys for row in found))
    offer("changes only", "changes", "1", sum(changes(row.record) for row in found))
    for name, count in Counter(row.by for row in found if row.by).most_common(_OFFERED):
        offer("approved by", "by", name, count, name)
    agents = Counter(name for row in found for name in _with_parents(str(row.record.get("agent") or "")))
    for name, count in agents.most_common(_OFFERED):
        offer("agent", "agent", name, count, name)
    return chips


def _with_parents(agent: str) -> Iterator[str]:
    """Yield an agent and those above it, whose filter it fits too."""
    while agent:
        yield agent
        agent = agent.rpartition("/")[0]
