"""Byte edits of text files: inserts and replaces bytes and leaves all others unchanged.

Pure. Never decodes and encodes a file as a whole, so bytes outside the edit stay as they are.
"""

from __future__ import annotations

import re

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.text import split_lines

LF, CRLF = b"\n", b"\r\n"
BOM = b"\xef\xbb\xbf"


def newline(data: bytes) -> bytes:
    """Return CRLF if there are line feeds and each follows a carriage return; else LF."""
    ends = data.count(CRLF)
    return CRLF if ends and ends == data.count(LF) else LF


def with_newline(text: bytes, end: bytes) -> bytes:
    """Return `text` with each line end (LF or CRLF) replaced by `end`."""
    return re.sub(rb"\r?\n", end, text)


def check_encoding(data: bytes, at: int, text: bytes, shown: str) -> None:
    """Raise CallError `encoding_error` if the edit would mix encodings or split a character at `at`."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        if text.isascii() and (at == 0 or data[at - 1] < 0x80):
            return
        message = f"'{shown}' is not UTF-8 text; only whole stretches of ASCII in it can be edited"
        raise CallError("encoding_error", message, where="path") from None


def insert_lines(data: bytes, content: bytes, after: int) -> bytes:
    """Return `data` with `content` as whole lines after line `after`; a missing newline at the end stays
    missing.

    A byte order mark stays first. `after` is at most the number of lines.
    """
    end = newline(data)
    mark = BOM if data.startswith(BOM) else b""
    lines = split_lines(data[len(mark) :])
    head, tail = b"".join(lines[:after]), b"".join(lines[after:])
    block = with_newline(content, end) if end == CRLF else content
    if not lines:
        return mark + block
    if head and not head.endswith(LF):
        return mark + head + end + block.removesuffix(end)
    return mark + head + (block if block.endswith(LF) else block + end) + tail
