"""Rows of an SQLite file page by page, reachable or not. Source: sqlite.org/fileformat2.

Also yields old versions of rows in pages that are free now: the caller must judge each row by its content.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LEAF, _INDEX_LEAF, _INDEX = 0x0D, 0x0A, 0x02
_HEADER = 100  # of the file, at the beginning of its first page
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes of each type of integer
_FLOAT, _ZERO, _ONE, _BLOB = 7, 8, 9, 12

# The number of a row where its table numbers them, and its values.
Row = tuple[int | None, tuple[Any, ...]]


def rows_of(file: Path) -> Iterator[Row]:
    """Yield every row that a page of the file holds completely."""
    with file.open("rb") as opened:
        header = opened.read(_HEADER)
        size = int.from_bytes(header[16:18], "big")
        size = 1 << 16 if size == 1 else size
        pages = _Pages(opened, size, size - header[20])
        number = 1
        while page := pages.read(number):
            yield from _rows(pages, page, _HEADER if number == 1 else 0)
            number += 1


class _Pages:
    def __init__(self, file: Any, size: int, usable: int) -> None:
        self._file, self._size, self.usable = file, size, usable

    def read(self, number: int) -> bytes:
        self._file.seek((number - 1) * self._size)
        found: bytes = self._file.read(self._size)
        return found if len(found) == self._size else b""


def _rows(pages: _Pages, page: bytes, start: int) -> Iterator[Row]:
    kind = page[start]
    if kind not in (_LEAF, _INDEX_LEAF, _INDEX):
        return
    first = start + (12 if kind == _INDEX else 8)
    count = int.from_bytes(page[start + 3 : start + 5], "big")
    for n in range(min(count, len(page) // 2)):
        at = int.from_bytes(page[first + 2 * n : first + 2 * n + 2], "big")
        try:
            yield _cell(pages, page, at + (4 if kind == _INDEX else 0), numbered=kind == _LEAF)
        except (IndexError, ValueError, struct.error):
            continue  # not a complete row


def _cell(pages: _Pages, page: bytes, at: int, *, numbered: bool) -> Row:
    size, at = _number(page, at)
    row: int | None = None
    if numbered:
        row, at = _number(page, at)
    return row, _values(_payload(pages, page, at, size, numbered=numbered))


def _payload(pages: _Pages, page: bytes, at: int, size: int, *, numbered: bool) -> bytes:
    """Return the bytes of a row; a row longer than its page continues in others."""
    usable = pages.usable
    most = usable - 35 if numbered else (usable - 12) * 64 // 255 - 23
    if size <= most:
        return _cut(page, at, size)
    least = (usable - 12) * 32 // 255 - 23
    here = least + (size - least) % (usable - 4)
    here = here if here <= most else least
    found = [_cut(page, at, here)]
    left, following = size - here, int.from_bytes(_cut(page, at + here, 4), "big")
    while left > 0:
        more = pages.read(following) if following else b""
        if not more:
            raise ValueError("cut off")
        found.append(more[4 : min(usable, 4 + left)])
        left -= len(found[-1])
        following = int.from_bytes(more[:4], "big")
    return b"".join(found)


def _values(payload: bytes) -> tuple[Any, ...]:
    end, at = _number(payload, 0)
    kinds = []
    while at < end:
        kind, at = _number(payload, at)
        kinds.append(kind)
    found, at = [], end
    for kind in kinds:
        size = _INTEGERS.get(kind, 8 if kind == _FLOAT else max(kind - _BLOB, 0) // 2)
        found.append(_value(kind, _cut(payload, at, size)))
        at += size
    return tuple(found)


def _value(kind: int, data: bytes) -> Any:
    if kind == 0:
        return None
    if kind in _INTEGERS:
        return int.from_bytes(data, "big", signed=True)
    if kind == _FLOAT:
        return struct.unpack(">d", data)[0]
    if kind in (_ZERO, _ONE):
        return kind - _ZERO
    if kind < _BLOB:
        raise ValueError("no such type")
    return data.decode("utf-8", "replace") if kind % 2 else data


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of one to nine bytes (a varint), and the offset behind it."""
    found = 0
    for n in range(8):
        found = found << 7 | data[at + n] & 0x7F
        if not data[at + n] & 0x80:
            return found, at + n + 1
    found = found << 8 | data[at + 8]
    return found - (1 << 64) if found >> 63 else found, at + 9


def _cut(data: bytes, at: int, size: int) -> bytes:
    found = data[at : at + size]
    if len(found) != size:
        raise ValueError("cut off")
    return found
