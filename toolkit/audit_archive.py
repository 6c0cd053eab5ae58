"""Archive of the audit: the oldest records, packed in files beside the database, as lines of the same chain.

A file is on the disk under its final name before its records leave the database. No file is ever changed.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.audit_index import named
from toolkit.chain import line, parsed
from toolkit.private_files import private_directory
from toolkit.state_errors import unavailable

if TYPE_CHECKING:
    from toolkit.state import State

RECORDS = 10_000  # in one file; about as many of the newest, and up to twice as many, stay in the database
_STEP = 500  # rows that are read, or leave the database, in one go
_NAME = re.compile(r"([0-9]{12})-([0-9]{12})\.jsonl\.gz")
_SUMMARY = ".index.gz"  # instead of the ending of the file that it is of
_ROWS = "SELECT seq, body, prev, hash FROM audit WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"


def last_archived(folder: str | None) -> int:
    """The number of the last record that is in a file; 0 where none is."""
    return max((last for _, last, _ in _files(folder)), default=0)


def archived(folder: str | None, since: int) -> Iterator[list[Any]]:
    """The archived rows after number `since`, oldest first, some at a time, as `audit.pages` gives them.

    What cannot be read is left out: it is missing from the chain.
    """
    for _, last, path in _files(folder):
        if last <= since:
            continue
        rows: list[Any] = []
        for seq, *rest in _lines(path):
            if seq > since:
                rows.append((seq, *rest))
            if len(rows) == _STEP:
                yield rows
                rows = []
        if rows:
            yield rows


@dataclass(frozen=True, slots=True)
class Summary:
    """What the records of a file have, so that a search need not read it: kinds with their number, sessions,
    paths, the first and the last time."""

    kinds: dict[str, int]
    sessions: frozenset[str]
    paths: frozenset[str]
    since: float
    until: float


class Packed(NamedTuple):
    """A file of the archive: the numbers of its first and its last record."""

    first: int
    last: int
    path: Path

    def records(self) -> list[tuple[int, str]]:
        """The records in it, oldest first: number and text. What cannot be read is left out."""
        return [(seq, body) for seq, body, _, _ in _lines(self.path)]

    def summary(self) -> Summary | None:
        """None where it is not there, or not to be read: then the records tell."""
        import gzip

        try:
            with gzip.open(_summary_of(self.path), "rt", encoding="ascii") as file:
                found = json.load(file)
            sessions, places = frozenset(found["sessions"]), frozenset(found["paths"])
            return Summary(found["kinds"], sessions, places, found["since"], found["until"])
        except (OSError, EOFError, zlib.error, ValueError, KeyError, TypeError):
            return None


def packed(folder: str | None) -> list[Packed]:
    """The files of the archive, the oldest first."""
    return [Packed(*row) for row in _files(folder)]


def archive(state: State, go_on: Callable[[], bool]) -> int:
    """Move the oldest records out of the database, if there are very many; how many were moved.

    May be killed at any moment: a record is in a file, in the database or in both, and counts once.
    """
    folder = state.archive
    if folder is None:
        return 0
    moved = 0
    while True:
        done = last_archived(folder)
        moved += _leave(state, done, go_on)
        ((newest,),) = state.rows("SELECT coalesce(max(seq), 0) FROM audit")
        if newest - done < 2 * RECORDS or not go_on():
            return moved
        try:
            _pack(state, folder, done)
        except OSError as error:
            raise unavailable(error) from None


def _pack(state: State, folder: str, done: int) -> None:
    import gzip  # slow to import, and seldom needed

    private_directory(folder)
    end = done + RECORDS
    name = f"{done + 1:012}-{end:012}.jsonl.gz"
    part = Path(folder, "part")  # of one that was killed, too: there is one turn for all
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as raw:
        with gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as packed:
            since = done
            while rows := state.rows(_ROWS, (since, end, _STEP)):
                packed.writelines(line(body, prev, seal).encode() for _, body, prev, seal in rows)
                since = int(rows[-1][0])
        raw.flush()
        os.fsync(raw.fileno())
    _summarize(state, _summary_of(Path(folder, name)), done, end)
    part.rename(part.with_name(name))
    at = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(at)
    finally:
        os.close(at)


def _summarize(state: State, path: Path, done: int, end: int) -> None:
    """Write what the records have beside them; a search goes without it where that fails half-way."""
    import gzip

    within = "seq > ? AND seq <= ?"
    kinds = state.rows(f"SELECT kind, count(*) FROM audit WHERE {within} GROUP BY kind", (done, end))
    sessions = state.rows(f"SELECT DISTINCT session FROM audit WHERE {within}", (done, end))
    ((since, until),) = state.rows(f"SELECT min(time), max(time) FROM audit WHERE {within}", (done, end))
    places: set[str] = set()
    at = done
    while rows := state.rows(_ROWS, (at, end, _STEP)):
        places.update(path for _, body, _, _ in rows for path in named(json.loads(body)))
        at = int(rows[-1][0])
    found = {
        "kinds": {str(kind): int(count) for kind, count in kinds},
        "sessions": [str(name) for (name,) in sessions if name is not None],
        "paths": sorted(places),
        "since": since or 0.0,
        "until": until or 0.0,
    }
    with gzip.open(path, "wt", encoding="ascii") as file:
        json.dump(found, file)


def _summary_of(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".jsonl.gz") + _SUMMARY)


def _leave(state: State, done: int, go_on: Callable[[], bool]) -> int:
    """Take out of the database what is in files."""
    moved = 0
    while go_on():
        with state.transaction() as db:
            oldest = "SELECT seq, body FROM audit WHERE seq <= ? ORDER BY seq LIMIT ?"
            rows = db.execute(oldest, (done, _STEP)).fetchall()
            count = len(rows)
            places = [(path, seq) for seq, body in rows for path in named(json.loads(body))]
            db.executemany("DELETE FROM audit_path WHERE path = ? AND seq = ?", places)
            db.executemany("DELETE FROM audit WHERE seq = ?", [(seq,) for seq, _ in rows])
        moved += count
        if count < _STEP:
            break
        state.give_back(_STEP)
    return moved


def _files(folder: str | None) -> list[tuple[int, int, Path]]:
    try:
        found = list(Path(folder).iterdir()) if folder is not None else []
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unavailable(error) from None
    matches = ((_NAME.fullmatch(path.name), path) for path in found)
    return sorted((int(match[1]), int(match[2]), path) for match, path in matches if match)


def _lines(path: Path) -> Iterator[tuple[int, str, str, str]]:
    import gzip

    try:
        with gzip.open(path, "rt", encoding="ascii", errors="replace") as file:
            for text in file:
                record = parsed(text.rstrip("\n"))
                if record is not None:
                    yield record.seq, record.body, record.prev, record.hash
    except (OSError, EOFError, zlib.error):
        return
