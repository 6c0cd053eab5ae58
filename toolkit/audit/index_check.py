"""Check of the audit index: names records that a search by their own values would miss.

Only reads. Surplus index entries are harmless, because a search confirms each result by the record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.audit.archive import Packed, Summary, packed
from ringfence.toolkit.audit.index import INDEXED
from ringfence.toolkit.state.audit_columns import columns, named

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import State

# Beside each record, whether it is in the index, and if so, whether it is found there by its time.
_PAGE = (
    f"SELECT seq, body, time, session, kind, path, seq <= {INDEXED}, EXISTS (SELECT 1 FROM audit_part"
    " WHERE last >= audit.seq AND first <= audit.seq AND audit.time BETWEEN since AND until)"
    " FROM audit WHERE seq > ? ORDER BY seq LIMIT 500"
)
_PAIRS = 200  # values that are looked up at once
_MOST = 1_000  # records that are named


def misplaced(state: State) -> Iterator[int]:
    """Return the numbers of records that a search would miss; of very many only the first."""
    return islice(_all(state), _MOST)


def _all(state: State) -> Iterator[int]:
    files = packed(state.archive)
    for file in files:
        yield from _in_file(file)
    # Archived records are not in the database.
    last = files[-1].last if files else -(1 << 63)
    while rows := state.rows(_PAGE, (last,)):
        read = [(row, record) for row in rows if (record := _parsed(row[1])) is not None]
        lost = _not_indexed(state, read)
        yield from (int(row[0]) for row, record in read if row[0] in lost or not _is_beside(row, record))
        last = int(rows[-1][0])


def _is_beside(row: Any, record: dict[str, Any]) -> bool:
    """Whether a record's values are in its columns; for a record in the index, also whether its time is."""
    _, _, *beside, path, indexed, timed = row
    paths = named(record)
    if _storable(columns(record)) != _storable(beside):
        return False
    if indexed:
        return timed or beside[0] is None
    return len(paths) != 1 or path is None or _storable(paths) == [path]


def _storable(values: Any) -> list[Any]:
    # Not every database can store a NUL.
    return [v.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(v, str) else v for v in values]


def _not_indexed(state: State, read: list[tuple[Any, dict[str, Any]]]) -> set[int]:
    """Return the records with a value that is not in the index but should be."""
    wanted: dict[str, list[tuple[str, int]]] = {"session": [], "kind": [], "path": []}
    for row, record in read:
        paths, (*_, path, indexed, _) = named(record), row
        _, session, kind = columns(record)
        # A process that began before the upgrade puts its only path into the index, too.
        if indexed or len(paths) > 1 or path is None:
            wanted["path"] += [(one, row[0]) for one in paths]
        if indexed:
            wanted["kind"].append((kind, row[0]))
        if indexed and session is not None:
            wanted["session"].append((session, row[0]))
    lost: set[int] = set()
    for name, places in wanted.items():
        for start in range(0, len(places), _PAIRS):
            pairs = places[start : start + _PAIRS]
            marks = ", ".join(["(?, ?)"] * len(pairs))
            values = tuple(value for pair in pairs for value in pair)
            sql = f"SELECT {name}, seq FROM audit_{name} WHERE ({name}, seq) IN (VALUES {marks})"
            found = {(str(value), int(seq)) for value, seq in state.rows(sql, values)}
            lost.update(seq for value, seq in pairs if (_storable([value])[0], seq) not in found)
    # Records that left the database meanwhile took their values along.
    marks = ", ".join("?" * len(lost))
    still = state.rows(f"SELECT seq FROM audit WHERE seq IN ({marks})", tuple(lost)) if lost else ()
    return {int(seq) for (seq,) in still}


def _in_file(file: Packed) -> Iterator[int]:
    summary = file.summary()
    if summary is None:
        return  # then a search reads the records
    for seq, body in file.records():
        record = _parsed(body)
        if record is not None and not _is_in(summary, record):
            yield seq


def _is_in(summary: Summary, record: dict[str, Any]) -> bool:
    time, session, kind = columns(record)
    return (
        kind in summary.kinds
        and (session is None or session in summary.sessions)
        and (time is None or summary.since <= time <= summary.until)
        and summary.paths.issuperset(named(record))
    )


def _parsed(body: str) -> dict[str, Any] | None:
    try:
        found = json.loads(body)
    except ValueError:
        return None  # the chain check reports it
    return found if isinstance(found, dict) else None
