"""Activity around a request: the last call of its session, what else changed there, sizes of what would go.

Reads the state and the workspace; changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.grant_patterns import literal
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.backend import at
from ringfence.toolkit.storage.guarantees import is_restorable

FILES = 1000  # files whose sizes are read
_RECENT = 3600.0  # seconds that somebody else's change counts as recent
_RECORDS = 50


@dataclass(frozen=True, slots=True)
class File:
    """A file that would be deleted; `size` in bytes, `kept`: it could be restored."""

    path: str
    size: int | None
    kept: bool


@dataclass(frozen=True, slots=True)
class Part:
    """Files that would go, in one entry of the deleted directory."""

    name: str
    directory: bool
    files: int
    size: int | None
    lost: int


@dataclass(frozen=True, slots=True)
class Other:
    """Another session that changed paths of a request lately."""

    session: str
    agent: str
    time: float
    paths: tuple[str, ...]


def last_call(session: Session, name: str) -> float | None:
    """Return the time of the last record of a session, in POSIX seconds; None if there is none."""
    found = audit.newest(session.state, audit.RecordFilter(session=name), 1)
    return float(found[0]["time"]) if found and found[0].get("time") is not None else None


def others(session: Session, request: Request, now: float | None = None) -> list[Other]:
    """Return the other sessions that changed what a request changes in the last hour, latest first."""
    since = (time.time() if now is None else now) - _RECENT
    found: dict[str, Other] = {}
    mine, known = request.session.partition("/")[0], set(request.paths)
    for path in request.paths[:1]:
        wanted = audit.RecordFilter(path=literal(path), since=since, outcome="done")
        try:
            records = audit.newest(session.state, wanted, _RECORDS)
        except ValueError:
            return []  # a path that no pattern can name
        for record in reversed(records):
            name, decision = str(record.get("session")), record.get("decision") or {}
            changed = tuple(each for each in record.get("paths") or () if each in known)
            if name.partition("/")[0] == mine or decision.get("action") == "read" or not changed:
                continue
            found.setdefault(name, Other(name, str(record.get("agent")), float(record["time"]), changed))
    return list(found.values())


def files(session: Session, paths: Iterable[str]) -> list[File]:
    """Return the sizes of files that would be deleted, and whether each could be restored."""
    backend, found = session.workspace.backend, []
    for path in list(paths)[:FILES]:
        try:
            with at(backend, path) as spot:
                stat = backend.stat(spot)
        except CallError:
            stat = None  # an unreachable path is not removed
        size = None if stat is None else stat.size
        found.append(File(path, size, stat is None or is_restorable(path, stat, backend.traits)))
    return found


def parts(root: str, found: Iterable[File]) -> list[Part]:
    """Return the files below a directory by its entries: those with losses first, then the largest."""
    groups: dict[str, list[File]] = {}
    for file in found:
        name, slash, _ = file.path.removeprefix(f"{root}/").partition("/")
        groups.setdefault(name + slash, []).append(file)
    rows = [
        Part(
            name,
            name.endswith("/"),
            len(group),
            sum(file.size or 0 for file in group) if any(file.size is not None for file in group) else None,
            sum(not file.kept for file in group),
        )
        for name, group in groups.items()
    ]
    return sorted(rows, key=lambda row: (-row.lost, -(row.size or 0), row.name))
