"""Segments of the audit archive: packed records with a summary, as files beside a database or rows in one.

A segment exists completely or not at all, and never changes. Its content is opaque here.
"""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from ringfence.toolkit.private_files import private_directory
from ringfence.toolkit.state.errors import unavailable

Span = tuple[int, int]  # the numbers of a segment's first and last record
_NAME = re.compile(r"([0-9]{12})-([0-9]{12})\.jsonl\.gz")


class Segments(Protocol):
    """The segments of one state. Methods raise CallError `history_unavailable`."""

    def spans(self) -> list[Span]:
        """Return the first and last record number of each segment, oldest first."""

    def lines(self, span: Span) -> bytes:
        """Return the packed records of a segment; empty where they cannot be read."""

    def summary(self, span: Span) -> bytes:
        """Return the packed summary of a segment; empty where it is missing or cannot be read."""

    def put(self, span: Span, lines: bytes, summary: bytes) -> None:
        """Add a segment; it is on disk when this returns."""


class FileSegments:
    """Segments as files in a directory; a file's name holds the span."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    def spans(self) -> list[Span]:
        """Return the spans in the names of the files, oldest first."""
        try:
            names = [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unavailable(error) from None
        matches = map(_NAME.fullmatch, names)
        return sorted((int(match[1]), int(match[2])) for match in matches if match)

    def lines(self, span: Span) -> bytes:
        """Return the content of the file with the packed records; empty where it cannot be read."""
        return _read(self._path(span, ".jsonl.gz"))

    def summary(self, span: Span) -> bytes:
        """Return the content of the file with the packed summary; empty where it cannot be read."""
        return _read(self._path(span, ".index.gz"))

    def put(self, span: Span, lines: bytes, summary: bytes) -> None:
        """Write both files and sync them. CallError `history_unavailable`."""
        try:
            private_directory(str(self._folder))
            part = self._folder / "part"  # also of a killed process: archiving is serialized
            _write(part, lines)
            _write(self._path(span, ".index.gz"), summary)
            part.rename(self._path(span, ".jsonl.gz"))
            at = os.open(self._folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(at)
            finally:
                os.close(at)
        except OSError as error:
            raise unavailable(error) from None

    def _path(self, span: Span, ending: str) -> Path:
        return self._folder / f"{span[0]:012}-{span[1]:012}{ending}"


class _Execute(Protocol):
    def execute(self, sql: str, values: Any = ..., /) -> Any: ...


class _Tables(Protocol):
    """The methods of a state that segments in a table need."""

    def rows(self, sql: str, values: tuple[Any, ...] = ...) -> list[Any]: ...

    def transaction(self, *, durable: bool = ...) -> AbstractContextManager[_Execute]: ...


class TableSegments:
    """Segments as rows of a table, for all machines that share a database."""

    def __init__(self, state: _Tables) -> None:
        self._state = state

    def spans(self) -> list[Span]:
        """Return the spans in the table, oldest first."""
        rows = self._state.rows("SELECT first, last FROM audit_pack ORDER BY first")
        return [(int(first), int(last)) for first, last in rows]

    def lines(self, span: Span) -> bytes:
        """Return the packed records of a segment; empty without its row."""
        return self._column("lines", span)

    def summary(self, span: Span) -> bytes:
        """Return the packed summary of a segment; empty without its row."""
        return self._column("summary", span)

    def put(self, span: Span, lines: bytes, summary: bytes) -> None:
        """Insert the row in a durable transaction of its own."""
        add = "INSERT INTO audit_pack VALUES(?,?,?,?) ON CONFLICT(first, last) DO NOTHING"
        with self._state.transaction(durable=True) as db:
            db.execute(add, (*span, lines, summary))

    def _column(self, name: str, span: Span) -> bytes:
        rows = self._state.rows(f"SELECT {name} FROM audit_pack WHERE first = ? AND last = ?", span)
        return bytes(rows[0][0]) if rows else b""


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _write(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
