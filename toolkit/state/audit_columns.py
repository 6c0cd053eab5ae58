"""Columns and index of audit records: time, session, kind and path, by which a search finds a record.

A new record has them in its own row only. Each PART records the index takes them in, many to a page: an entry
in each of its tables at every call would change four more pages.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import Database


PART = 256  # records that the index takes in at once
# What was a record's alone, by number; paths of a record that names several are in the index at once.
_INDEX = tuple(
    f"INSERT INTO audit_{name} SELECT {name}, seq FROM audit"
    f" WHERE seq > ? AND seq <= ? AND {name} IS NOT NULL ON CONFLICT DO NOTHING"
    for name in ("session", "kind", "path")
)
_ADD_PART = (
    "INSERT INTO audit_part(last, first, since, until) SELECT max(seq), min(seq), min(time), max(time)"
    " FROM audit WHERE seq > ? AND seq <= ?"
)
_NEXT = "SELECT max(seq) FROM (SELECT seq FROM audit WHERE seq > ? ORDER BY seq LIMIT ?) AS part"

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


@dataclass(frozen=True, slots=True)
class Kind:
    """Values that many records share and that searches use."""

    event: str | None
    agent: str | None
    tool: str | None
    outcome: str | None
    by: str | None
    effect: str | None
    rule: tuple[str | None, ...] | None  # tier, agent, key and pattern
    would: str | None = None  # the effect with the rules on trial, where it is another one

    @property
    def is_approved(self) -> bool:
        """Whether a grant allowed the call. A person's own act has a name too, but no rule judges it."""
        return self.event == "call" and self.by is not None and self.effect is not None


def columns(record: dict[str, Any]) -> tuple[float | None, str | None, str]:
    """Return the columns of a record: its time in POSIX seconds, its session and its kind."""
    time, session = record.get("time"), record.get("session")
    return (
        float(time) if isinstance(time, int | float) else None,
        stored(session) if isinstance(session, str) else None,
        kind_of(record),
    )


def kind_of(record: dict[str, Any]) -> str:
    """Return the kind of a record as the text that the column stores."""
    decision = record.get("decision")
    decision = decision if isinstance(decision, dict) else {}
    rule = decision.get("rule")
    # If a limit decided, no rule did.
    decided = None
    if isinstance(rule, dict) and not decision.get("limit"):
        decided = rule.get("tier"), rule.get("agent"), rule.get("key"), rule.get("pattern")
    field, outcome = record.get, record.get("outcome")
    tool = None if outcome == "unknown_tool" else field("tool")  # the number of unknown names is unbounded
    kind: tuple[Any, ...]
    kind = field("event"), field("agent"), tool, outcome, field("by"), decision.get("effect"), decided
    would = record.get("would")
    if isinstance(would, dict):
        kind = (*kind, would.get("effect"))
    try:
        return _text(kind)
    except TypeError:  # values that no record of ours has cannot be remembered
        return _encode(kind)


# Records have few kinds, and every call needs the text of one.
_text = lru_cache(1024)(_encode)


def parse(kind: str) -> Kind:
    """Return the kind that a column's text stands for."""
    event, agent, tool, outcome, by, effect, rule, *would = json.loads(kind)
    return Kind(event, agent, tool, outcome, by, effect, None if rule is None else tuple(rule), *would)


def named(record: dict[str, Any]) -> list[str]:
    """Return the paths by which a record is found."""
    found = record.get("paths")
    rows = found if isinstance(found, list) else []
    return list(dict.fromkeys([stored(path) for path in rows if isinstance(path, str)]))


def stored(text: str) -> str:
    """Return the text in a form that every database can store."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def index(db: Database, last: int) -> None:
    """Take the records up to number `last`, the newest one, into the index that it does not have yet."""
    # The log was cut short if the index has later ones: then what was added since is not in it.
    db.execute("DELETE FROM audit_part WHERE last >= ?", (last,))
    (done,) = db.execute("SELECT coalesce(max(last), 0) FROM audit_part").fetchone()
    for statement in (*_INDEX, _ADD_PART):
        db.execute(statement, (int(done), last))


def index_all(db: Database) -> None:
    """Take all records into the index, in parts."""
    last = 0
    while (found := db.execute(_NEXT, (last, PART)).fetchone()[0]) is not None:
        last = int(found)
        index(db, last)


def fill(db: Database) -> None:
    """Fill the columns of records that an older version wrote."""
    last = 0
    while rows := db.execute(
        "SELECT seq, body FROM audit WHERE seq > ? ORDER BY seq LIMIT 500", (last,)
    ).fetchall():
        read = [(int(seq), _read(str(body))) for seq, body in rows]
        db.executemany(
            "UPDATE audit SET time = ?, session = ?, kind = ? WHERE seq = ?",
            [(*columns(record), seq) for seq, record in read],
        )
        places = [(path, seq) for seq, record in read for path in named(record)]
        if places:
            db.executemany("INSERT INTO audit_path VALUES(?,?)", places)
        last = int(rows[-1][0])


def _read(body: str) -> dict[str, Any]:
    try:
        found = json.loads(body)
    except ValueError:
        return {}  # altered by hand; the chain check reports it
    return found if isinstance(found, dict) else {}
