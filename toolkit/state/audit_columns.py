"""Columns of the table of audit records: what is kept beside each record, so that it is found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringfence.toolkit.state.protocol import Database


_RULE = ("tier", "agent", "key", "pattern")


_FIELDS = ("event", "agent", "tool", "outcome", "by")


_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


@dataclass(frozen=True, slots=True)
class Kind:
    """What many records have in common, by which they are found."""

    event: str | None
    agent: str | None
    tool: str | None
    outcome: str | None
    by: str | None
    effect: str | None
    rule: tuple[str | None, ...] | None  # tier, agent, key and pattern

    @property
    def is_approved(self) -> bool:
        """Whether a grant let it through. A person's own act has a name, too, but nothing judges it."""
        return self.event == "call" and self.by is not None and self.effect is not None


def columns(record: dict[str, Any]) -> tuple[float | None, str | None, str]:
    """What is kept beside a record: its time, its session and its kind."""
    time, session = record.get("time"), record.get("session")
    return (
        float(time) if isinstance(time, int | float) else None,
        stored(session) if isinstance(session, str) else None,
        kind_of(record),
    )


def kind_of(record: dict[str, Any]) -> str:
    decision = record.get("decision")
    decision = decision if isinstance(decision, dict) else {}
    rule = decision.get("rule")
    # Where a limit decided, no rule did.
    decided = (
        [rule.get(part) for part in _RULE] if isinstance(rule, dict) and not decision.get("limit") else None
    )
    values = [record.get(name) for name in _FIELDS]
    if record.get("outcome") == "unknown_tool":
        values[2] = None  # anybody can think of any number of names
    return _encode([*values, decision.get("effect"), decided])


def parse(kind: str) -> Kind:
    event, agent, tool, outcome, by, effect, rule = json.loads(kind)
    return Kind(event, agent, tool, outcome, by, effect, None if rule is None else tuple(rule))


def named(record: dict[str, Any]) -> list[str]:
    """The paths that a record is found by."""
    found = record.get("paths")
    rows = found if isinstance(found, list) else []
    return list(dict.fromkeys(stored(path) for path in rows if isinstance(path, str)))


def stored(text: str) -> str:
    """The text as every database can keep it."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def fill(db: Database) -> None:
    """Write down for older records what is kept beside new ones."""
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
        return {}  # altered by hand; the check of the chain says so
    return found if isinstance(found, dict) else {}
