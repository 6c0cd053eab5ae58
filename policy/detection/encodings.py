"""Content as text: UTF-16 or UTF-32 with a byte order mark, or UTF-8 in which other bytes are kept (PEP 383).

Offsets in the text lead back to offsets in the bytes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_UTF32 = {codecs.BOM_UTF32_LE: "utf-32-le", codecs.BOM_UTF32_BE: "utf-32-be"}
_UNIT = {"utf-8": 1, "utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
_TWO_UNITS = re.compile("[\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Encoding:
    """How the bytes of a content are read; `mark` is the length of the byte order mark."""

    codec: str
    errors: str
    mark: int

    def text(self, data: bytes) -> str:
        """Return the whole text, without the byte order mark."""
        return data[self.mark : _whole(data, self)].decode(self.codec, self.errors)

    @property
    def unit(self) -> int:
        """How many bytes a unit of the text has."""
        return _UNIT[self.codec]

    def encode(self, text: str) -> bytes:
        """Return the bytes of a part of the text."""
        return text.encode(self.codec, self.errors)


_PLAIN = Encoding("utf-8", "surrogateescape", 0)
_FIRST_OF_MARKS = {mark[:1] for mark in (*_UTF16, *_UTF32, codecs.BOM_UTF8)}


def encoding(data: bytes) -> Encoding:
    """Return how these bytes are read."""
    if data[:1] not in _FIRST_OF_MARKS:
        return _PLAIN
    wide = _UTF32.get(data[:4])
    if wide and _is_valid(data[4:], wide):
        return Encoding(wide, "strict", 4)
    codec = _UTF16.get(data[:2])
    if codec:
        return Encoding(codec, "surrogatepass", 2)
    return Encoding("utf-8", "surrogateescape", 3) if data.startswith(codecs.BOM_UTF8) else _PLAIN


def _is_valid(data: bytes, codec: str) -> bool:
    # The mark of UTF-32 is also that of UTF-16 before a NUL.
    try:
        data.decode(codec)
    except UnicodeDecodeError:
        return False
    return True


def ascii_units(data: bytes, how: Encoding) -> tuple[bytes, int]:
    """Return one byte for each unit of the text, and how many bytes a unit has; the byte order mark is left
    out of UTF-16 and UTF-32 and stays in UTF-8. Units that are not ASCII are bytes that no token contains.
    """
    if how.codec == "utf-8":
        return data, 1
    text = how.text(data) if how.unit == 4 else _TWO_UNITS.sub("\x80\x80", how.text(data))
    return text.encode("latin-1", "replace"), how.unit


def byte_spans(data: bytes, how: Encoding, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans of characters, which ascend and do not overlap, as spans of bytes."""
    text, at, offset = how.text(data), 0, how.mark
    for start, end in spans:
        first = offset + len(how.encode(text[at:start]))
        at, offset = end, first + len(how.encode(text[start:end]))
        yield first, offset


def _whole(data: bytes, how: Encoding) -> int:
    """The end of the last whole unit."""
    return len(data) - len(data) % how.unit
