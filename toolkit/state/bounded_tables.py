"""Bounds of the tables with a row for each file read, or each session: the rows used last stay.

Only for rows whose loss is harmless: a file that a session read long ago counts as not read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import State

_PORTION = 500  # rows that are removed in one transaction


class Bound(NamedTuple):
    """A table's key, the column with the time of last use, and the number of rows that stay."""

    key: tuple[str, ...]
    used: str
    most: int


BOUNDS = {
    "seen": Bound(("session", "path"), "coalesce(at, 0)", 100_000),
    "spent": Bound(("session", "agent", "tool", "action"), "op", 100_000),
    "read_total": Bound(("session", "agent", "tool"), "used", 100_000),
}


def trim(state: State, go_on: Callable[[], bool]) -> None:
    """Delete the oldest rows of each table that is a tenth beyond its bound, in small transactions."""
    for table, bound in BOUNDS.items():
        ((count,),) = state.rows(f"SELECT count(*) FROM {table}")
        if count <= bound.most + bound.most // 10:
            continue
        newest = f"SELECT {bound.used} FROM {table} ORDER BY 1 DESC LIMIT 1 OFFSET ?"
        ((since,),) = state.rows(newest, (bound.most - 1,))
        while go_on() and _remove(state, table, bound, since) == _PORTION:
            state.vacuum(_PORTION)


def _remove(state: State, table: str, bound: Bound, since: float) -> int:
    """Delete some of the rows used least recently; returns how many."""
    oldest = f"SELECT {', '.join(bound.key)} FROM {table} WHERE {bound.used} < ? LIMIT ?"
    one = " AND ".join(f"{column} = ?" for column in bound.key)
    with state.transaction() as db:
        rows = db.execute(oldest, (since, _PORTION)).fetchall()
        db.executemany(f"DELETE FROM {table} WHERE {one}", rows)
    return len(rows)
