"""Removal of old changes: beyond a number of changes, the oldest are removed, by whole calls.

Only removes changes without stored contents. Their amounts for session limits stay, summed up. Never removes
the last operation, because the next one would get its number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import Database, State

_MANY = 64  # operations that are removed in one transaction
_NAME = "forgotten changes"  # in the table `meta`
_READ = "SELECT value FROM meta WHERE name = ?"
_NOTE = "INSERT INTO meta VALUES(?,?) ON CONFLICT(name) DO UPDATE SET value = excluded.value"
_OLDEST = (
    "SELECT id, (SELECT count(*) FROM item WHERE item.op = op.id) FROM op"
    " WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
)
_OF_CALLS = "FROM op one JOIN op other ON other.call = one.call WHERE one.id > ? AND one.id <= ?"
_SUM_UP = (
    "INSERT INTO spent SELECT session, agent, tool, coalesce(action, ''), coalesce(sum(files), 0),"
    " coalesce(sum(bytes), 0), max(id) FROM op LEFT JOIN usage ON usage.op = op.id"
    " WHERE id > ? AND id <= ? GROUP BY session, agent, tool, coalesce(action, '')"
    " ON CONFLICT(session, agent, tool, action) DO UPDATE SET files = spent.files + excluded.files,"
    " bytes = spent.bytes + excluded.bytes, op = excluded.op"
)
_ROWS = (("usage", "op"), ("item", "op"), ("op", "id"))

Rows = Callable[[str, tuple[Any, ...]], list[Any]]


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The history's removed part: the operations up to `op`, which began until the time `until`. The
    operations after it up to `counted` have `changes` changes.
    """

    op: int = 0
    until: float = 0.0
    counted: int = 0
    changes: int = 0


def forgotten(state: State) -> Forgotten | None:
    """Return the removed part of the history; None if nothing was removed."""
    found = _read(state.rows)
    return found if found.op else None


def to_forget(state: State, most: int, mark: int) -> int:
    """Return how many changes `forget_changes` would remove now."""
    known, gone = _counted(state.rows), 0
    while (portion := _next(state.rows, known, most, mark)) is not None:
        known, gone = portion, gone + known.changes - portion.changes
    return gone


def forget_changes(state: State, most: int, mark: int) -> Iterator[int]:
    """Remove the oldest changes until `most` are left, none after operation `mark`; yield the number of each
    portion.

    May be stopped or killed between two portions.
    """
    while True:
        with state.transaction() as db:
            rows = _rows_of(db)
            known = _counted(rows)
            left = _next(rows, known, most, mark)
            if left is not None:
                ends = known.op, left.op
                db.execute(_SUM_UP, ends)
                for table, column in _ROWS:
                    db.execute(f"DELETE FROM {table} WHERE {column} > ? AND {column} <= ?", ends)
            _note(db, known if left is None else left)
        if left is None:
            return
        yield known.changes - left.changes


def _rows_of(db: Database) -> Rows:
    return lambda sql, values: db.execute(sql, values).fetchall()


def _read(rows: Rows) -> Forgotten:
    found = rows(_READ, (_NAME,))
    if not found:
        return Forgotten()
    op, until, counted, changes = str(found[0][0]).split("|")
    return Forgotten(int(op), float(until), int(counted), int(changes))


def _note(db: Database, known: Forgotten) -> None:
    value = f"{known.op}|{known.until}|{known.counted}|{known.changes}"
    db.execute(_NOTE, (_NAME, value))


def _counted(rows: Rows) -> Forgotten:
    """Return the stored mark with the operations since then counted."""
    known = _read(rows)
    ((last,),) = rows("SELECT coalesce(max(id), 0) FROM op", ())
    ((new,),) = rows("SELECT count(*) FROM item WHERE op > ? AND op <= ?", (known.counted, last))
    return replace(known, counted=int(last), changes=known.changes + int(new))


def _next(rows: Rows, known: Forgotten, most: int, mark: int) -> Forgotten | None:
    """Return the mark after removing the oldest operations; None if no operation has to be removed, or may
    be.
    """
    mark, last, left = min(mark, known.counted - 1), known.op, known.changes
    for op, changes in rows(_OLDEST, (known.op, mark, _MANY)):
        if left <= most:
            break
        last, left = int(op), left - int(changes)
    last = _whole_calls(rows, known.op, last, mark)
    if last <= known.op:
        return None
    ends = known.op, last
    ((changes,),) = rows("SELECT count(*) FROM item WHERE op > ? AND op <= ?", ends)
    ((until,),) = rows("SELECT max(started) FROM op WHERE id > ? AND id <= ?", ends)
    return Forgotten(last, max(known.until, float(until)), known.counted, known.changes - int(changes))


def _whole_calls(rows: Rows, after: int, last: int, mark: int) -> int:
    """Return the operation up to which no call is split: `last` or a later one up to `mark`, else an earlier
    one.
    """
    while last > after:
        ((furthest,),) = rows(f"SELECT max(other.id) {_OF_CALLS}", (after, last))
        if furthest is None or furthest == last:
            break
        if furthest <= mark:
            last = int(furthest)
        else:
            ((first,),) = rows(f"SELECT min(one.id) {_OF_CALLS} AND other.id > ?", (after, last, mark))
            last = mark = int(first) - 1
    return last
