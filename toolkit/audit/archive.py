"""Archive of the audit: the oldest records, in packed segments outside the table, as lines of the same chain.

A segment is on disk before its records leave the table. No segment ever changes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from ringfence.toolkit.audit.hash_chain import line, parsed
from ringfence.toolkit.state.audit_columns import named
from ringfence.toolkit.state.audit_segments import Segments, Span

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import State

RECORDS = 10_000  # records in one segment; this many to twice as many of the newest stay in the table
_STEP = 500  # rows that are read or deleted at once
_ROWS = "SELECT seq, body, prev, hash FROM audit WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"


def last_archived(archive: Segments | None) -> int:
    """Return the number of the last record in a segment; 0 without segments."""
    return max((one.last for one in packed(archive)), default=0)


def archived(archive: Segments | None, since: int) -> Iterator[list[Any]]:
    """Yield the archived rows after number `since`, oldest first, in batches, as `audit.pages` does.

    Unreadable segments are left out, so their records are missing from the chain.
    """
    for one in packed(archive):
        if one.last <= since:
            continue
        rows: list[Any] = []
        for seq, *rest in one.lines():
            if seq > since:
                rows.append((seq, *rest))
            if len(rows) == _STEP:
                yield rows
                rows = []
        if rows:
            yield rows


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of a segment's records, so that a search can skip the segment.

    It has the kinds with their counts, the sessions, the paths, the first and the last time.
    """

    kinds: dict[str, int]
    sessions: frozenset[str]
    paths: frozenset[str]
    since: float
    until: float


class Packed(NamedTuple):
    """A segment of the archive: the numbers of its first and its last record."""

    first: int
    last: int
    archive: Segments

    def records(self) -> list[tuple[int, str]]:
        """Return its records as number and text, oldest first; unreadable ones are left out."""
        return [(seq, body) for seq, body, _, _ in self.lines()]

    def lines(self) -> Iterator[tuple[int, str, str, str]]:
        """Return its records with their previous and own seals."""
        import gzip

        data = BytesIO(self.archive.lines((self.first, self.last)))
        try:
            with gzip.open(data, "rt", encoding="ascii", errors="replace") as texts:
                for text in texts:
                    record = parsed(text.rstrip("\n"))
                    if record is not None:
                        yield record.seq, record.body, record.prev, record.hash
        except (OSError, EOFError, zlib.error):
            return

    def summary(self) -> Summary | None:
        """Return its summary; None if it is missing or unreadable, and the records must be read."""
        import gzip

        try:
            found = json.loads(gzip.decompress(self.archive.summary((self.first, self.last))))
            sessions, places = frozenset(found["sessions"]), frozenset(found["paths"])
            return Summary(found["kinds"], sessions, places, found["since"], found["until"])
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):
            return None


def packed(archive: Segments | None) -> list[Packed]:
    """Return the segments of the archive, oldest first."""
    return [Packed(*span, archive) for span in archive.spans()] if archive is not None else []


def archive(state: State, go_on: Callable[[], bool]) -> int:
    """Move the oldest records out of the table, if there are very many; returns how many were moved.

    A kill at any moment is safe: a record is in a segment, in the table or in both, and counts once.
    """
    if state.archive is None:
        return 0
    moved = 0
    while True:
        done = last_archived(state.archive)
        moved += _leave(state, done, go_on)
        ((newest,),) = state.rows("SELECT coalesce(max(seq), 0) FROM audit")
        if newest - done < 2 * RECORDS or not go_on():
            return moved
        span = done + 1, done + RECORDS
        state.archive.put(span, _pack(state, span), _summarize(state, span))


def _pack(state: State, span: Span) -> bytes:
    import gzip  # slow to import, and seldom needed

    to = BytesIO()
    with gzip.GzipFile(fileobj=to, mode="wb", filename="", mtime=0) as file:
        since = span[0] - 1
        while rows := state.rows(_ROWS, (since, span[1], _STEP)):
            file.writelines(line(body, prev, seal).encode() for _, body, prev, seal in rows)
            since = int(rows[-1][0])
    return to.getvalue()


def _summarize(state: State, span: Span) -> bytes:
    """Return the summary of records from their columns."""
    import gzip

    within = "seq >= ? AND seq <= ?"
    kinds = state.rows(f"SELECT kind, count(*) FROM audit WHERE {within} GROUP BY kind", span)
    sessions = state.rows(f"SELECT DISTINCT session FROM audit WHERE {within}", span)
    ((since, until),) = state.rows(f"SELECT min(time), max(time) FROM audit WHERE {within}", span)
    places: set[str] = set()
    at = span[0] - 1
    while rows := state.rows(_ROWS, (at, span[1], _STEP)):
        places.update(path for _, body, _, _ in rows for path in named(json.loads(body)))
        at = int(rows[-1][0])
    found = {
        "kinds": {str(kind): int(count) for kind, count in kinds},
        "sessions": [str(name) for (name,) in sessions if name is not None],
        "paths": sorted(places),
        "since": since or 0.0,
        "until": until or 0.0,
    }
    return gzip.compress(json.dumps(found).encode(), mtime=0)


def _leave(state: State, done: int, go_on: Callable[[], bool]) -> int:
    """Delete the records from the table that are in segments."""
    moved = 0
    while go_on():
        with state.transaction() as db:
            oldest = "SELECT seq, body, session, kind FROM audit WHERE seq <= ? ORDER BY seq LIMIT ?"
            rows = db.execute(oldest, (done, _STEP)).fetchall()
            count = len(rows)
            places = [(path, seq) for seq, body, *_ in rows for path in named(json.loads(body))]
            db.executemany("DELETE FROM audit_path WHERE path = ? AND seq = ?", places)
            for name, at in (("session", 2), ("kind", 3)):
                values = [(row[at], row[0]) for row in rows]
                db.executemany(f"DELETE FROM audit_{name} WHERE {name} = ? AND seq = ?", values)
            db.executemany("DELETE FROM audit WHERE seq = ?", [(row[0],) for row in rows])
            if rows:
                db.execute("DELETE FROM audit_part WHERE last <= ?", (rows[-1][0],))
        moved += count
        if count < _STEP:
            break
        state.vacuum(_STEP)
    return moved
