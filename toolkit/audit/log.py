"""Audit log: one record per call, linked by a hash chain, never with file content.

Only appends. The chain reveals an altered, missing or reordered record; only a key or an anchor reveals that
the whole log was rewritten.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringfence.toolkit import grant_patterns, paths
from ringfence.toolkit.audit import command_records
from ringfence.toolkit.audit import index as audit_index
from ringfence.toolkit.audit.archive import Packed, Summary, archived, last_archived, packed
from ringfence.toolkit.audit.hash_chain import BEGINNING, Checked, Fault, Record, check, number, seal
from ringfence.toolkit.audit.index import RecordNumbers, meeting
from ringfence.toolkit.audit.index_check import misplaced
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.state import audit_columns
from ringfence.toolkit.state.audit_columns import Kind, columns, named

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import Database, State

SHORTEST = 16  # bytes of a key
# Made once, because every call needs it; a record is plain values without cycles.
_encode = json.JSONEncoder(separators=(",", ":"), sort_keys=True, check_circular=False).encode
_LAST = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1"
# An intent without an outcome has no record yet; an intent without items names no call in its record.
_CHANGED = (
    "SELECT DISTINCT call FROM op WHERE state != 'pending'"
    " AND EXISTS (SELECT 1 FROM item WHERE item.op = op.id)"
)
_KINDS = (
    "SELECT kind, count(*) FROM (SELECT kind, seq FROM audit_kind UNION ALL"
    f" SELECT kind, seq FROM audit WHERE seq > {audit_index.INDEXED}) AS found WHERE seq > ? GROUP BY kind"
)
_NAMED = re.compile(r'"call":"([^"\\]*)"')
_PAGE = "SELECT seq, body, prev, hash FROM audit WHERE seq > ? ORDER BY seq LIMIT 500"

_MOST = 256  # records fetched at once

Head = tuple[int, str]  # the number and the seal of the last record
_ADD = "INSERT INTO audit(seq, body, prev, hash, time, session, kind, path) VALUES(?,?,?,?,?,?,?,?)"
# A log that was cut short has numbers again for which the index has paths.
_ADD_PATH = "INSERT INTO audit_path VALUES(?,?) ON CONFLICT DO NOTHING"
_ADD_NEXT = f"{_ADD} ON CONFLICT(seq) DO NOTHING"  # inserts nothing if another process was faster


def _after(head: Head, record: dict[str, Any], key: bytes | None) -> tuple[int, str, str, str]:
    """Return the row that puts a record after `head`, sealed with the key if there is one."""
    seq, prev = head[0] + 1, head[1]
    body = _encode({"seq": seq, **record})
    return seq, body, prev, seal(prev, body, key)


def append(
    db: Database, record: dict[str, Any], key: bytes | None, known: Head = BEGINNING, *, last: bool = False
) -> tuple[Head, Head]:
    """Add a record inside the caller's transaction.

    Returns the previous record's number and seal, and the new ones.

    `known` is a record that the caller knows to exist, and `last` the one that it believes to be the last: if
    that one was removed, the new record leaves a gap.
    """
    found = named(record)
    beside = (*columns(record), found[0] if len(found) == 1 else None)
    head, values = known, _after(known, record, key)
    if not last or db.execute(_ADD_NEXT, (*values, *beside)).rowcount != 1:
        head = max(_head(db.execute(_LAST).fetchone()), known, key=_number)
        values = _after(head, record, key)
        db.execute(_ADD, (*values, *beside))
    if len(found) > 1:
        db.executemany(_ADD_PATH, [(path, values[0]) for path in found])
    if values[0] % audit_columns.PART == 0:
        audit_columns.index(db, values[0])
    return head, (values[0], values[3])


def _number(head: Head) -> int:
    return head[0]


def records(state: State, *, since: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the records after number `since`, oldest first."""
    for page in pages(state, since):
        for _, body, *_ in page:
            yield json.loads(body)


def pages(state: State, since: int) -> Iterator[list[Any]]:
    """Yield the rows after number `since` in batches, oldest first: number, text, previous and own seal."""
    while True:
        known = last_archived(state.archive)
        for rows in archived(state.archive, since) if known > since else ():
            yield rows
            since = int(rows[-1][0])
        while rows := state.rows(_PAGE, (since,)):
            if rows[0][0] > since + 1 and last_archived(state.archive) > known:
                break  # those in between have left the database meanwhile
            yield rows
            since = int(rows[-1][0])
        if not rows:
            return


def kinds(state: State) -> Iterator[tuple[Kind, int]]:
    """Return how many records of each kind there are."""
    files = packed(state.archive)
    done = files[-1].last if files else 0
    for kind, count in state.rows(_KINDS, (done,)):
        if kind is not None:
            yield audit_columns.parse(str(kind)), int(count)
    for file in files:
        summary = file.summary()
        if summary is not None:
            yield from ((audit_columns.parse(kind), count) for kind, count in summary.kinds.items())
        else:
            read = (audit_columns.kind_of(json.loads(body)) for _, body in file.records())
            yield from ((audit_columns.parse(kind), count) for kind, count in Counter(read).items())


def seal_of(state: State, seq: int) -> str | None:
    """Return the seal of the record with this number; None if there is none."""
    for page in pages(state, seq - 1):
        return str(page[0][3]) if page[0][0] == seq else None
    return None


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """Conditions on records; None is no condition. An agent's sub-agents count as the agent.

    `would` is the effect that the rules on trial would have had, where it is another than `effect`.
    `path` is a pattern as in a policy; a record about a tree has every path in it. `since` (included) and
    `until` (excluded) are times in POSIX seconds. `by` is the person who answered, whose grant allowed a
    call, or who acted; `approved`: only calls that a grant allowed. `command` is a pattern of words, as below
    `run` in a policy, for one of the simple commands of a command line.
    """

    session: str | None = None
    agent: str | None = None
    tool: str | None = None
    path: str | None = None
    effect: str | None = None
    would: str | None = None
    outcome: str | None = None
    by: str | None = None
    approved: bool = False
    since: float | None = None
    until: float | None = None
    command: str | None = None

    def fits_kind(self, kind: Kind) -> bool:
        """Whether a record of that kind may match; the kind of an unknown tool has no name."""
        agent = str(kind.agent or "")
        return (
            (self.agent is None or agent == self.agent or agent.startswith(self.agent + "/"))
            and (self.tool in (None, kind.tool) or kind.outcome == "unknown_tool")
            and (self.command is None or kind.tool == command_records.TOOL)
            and self.effect in (None, kind.effect)
            and self.would in (None, kind.would)
            and self.outcome in (None, kind.outcome)
            and self.by in (None, kind.by)
            and (not self.approved or kind.is_approved)
        )

    def fits(self, state: State, record: dict[str, Any]) -> bool:
        """Whether a record matches all conditions."""
        time = record.get("time", 0.0)
        return (
            self.session in (None, record.get("session"))
            and (self.since is None or time >= self.since)
            and (self.until is None or time < self.until)
            and self.tool in (None, record.get("tool"))
            and (self.command is None or command_records.fits(self.command, record))
            and self.fits_kind(audit_columns.parse(audit_columns.kind_of(record)))
            and (self.path is None or self._has(state, record, self.path))
        )

    def may_be_in(self, summary: Summary, trees: frozenset[str] | None) -> bool:
        """Whether an archived segment may have a matching record; `trees` as from `index.trees_with`."""
        return (
            (self.session is None or audit_columns.stored(self.session) in summary.sessions)
            and (self.since is None or summary.until >= self.since)
            and (self.until is None or summary.since < self.until)
            and any(self.fits_kind(audit_columns.parse(kind)) for kind in summary.kinds)
            and (
                self.path is None
                or trees is None
                or not trees.isdisjoint(summary.paths)
                or any(audit_index.fits(self.path, path) for path in summary.paths)
            )
        )

    def _has(self, state: State, record: dict[str, Any], pattern: str) -> bool:
        if any(audit_index.fits(pattern, path) for path in record.get("paths") or ()):
            return True
        call = record.get("call")
        return isinstance(call, str) and audit_index.changed(state, call, pattern)


def matching(
    state: State, wanted: RecordFilter, *, after: int = 0, before: int | None = None, back: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the matching records after number `after` and before number `before`, oldest first, or newest
    first with `back`.

    Reads only candidates, among the records that exist when it begins.
    """
    found = candidates(state, wanted, after=after, before=before, back=back)
    return (record for record in found if wanted.fits(state, record))


def candidates(
    state: State, wanted: RecordFilter, *, after: int = 0, before: int | None = None, back: bool = False
) -> Iterator[dict[str, Any]]:
    """Yield the records that may match, in the order of `matching`, for a caller that bounds how many it
    tests.
    """
    last, files = head(state)[0], packed(state.archive)
    last = last if before is None else min(last, before - 1)
    live = max(after, files[-1].last if files else 0) + 1
    within = (after, last)
    parts = [_in_database(state, wanted, live, last, back), _in_files(state, wanted, files, within, back)]
    for body in chain.from_iterable(parts if back else parts[::-1]):
        yield json.loads(body)


def _in_database(state: State, wanted: RecordFilter, first: int, last: int, back: bool) -> Iterator[str]:
    """Yield the texts of candidate records from `first` to `last`."""
    if wanted.since is not None:
        found = audit_index.first_since(state, wanted.since)
        first = last + 1 if found is None else max(first, found)
    if wanted.until is not None:
        last = min(last, audit_index.last_before(state, wanted.until) or 0)
    if first <= last:
        ends = (last, first) if back else (first, last)
        yield from _bodies(state, meeting(_parts(state, wanted, back), *ends))


def _in_files(
    state: State, wanted: RecordFilter, files: list[Packed], within: tuple[int, int], back: bool
) -> Iterator[str]:
    """Yield the texts of archived candidates after one number and up to another, one segment at a time."""
    after, last = within
    files = [file for file in files if file.last > after and file.first <= last]
    trees = audit_index.trees_with(state, wanted.path) if files and wanted.path is not None else frozenset()
    for file in reversed(files) if back else files:
        summary = file.summary()
        if summary is not None and not wanted.may_be_in(summary, trees):
            continue
        found = [body for seq, body in file.records() if after < seq <= last]
        yield from reversed(found) if back else found


def newest(state: State, wanted: RecordFilter, most: int) -> list[dict[str, Any]]:
    """Return the last `most` matching records, oldest first."""
    return list(islice(matching(state, wanted, back=True), most))[::-1]


def changes_of(state: State, path: str) -> Iterator[dict[str, Any]]:
    """Yield the records that changed a path or something below it, oldest first.

    These are records of calls, and of the recovery of calls whose process ended.
    """
    pattern = "**" if path == paths.ROOT else grant_patterns.literal(path)
    for record in matching(state, RecordFilter(path=pattern)):
        kind = record.get("event"), record.get("outcome")
        if kind in _CHANGES and _changed(state, record, pattern):
            yield record


def _changed(state: State, record: dict[str, Any], pattern: str) -> bool:
    """Whether a call changed a path; for a call that the history has forgotten, by its record."""
    call = str(record.get("call"))
    if audit_index.is_known(state, call):
        return audit_index.changed(state, call, pattern)
    planned = record.get("event") == "settled" or record.get("digest") is not None
    return planned and any(audit_index.fits(pattern, path) for path in record.get("paths") or ())


_CHANGES = tuple(product(("call", "settled"), ("done", "partial", "unknown")))


def _parts(state: State, wanted: RecordFilter, back: bool) -> list[RecordNumbers]:
    """Return the index lookups for the conditions; every matching record is in each of them."""
    parts: list[RecordNumbers | None] = []
    if wanted.session is not None:
        parts.append(audit_index.of_session(state, wanted.session, back=back))
    asked = (wanted.agent, wanted.tool, wanted.effect, wanted.outcome, wanted.by, wanted.command)
    if wanted.approved or any(one is not None for one in asked):
        parts.append(audit_index.of_kind(state, wanted.fits_kind, back=back))
    if wanted.path is not None:
        parts.append(audit_index.of_paths(state, wanted.path, back=back))
    return [part for part in parts if part is not None] or [audit_index.EveryRecord()]


def _bodies(state: State, numbers: Iterator[int]) -> Iterator[str]:
    """Yield the texts of records in batches, which grow."""
    many = 8
    while wanted := list(islice(numbers, many)):
        marks = ",".join("?" * len(wanted))
        rows = state.rows(f"SELECT seq, body FROM audit WHERE seq IN ({marks})", tuple(wanted))
        found = {int(seq): str(body) for seq, body in rows}
        yield from (found[number] for number in wanted if number in found)
        many = min(2 * many, _MOST)


def verify(state: State) -> list[Fault]:
    """Return every break of the chain; an empty list is an intact chain."""
    return checked(state, state.key).faults


def checked(state: State, key: bytes | None = None, anchors: Iterable[tuple[int, str]] = ()) -> Checked:
    """Check the chain with its key, against the anchors, the history and the index.

    A call that changed something is in the history too, which reveals a log that was cut short or emptied;
    each record's index entry must match its own text.
    """
    # Read before the records: a call that ends meanwhile has its record by then.
    unrecorded = {str(row[0]) for row in state.rows(_CHANGED)}

    def read() -> Iterator[Record]:
        """Yield the records of archive and table in order."""
        for record in _as_written(state):
            unrecorded.difference_update(_NAMED.findall(record.body))
            yield record

    found = check(read(), key, anchors)
    named = {fault.seq for fault in found.faults}  # these are not what was found by it
    wrong = [Fault(seq, "index") for seq in misplaced(state) if seq not in named]
    faults = sorted([*found.faults, *wrong], key=lambda fault: (fault.seq, fault.what))
    return replace(found, unrecorded=len(unrecorded), faults=faults)


def _as_written(state: State) -> Iterator[Record]:
    for page in pages(state, -(1 << 63)):  # also forged numbers below the first
        for seq, body, *rest in page:
            yield Record(seq, number(str(body)), str(body), *rest)


def read_key(given: bytes | str | Path | None) -> bytes | None:
    """Return the key given, or the one in its file. CallError `history_unavailable`."""
    if given is None:
        return None
    try:
        key = given if isinstance(given, bytes) else Path(given).read_bytes().strip()
    except OSError as error:
        raise CallError("history_unavailable", f"The audit key cannot be read ({error.strerror})") from None
    if len(key) < SHORTEST:
        raise CallError(
            "history_unavailable",
            f"The audit key has {len(key)} bytes, and fewer than {SHORTEST} can be guessed",
            hint="make one with `openssl rand -hex 32`",
        )
    return key


def head(state: State) -> Head:
    """Return the last record's number and seal; stored elsewhere, they reveal a log rewritten or cut."""
    return _head(next(iter(state.rows(_LAST)), None))


def _head(row: Any) -> Head:
    return BEGINNING if row is None else (int(row[0]), str(row[1]))
