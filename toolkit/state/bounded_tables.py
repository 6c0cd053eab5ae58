"""Bounds of the tables that have a row for each file read, or each session: the rows used last stay.

Only rows whose loss makes nothing wrong: what a session read long ago counts as not read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import State

_PORTION = 500  # rows that are removed in one transaction


class Bound(NamedTuple):
    """A table's key, the column that says when a row was used last, and how many rows stay."""

    key: tuple[str, ...]
    used: str
    most: int


BOUNDS = {
    "seen": Bound(("session", "path"), "coalesce(at, 0)", 100_000),
    "spent": Bound(("session", "agent", "tool", "action"), "op", 100_000),
}


def trim(state: State, go_on: Callable[[], bool]) -> None:
    """Bring each table that has grown a tenth beyond its bound back to it, some rows at a time."""
    for table, bound in BOUNDS.items():
        ((count,),) = state.rows(f"SELECT count(*) FROM {table}")
        if count <= bound.most + bound.most // 10:
            continue
        newest = f"SELECT {bound.used} FROM {table} ORDER BY 1 DESC LIMIT 1 OFFSET ?"
        ((since,),) = state.rows(newest, (bound.most - 1,))
        while go_on() and _remove(state, table, bound, since) == _PORTION:
            state.give_back(_PORTION)


def _remove(state: State, table: str, bound: Bound, since: float) -> int:
    """Remove some of the rows used before; gives how many."""
    oldest = f"SELECT {', '.join(bound.key)} FROM {table} WHERE {bound.used} < ? LIMIT ?"
    one = " AND ".join(f"{column} = ?" for column in bound.key)
    with state.transaction() as db:
        rows = db.execute(oldest, (since, _PORTION)).fetchall()
        db.executemany(f"DELETE FROM {table} WHERE {one}", rows)
    return len(rows)
