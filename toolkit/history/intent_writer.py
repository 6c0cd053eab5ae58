"""Writer of an intent's items with their old contents, in batches inside the intent's transaction.

A remote database gets one request for many items; only a few megabytes wait in memory.
"""

from __future__ import annotations

import zlib
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.content_files import FILED, LARGE
from ringfence.toolkit.history.records import Item
from ringfence.toolkit.plan.content import StreamedContent, digest_of, length, pieces, whole
from ringfence.toolkit.state.errors import unavailable

if TYPE_CHECKING:
    from ringfence.toolkit.history.content_files import ContentFiles
    from ringfence.toolkit.state.protocol import Database

_SMALL = 64
# Up to this many bytes: a compression window that holds all of them, and the memory for tables.
_TABLES = (8 << 10, 13, 6), (16 << 10, 14, 7)
_BATCH, _BYTES = 64, 4 << 20
_COLUMNS = ("op", "n", "state", *Item._fields)


class IntentWriter:
    """Writes the items of operation `op`; `flush` writes the last batch."""

    def __init__(self, db: Database, op: int, content_files: ContentFiles | None) -> None:
        self._db, self._op, self._content_files = db, op, content_files
        self._rows: list[tuple[Any, ...]] = []
        self._contents: dict[str, bytes | StreamedContent] = {}
        self._size = 0

    def add(self, n: int, item: Item, state: str) -> None:
        """Add step `n` of the operation, with its content, in a state; rows are written in batches."""
        before, after = self._noted(item.before), self._noted(item.after)
        if before is not item.before or after is not item.after:
            item = item._replace(before=before, after=after)
        self._rows.append((self._op, n, state, *item))
        if len(self._rows) >= _BATCH or self._size > _BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the rows that wait, and the contents that the history does not have yet."""
        marks = ",".join("?" * len(self._contents))
        if marks:
            found = self._db.execute(f"SELECT hash FROM blob WHERE hash IN ({marks})", tuple(self._contents))
            stored = {row[0] for row in found.fetchall()}
            new = [(digest, content) for digest, content in self._contents.items() if digest not in stored]
            if new:
                self._db.executemany(
                    "INSERT INTO blob VALUES(?,?,?,?)",
                    [(digest, length(content), *self._packed(content)) for digest, content in new],
                )
        if self._rows:
            self._insert(self._rows)
        self._rows, self._contents, self._size = [], {}, 0

    def _insert(self, rows: list[tuple[Any, ...]]) -> None:
        # A column without any value is left out: to pass a None costs more than to pass a text.
        used = [at for at, column in enumerate(zip(*rows, strict=True)) if column.count(None) < len(rows)]
        names, marks = ", ".join(_COLUMNS[at] for at in used), ",".join("?" * len(used))
        self._db.executemany(f"INSERT INTO item({names}) VALUES({marks})", list(map(itemgetter(*used), rows)))

    def _noted(self, content: bytes | StreamedContent | str | None) -> str | None:
        if content is None or isinstance(content, str):
            return content
        digest = digest_of(content)
        if digest not in self._contents:
            self._contents[digest] = content
            self._size += length(content)
        return digest

    def _packed(self, content: bytes | StreamedContent) -> tuple[int, bytes]:
        """Return how content is stored, and the part that is in the row itself."""
        if (
            length(content) > LARGE
            and self._content_files is not None
            and self._content_files.folder is not None
        ):
            try:
                digest, _ = self._content_files.put(pieces(content))
            except OSError as error:
                raise unavailable(error) from None
            if digest != digest_of(content):
                raise CallError("path_changed", "The content changed while it was kept")
            return FILED, b""
        content = whole(content)
        packed = _compressed(content) if len(content) > _SMALL else content
        return (1, packed) if len(packed) < len(content) * 0.95 else (0, content)


def _compressed(content: bytes) -> bytes:
    # zlib's usual tables take 256 KiB, allocated each time: for a few lines that is most of the work.
    window, tables = next((row[1:] for row in _TABLES if len(content) <= row[0]), (15, 8))
    packer = zlib.compressobj(1, zlib.DEFLATED, window, tables)
    return packer.compress(content) + packer.flush()
