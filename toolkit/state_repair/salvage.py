"""Salvage: recovers the readable parts of a damaged state into a new one, which can replace it.

Keeps the damaged state. Accepts a content only if its digest matches, and reports losses.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.audit.hash_chain import BEGINNING, KEYED, Fault, Record, check, number, seal
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.content_files import FILED
from ringfence.toolkit.history.records import ABORTED, DONE, PARTIAL, PENDING, UNKNOWN
from ringfence.toolkit.private_files import private_directory, private_file
from ringfence.toolkit.state.audit_columns import fill, index_all
from ringfence.toolkit.state.errors import no_state, unavailable
from ringfence.toolkit.state.files import DATABASE, OF
from ringfence.toolkit.state.process_locks import living
from ringfence.toolkit.state.protocol import MEMORY, SHARED
from ringfence.toolkit.state.sqlite import build_database
from ringfence.toolkit.state_repair.check import filed_fault, row_fault
from ringfence.toolkit.state_repair.damaged_database import DamagedTable, copy_to_read
from ringfence.toolkit.state_repair.sqlite_pages import rows_of
from ringfence.toolkit.text import plural

_COPY = "damaged.db"
# Every table, with the column that its rows are kept in the order of; "" where they are numbered.
TABLES = {
    "blob": "",
    "op": "",
    "item": "op",
    "caught": "",
    "unsynced": "",
    "usage": "op",
    "spent": "session",
    "read_total": "session",
    "recent": "agent",
    "seen": "session",
    "audit": "",
    "approval": "",
    "meta": "",
}
_WORDS = {
    "blob": "contents",
    "op": "changes",
    "item": "paths changed",
    "caught": "deleted trees",
    "unsynced": "unsynced changes",
    "usage": "amounts of limits",
    "spent": "sums of old changes",
    "read_total": "sums of reading",
    "recent": "amounts of the last day",
    "seen": "files read",
    "audit": "audit records",
    "approval": "approvals",
    "meta": "facts of the state",
}
_DIGEST = re.compile(r"[0-9a-f]{64}")
_STATES = {PENDING, DONE, ABORTED, PARTIAL, UNKNOWN}
_SOME = "some; how many is unknown"


@dataclass(slots=True)
class Salvage:
    """The recovered parts of a state, in a directory beside it, and the lost parts, by name."""

    folder: str
    new: str
    recovered: dict[str, int] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether nothing was lost."""
        return not (self.lost or self.remarks)

    def lost_of(self, name: str) -> str:
        """Return in words how much of a part was lost; "" for nothing."""
        return self.lost.get(name, "")

    def to_json(self) -> dict[str, Any]:
        """Return the numbers of recovered and lost parts as JSON values."""
        return {"recovered": self.recovered, "lost": self.lost, "remarks": self.remarks}

    def take_its_place(self) -> str:
        """Exchange the two states; returns the new directory of the damaged one."""
        damaged = f"{self.folder}.damaged-{time.strftime('%Y%m%d-%H%M%S')}"
        os.rename(self.folder, damaged)
        os.rename(self.new, self.folder)
        for name in os.listdir(damaged):
            if not name.startswith(DATABASE) and name not in ("owners", "content", OF):
                os.rename(os.path.join(damaged, name), os.path.join(self.folder, name))
        return damaged


@contextmanager
def salvage_state(folder: str, key: bytes | None = None, *, by: str = "") -> Iterator[Salvage]:
    """Salvage the state in a directory; the copy is removed at the end unless it replaced the state.

    CallError where there is no state or a process uses it.
    """
    if folder.startswith(SHARED):
        hint = "use the database's own tools: a backup, or pg_dump of what can be read"
        raise CallError("invalid_arguments", "Only a state in a directory is salvaged", hint=hint)
    if folder == MEMORY or not os.path.isdir(folder) or not os.listdir(folder):
        raise no_state()
    if living(os.path.join(folder, "owners")):
        hint = "end every session in this workspace, then try again"
        raise CallError("history_unavailable", "A process uses this state", hint=hint)
    new = f"{folder}.salvaged"
    try:
        shutil.rmtree(new, ignore_errors=True)  # left by a killed process
        private_directory(new)
        found = Salvage(folder, new)
        _recover(found, key, by)
        yield found
    except (OSError, sqlite3.Error) as error:
        raise unavailable(error) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _recover(found: Salvage, key: bytes | None, by: str) -> None:
    target = Path(found.new, DATABASE)
    private_file(str(target))
    build_database(str(target))
    private_directory(os.path.join(found.new, "content"))
    source = copy_to_read(Path(found.folder, DATABASE), Path(found.new, _COPY), target)
    with closing(sqlite3.connect(target, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous=OFF")  # nobody uses it yet
        if source is None:
            found.remarks.append("the database is missing or empty: nothing of it can be recovered")
            found.recovered.update(dict.fromkeys(_WORDS.values(), 0))
        else:
            with closing(source):
                _copy_tables(found, source, db)
            _take_loose_rows(found, Path(found.new, _COPY), db)
            _name_changes(found, db)
        _take_files(found, db)
        _verify(found, db, key)
        fill(db)  # search columns and the index, which are computed again
        index_all(db)
        record = {"time": time.time(), "event": "state", "outcome": "salvaged", "by": by}
        audit.append(db, {**record, "recovered": found.recovered, "lost": found.lost}, key, BEGINNING)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for left in Path(found.new).glob(f"{_COPY}*"):
        left.unlink()
    with suppress(FileNotFoundError):
        private_file(os.path.join(found.new, OF))
        shutil.copyfile(os.path.join(found.folder, OF), os.path.join(found.new, OF))
    _sync(target)


def _copy_tables(found: Salvage, source: sqlite3.Connection, db: sqlite3.Connection) -> None:
    last = 0
    for name, key in TABLES.items():
        columns = [str(row[1]) for row in db.execute(f"PRAGMA table_info({name})")]
        table = DamagedTable(source, name, columns)
        numbers = range(1, last + _beyond(last))
        rows = table.by_key(key, numbers if key == "op" else ()) if key else table.by_number()
        if name == "blob":
            rows = _whole_ones(found, table.columns, rows)
        marks = ", ".join("?" * len(table.columns))
        put = f"INSERT OR IGNORE INTO {name}({', '.join(table.columns)}) VALUES({marks})"
        db.execute("BEGIN")
        for row in rows:
            with suppress(sqlite3.Error):  # values that this table cannot hold
                db.execute(put, row)
        db.execute("COMMIT")
        ((count,),) = db.execute(f"SELECT count(*) FROM {name}").fetchall()
        found.recovered[_WORDS[name]] = int(count)
        if table.lost:
            found.lost.setdefault(_WORDS[name], _SOME)
        if name == "op":
            ((last,),) = db.execute("SELECT coalesce(max(id), 0) FROM op").fetchall()


def _take_loose_rows(found: Salvage, file: Path, db: sqlite3.Connection) -> None:
    """Accept rows that no page leads to, if they prove themselves or recovery can check them.

    An approval that was used up, for example, might otherwise be granted again.
    """
    lost = {name for name, words in _WORDS.items() if words in found.lost} & _LOOSE.keys()
    if not lost:
        return
    db.execute("BEGIN")
    for at, values in rows_of(file):
        for name in lost:
            if len(values) in _LOOSE[name][0] and _LOOSE[name][1](found.folder, values):
                row = (at, *values[1:]) if values[0] is None else values
                columns = db.execute(f"PRAGMA table_info({name})").fetchall()
                names, marks = (
                    ", ".join(str(one[1]) for one in columns[: len(row)]),
                    ", ".join("?" * len(row)),
                )
                with suppress(sqlite3.Error):
                    db.execute(f"INSERT OR IGNORE INTO {name}({names}) VALUES({marks})", row)
    db.execute("COMMIT")
    for name in lost:
        ((count,),) = db.execute(f"SELECT count(*) FROM {name}").fetchall()
        found.recovered[_WORDS[name]] = int(count)


def _name_changes(found: Salvage, db: sqlite3.Connection) -> None:
    """Put changed paths of calls that are otherwise lost into a session of their own."""
    rows = (
        "SELECT op, max(state), count(DISTINCT state) FROM item"
        " WHERE op NOT IN (SELECT id FROM op) GROUP BY op"
    )
    unnamed = db.execute(rows).fetchall()
    db.executemany(
        "INSERT INTO op(id, call, session, owner, agent, tool, started, state, durable)"
        " VALUES(?, ?, 'salvaged', '', 'unknown', 'unknown', 0.0, ?, 1)",
        [(op, f"salvaged-{op}", state if kinds == 1 else PARTIAL) for op, state, kinds in unnamed],
    )
    if unnamed:
        calls = plural(len(unnamed), "change")
        found.remarks.append(f"of {calls} only the paths are left: they are in the session 'salvaged'")


def _is_record(_: str, row: tuple[Any, ...]) -> bool:
    return all(isinstance(value, str) for value in row[1:4]) and (
        row[3].startswith(KEYED) or seal(row[2], row[1]) == row[3]
    )


def _is_content(folder: str, row: tuple[Any, ...]) -> bool:
    return _is_whole(folder, row[0], row[2], row[3])


def _is_change(_: str, row: tuple[Any, ...]) -> bool:
    return row[0] is None and isinstance(row[7], float) and row[8] in _STATES


def _is_item(_: str, row: tuple[Any, ...]) -> bool:
    return isinstance(row[0], int) and isinstance(row[1], int) and row[14] in _STATES


# Tables whose loose rows are taken: how many columns they have or had, and what tells a row of theirs.
_LOOSE: dict[str, tuple[tuple[int, ...], Callable[[str, tuple[Any, ...]], bool]]] = {
    "audit": ((4, 7, 8), _is_record),
    "blob": ((4,), _is_content),
    "op": ((12,), _is_change),
    "item": ((15, 16), _is_item),
}


def _beyond(last: int) -> int:
    """Return how many changes to try after the last known one, as its own table may be damaged."""
    return 1000 + last // 10


def _whole_ones(found: Salvage, columns: list[str], rows: Iterator[Any]) -> Iterator[Any]:
    """Yield the contents that match their digest."""
    lost = 0
    for row in rows:
        content = dict(zip(columns, row, strict=True))
        if _is_whole(found.folder, content["hash"], content["packed"], content["data"]):
            yield row
        else:
            lost += 1
    if lost:
        found.lost[_WORDS["blob"]] = str(lost)


def _is_whole(folder: str, digest: Any, packed: Any, data: Any) -> bool:
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest) or not isinstance(data, bytes):
        return False
    return not (filed_fault(folder, digest) if packed == FILED else row_fault(digest, packed, data))


def _take_files(found: Salvage, db: sqlite3.Connection) -> None:
    """Accept the contents in files, also without a row; a file is hard-linked, because it never changes."""
    source, to = Path(found.folder, "content"), Path(found.new, "content")
    if not source.is_dir():
        return
    more = 0
    for file in sorted(source.iterdir()):
        if not _DIGEST.fullmatch(file.name) or filed_fault(found.folder, file.name):
            continue
        try:
            os.link(file, to / file.name)
        except OSError:
            private_file(str(to / file.name))
            shutil.copyfile(file, to / file.name)
        row = (file.name, file.stat().st_size, FILED, b"")
        more += db.execute("INSERT OR IGNORE INTO blob VALUES(?,?,?,?)", row).rowcount
    found.recovered[_WORDS["blob"]] += more


def _verify(found: Salvage, db: sqlite3.Connection, key: bytes | None) -> None:
    rows = db.execute("SELECT seq, body, prev, hash FROM audit ORDER BY seq")
    faults = check((Record(seq, number(body), body, prev, own) for seq, body, prev, own in rows), key).faults
    for first, last, what in _runs(faults):
        which = f"record {first}" if first == last else f"records {first} to {last}"
        found.remarks.append(f"the audit chain is broken at {which}: {what}")


def _runs(faults: list[Fault]) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    for fault in faults:
        if found and found[-1][1] == fault.seq - 1 and found[-1][2] == fault.what:
            found[-1] = (found[-1][0], fault.seq, fault.what)
        else:
            found.append((fault.seq, fault.seq, fault.what))
    return found


def _sync(file: Path) -> None:
    for place in (file, file.parent):
        fd = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
