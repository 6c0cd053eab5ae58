r"""File names that are not valid UTF-8, as text: `\xNN` stands for each undecodable byte, 80 to ff.

Pure. The mapping is one to one: every name has exactly one text, and no two names share a text. Where the
name itself contains a backslash that would read as such a byte, the backslash is written as `\x5c`.
"""

from __future__ import annotations

import re

_BYTE = re.compile(r"\\x([89a-fA-F][0-9a-fA-F])")
_WRITTEN = re.compile(r"\\x([89a-f][0-9a-f]|5c)")
_RAW = re.compile("[\udc80-\udcff]")


def from_disk(name: str) -> str:
    """Return the text of a name as Python reports it, with a surrogate per undecodable byte (PEP 383)."""
    if "\\" in name:
        name = _WRITTEN.sub(r"\\x5cx\1", name)
    if name.isascii():
        return name
    return _RAW.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", name)


def to_disk(text: str) -> str:
    """Return the name that Python passes to the system, for a text that `from_disk` returned."""
    return _WRITTEN.sub(_character, text) if "\\" in text else text


def canonical(text: str) -> str:
    r"""Return the one text for a name as somebody wrote it: `\xc3\xa9` becomes `é`.

    UnicodeEncodeError for text that is not valid Unicode.
    """
    raw = _BYTE.sub(_character, text).encode("utf-8", "surrogateescape")
    return _RAW.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", raw.decode("utf-8", "surrogateescape"))


def as_matched(name: str) -> str:
    """Return the name with one character for each undecodable byte: `?` in a pattern matches one byte."""
    return _BYTE.sub(_character, name) if "\\" in name else name


def is_written(text: str) -> bool:
    r"""Whether every backslash in `text` begins a byte from `\x80` to `\xff`."""
    return "\\" not in _BYTE.sub("", text)


def _character(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    return chr(0xDC00 + number) if number >= 0x80 else chr(number)
