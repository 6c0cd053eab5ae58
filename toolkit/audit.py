"""The audit: one record a call, chained by hash, never with file content in it.

Only ever appends. A chain shows an altered, missing or reordered record; that the whole of it was written
anew is shown only by a key or an anchor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.audit_archive import archived, last_archived
from toolkit.chain import BEGINNING, Checked, Fault, Record, check, number, seal
from toolkit.errors import CallError

if TYPE_CHECKING:
    from toolkit.state import Database, State

SHORTEST = 16  # bytes of a key
# Made once, as every call needs it; a record is plain values, none of them in itself.
_encode = json.JSONEncoder(separators=(",", ":"), sort_keys=True, check_circular=False).encode
_LAST = "SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1"
# An intent without an outcome has no record yet, and one without items names no call in its own.
_CHANGED = (
    "SELECT DISTINCT call FROM op WHERE state != 'pending'"
    " AND EXISTS (SELECT 1 FROM item WHERE item.op = op.id)"
)
_NAMED = re.compile(r'"call":"([^"\\]*)"')
_PAGE = "SELECT seq, body, prev, hash FROM audit WHERE seq > ? ORDER BY seq LIMIT 500"

Head = tuple[int, str]  # the number and the seal of the last record
_ADD = "INSERT INTO audit VALUES(?,?,?,?)"
ADD = f"{_ADD} ON CONFLICT(seq) DO NOTHING"  # nothing where another process was quicker


def after(head: Head, record: dict[str, Any], key: bytes | None) -> tuple[int, str, str, str]:
    """The row that puts a record after `head`, sealed with the key if there is one."""
    seq, prev = head[0] + 1, head[1]
    body = _encode({"seq": seq, **record})
    return seq, body, prev, seal(prev, body, key)


def append(
    db: Database, record: dict[str, Any], key: bytes | None, known: Head = BEGINNING, *, last: bool = False
) -> tuple[Head, Head]:
    """Add a record inside the caller's transaction; gives what it comes after, and itself.

    `known` is a record that the caller knows to have been written, and (`last`) that it takes for the last
    one: where it was taken out, the new one leaves a gap.
    """
    if last:
        values = after(known, record, key)
        if db.execute(ADD, values).rowcount == 1:
            return known, (values[0], values[3])
    head = max(_head(db.execute(_LAST).fetchone()), known, key=_number)
    values = after(head, record, key)
    db.execute(_ADD, values)
    return head, (values[0], values[3])


def _number(head: Head) -> int:
    return head[0]


def records(state: State, *, since: int = 0) -> Iterator[dict[str, Any]]:
    """The records after number `since`, oldest first."""
    for page in pages(state, since):
        for _, body, *_ in page:
            yield json.loads(body)


def pages(state: State, since: int) -> Iterator[list[Any]]:
    """The rows after number `since`, oldest first, some at a time: number, text, seal before, own seal."""
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


def seal_of(state: State, seq: int) -> str | None:
    """The seal of the record with this number; None where there is none."""
    for page in pages(state, seq - 1):
        return str(page[0][3]) if page[0][0] == seq else None
    return None


def matching(
    state: State,
    *,
    session: str | None = None,
    agent: str | None = None,
    tool: str | None = None,
    path: str | None = None,
    effect: str | None = None,
    since: float | None = None,
    after: int = 0,
) -> Iterator[dict[str, Any]]:
    """The records after number `after` that all the conditions fit; an agent's sub-agents count as it.

    `path` is a pattern as in a policy, `since` a time in POSIX seconds.
    """
    for record in records(state, since=after):
        named = str(record.get("agent", ""))
        decision = record.get("decision") or {}
        if (
            session in (None, record.get("session"))
            and (agent is None or named == agent or named.startswith(agent + "/"))
            and tool in (None, record.get("tool"))
            and effect in (None, decision.get("effect"))
            and (since is None or record.get("time", 0.0) >= since)
            and (path is None or any(_fits(path, one) for one in record.get("paths") or ()))
        ):
            yield record


def _fits(pattern: str, path: str) -> bool:
    from policy.machine import matches

    return matches(pattern, path, directory=True)


def verify(state: State) -> list[Fault]:
    """Every place at which the chain does not hold; an empty list is a whole chain."""
    return checked(state, state.key).faults


def checked(state: State, key: bytes | None = None, anchors: Iterable[tuple[int, str]] = ()) -> Checked:
    """The chain checked, with the key it was sealed with, against what was anchored and against the history.

    A call that changed something is in the history, too, so that a log cut short or emptied shows.
    """
    # Before the records: a call that ends meanwhile has its record by then.
    unrecorded = {str(row[0]) for row in state.rows(_CHANGED)}

    def read() -> Iterator[Record]:
        for record in _as_written(state):
            unrecorded.difference_update(_NAMED.findall(record.body))
            yield record

    found = check(read(), key, anchors)
    return replace(found, unrecorded=len(unrecorded))


def _as_written(state: State) -> Iterator[Record]:
    for page in pages(state, -(1 << 63)):  # also of numbers made up by hand, below the first
        for seq, body, *rest in page:
            yield Record(seq, number(str(body)), str(body), *rest)


def read_key(given: bytes | str | Path | None) -> bytes | None:
    """The key given, or the one in its file. Raises CallError `history_unavailable`."""
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
    """The last record's number and seal: kept elsewhere, it shows a log that was written anew or cut."""
    return _head(next(iter(state.rows(_LAST)), None))


def _head(row: Any) -> Head:
    return BEGINNING if row is None else (int(row[0]), str(row[1]))
