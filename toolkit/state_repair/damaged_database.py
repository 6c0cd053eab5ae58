"""Rows of a damaged SQLite database: reads the readable ones and skips the rest.

Works on a copy, which it may repair; rows may be wrong, so the caller has to check them.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ringfence.toolkit.private_files import private_file

_MAGIC = b"SQLite format 3\0"
_HEADER = 100
_COUNT = slice(28, 32)  # pages, in the header
_FREE = slice(32, 40)  # pages that are free
_LOGGED = slice(18, 20)  # 2, 2: a log is used
_MANY = 200
_STEPS = 4096  # rows that are tried singly after a damaged place; then more and more at once
_LAST = 1 << 40
_FIRST = -(1 << 63)


def copy_to_read(database: Path, to: Path, pattern: Path) -> sqlite3.Connection | None:
    """Return a connection to a copy of a database and its log; None for an empty database.

    A truncated file is padded; a lost header is taken from `pattern`, an intact database of the same schema.
    """
    if not database.exists():
        return None
    for suffix in ("", "-wal"):
        source = database.with_name(database.name + suffix)
        if source.exists():
            private_file(f"{to}{suffix}")
            shutil.copyfile(source, f"{to}{suffix}")
    if not _mend(to, pattern):
        return None
    db = sqlite3.connect(to, isolation_level=None)
    with suppress(sqlite3.Error):
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # all of it in one file
    db.text_factory = lambda text: text.decode("utf-8", "replace")
    return db


def _mend(file: Path, pattern: Path) -> bool:
    with file.open("r+b") as copy:
        size = os.fstat(copy.fileno()).st_size
        header = bytearray(copy.read(_HEADER))
        if size < _HEADER:
            return False
        if not header.startswith(_MAGIC):
            header = bytearray(pattern.read_bytes()[:_HEADER])
            page = int.from_bytes(header[16:18], "big")
            header[_COUNT] = (size // page).to_bytes(4, "big")
            header[_FREE], header[_LOGGED] = bytes(8), b"\2\2"
            copy.seek(0)
            copy.write(header)
        page = int.from_bytes(header[16:18], "big")
        page = 1 << 16 if page == 1 else page
        whole = page * int.from_bytes(header[_COUNT], "big")
        if whole > size:
            copy.truncate(whole)
    return True


class DamagedTable:
    """One table of the database; `lost` tells whether some of it could not be read."""

    def __init__(self, db: sqlite3.Connection, name: str, columns: list[str]) -> None:
        self._db, self._name = db, name
        self.lost = False
        known: set[str] = set()
        try:
            known = {str(row[1]) for row in db.execute(f"PRAGMA table_info({name})").fetchall()}
        except sqlite3.Error:
            self.lost = True
        # An older schema has fewer tables and columns.
        self.columns = [column for column in columns if column in known]

    def by_number(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a table with row numbers, in order."""
        at: int | None = _FIRST
        many = _MANY
        while at is not None and self.columns:
            try:
                found = self._from(at, many)
            except sqlite3.Error:
                self.lost = True
                at, many = (at, 1) if many > 1 else (self._readable(max(at, 0)), 1)
                continue
            if not found:
                return
            for _, *row in found:
                yield tuple(row)
            at, many = int(found[-1][0]) + 1, _MANY

    def by_key(self, key: str, values: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a table ordered by its key, whose first column is `key`."""
        if not self.columns:
            return
        for order in ("", " DESC"):
            try:
                yield from self._db.execute(f"{self._select()} ORDER BY {key}{order}")
            except sqlite3.Error:
                self.lost = True
            else:
                return
        for value in values:
            with suppress(sqlite3.Error):
                yield from self._db.execute(f"{self._select()} WHERE {key} = ?", (value,)).fetchall()

    def _select(self, first: str = "") -> str:
        return f"SELECT {first}{', '.join(self.columns)} FROM {self._name}"

    def _from(self, at: int, many: int) -> list[Any]:
        select = self._select("rowid, ")
        return self._db.execute(f"{select} WHERE rowid >= ? ORDER BY rowid LIMIT ?", (at, many)).fetchall()

    def _readable(self, behind: int) -> int | None:
        """Return the next number from which a row can be read."""
        for at in range(behind + 1, behind + 1 + _STEPS):
            if self._reads(at):
                return at
        low, step = behind + _STEPS, _STEPS
        while not self._reads(low + step):
            low, step = low + step, step * 2
            if low > _LAST:
                return None
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._reads(middle) else (middle, high)
        return high

    def _reads(self, at: int) -> bool:
        try:
            self._from(at, 1)
        except sqlite3.Error:
            return False
        return True
