"""Check of the audit index: names records that a search by their own values would miss.

Only reads. Surplus index entries are harmless, because a search confirms each result by the record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.audit.archive import Packed, Summary, packed
from ringfence.toolkit.state.audit_columns import columns, named

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import State

_PAGE = "SELECT seq, body, time, session, kind FROM audit WHERE seq > ? ORDER BY seq LIMIT 500"
_PAIRS = 200  # paths that are looked up at once
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
        records = {int(row[0]): _parsed(row[1]) for row in rows}
        lost = _without_paths(state, records)
        for seq, _, *beside in rows:
            record = records[int(seq)]
            if record is not None and (int(seq) in lost or _storable(columns(record)) != _storable(beside)):
                yield int(seq)
        last = int(rows[-1][0])


def _storable(values: Any) -> list[Any]:
    # Not every database can store a NUL.
    return [v.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(v, str) else v for v in values]


def _without_paths(state: State, records: dict[int, dict[str, Any] | None]) -> set[int]:
    """Return the records with a path that is not in the index."""
    wanted = [(path, seq) for seq, record in records.items() if record is not None for path in named(record)]
    lost: set[int] = set()
    for start in range(0, len(wanted), _PAIRS):
        pairs = wanted[start : start + _PAIRS]
        marks = ", ".join(["(?, ?)"] * len(pairs))
        values = tuple(value for pair in pairs for value in pair)
        sql = f"SELECT path, seq FROM audit_path WHERE (path, seq) IN (VALUES {marks})"
        found = {(str(path), int(seq)) for path, seq in state.rows(sql, values)}
        lost.update(seq for path, seq in pairs if (_storable([path])[0], seq) not in found)
    # Records that left the database meanwhile took their paths along.
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
