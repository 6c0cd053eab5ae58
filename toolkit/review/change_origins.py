"""Origins of changes: which call of a session changed a path last, by which rule, and who changed it since.

Reads the history and a bounded number of audit records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.records import DONE
from ringfence.toolkit.plan.changes import DIRECTORY
from ringfence.toolkit.review.call_rows import CallRow
from ringfence.toolkit.session.session import Session

LOOKED_AT = 5_000  # records of one session that are read to find its calls
_AT_ONCE = 400  # values in one query


@dataclass(frozen=True, slots=True)
class Touch:
    """One change of a path: `op` orders the changes, `time` is in POSIX seconds; `undoes` of an undo."""

    op: int
    kind: str
    call: str
    session: str
    agent: str
    time: float
    undoes: str | None
    before: str | None


@dataclass(frozen=True, slots=True)
class Origin:
    """Who changed a path: the session's last change of it, how many there were, and a later one by others."""

    last: Touch
    times: int
    later: Touch | None
    row: CallRow | None = None  # the call of the last change, where its record is kept


def is_in(name: str, session: str) -> bool:
    """Whether a session is this one or one of its sub-sessions."""
    return name == session or name.startswith(f"{session}/")


def touches(session: Session, paths: Sequence[str]) -> dict[str, list[Touch]]:
    """Return the changes of each path, the oldest first; those of directories are left out."""
    found: dict[str, list[Touch]] = {path: [] for path in paths}
    for start in range(0, len(paths), _AT_ONCE):
        some = tuple(paths[start : start + _AT_ONCE])
        marks = ",".join("?" * len(some))
        for column in ("path", "path2"):
            rows = session.state.rows(
                f"SELECT item.{column}, op.id, item.kind, op.call, op.session, op.agent, op.started,"
                f" op.undoes, item.before FROM item JOIN op ON op.id = item.op"
                f" WHERE item.{column} IN ({marks}) AND item.state = ? AND item.type != ?",
                (*some, DONE, DIRECTORY),
            )
            for path, op, kind, call, name, agent, time, undoes, before in rows:
                touch = Touch(int(op), kind, call, name, agent, float(time), undoes, before)
                found[str(path)].append(touch)
    for each in found.values():
        each.sort(key=lambda one: one.op)
    return found


def origins(session: Session, name: str, paths: Sequence[str]) -> dict[str, Origin]:
    """Return the origin of each path that a session or a sub-session changed, without its call."""
    found: dict[str, Origin] = {}
    for path, every in touches(session, paths).items():
        own = [one for one in every if is_in(one.session, name)]
        if own:
            later = next((one for one in reversed(every) if one.op > own[-1].op), None)
            found[path] = Origin(own[-1], len({one.op for one in own}), later)
    return found


def calls(session: Session, wanted: Iterable[tuple[str, str]]) -> dict[str, CallRow]:
    """Return calls by their id, each given with its session; those without a record are left out."""
    by_session: dict[str, set[str]] = {}
    for call, name in wanted:
        by_session.setdefault(name, set()).add(call)
    found: dict[str, CallRow] = {}
    for name, missing in by_session.items():
        for record in _records(session, name):
            if record.get("event") == "call" and record.get("call") in missing:
                found[str(record["call"])] = _row(session, record)
                missing.discard(str(record["call"]))
                if not missing:
                    break
    return found


def _row(session: Session, record: Mapping[str, Any]) -> CallRow:
    approval = record.get("approval")
    row = CallRow(record, covered=bool(record.get("granted_for")), records=[record])
    if isinstance(approval, str):
        with suppress(CallError):  # no longer kept
            row.asked = session.approvals.get(approval)
    return row


def _records(session: Session, name: str) -> Iterator[Mapping[str, Any]]:
    wanted = audit.RecordFilter(session=name)
    return islice(audit.matching(session.state, wanted, back=True), LOOKED_AT)
