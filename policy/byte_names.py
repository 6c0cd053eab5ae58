r"""File names that are not valid UTF-8, as text: `\xNN` stands for each undecodable byte, 80 to ff.

Pure. The mapping is one to one: every name has exactly one text, and no two names share a text. Where the
name itself contains a backslash that would read as such a byte, the backslash is written as `\x5c`.
"""

from __future__ import annotations

import re

# Compiled by `re` when they are first needed: hardly any name has them.
_BYTE = r"\\x([89a-fA-F][0-9a-fA-F])"
_WRITTEN = r"\\x([89a-f][0-9a-f]|5c)"
_RAW = "[\udc80-\udcff]"


def from_disk(name: str) -> str:
    """Return the text of a name as Python reports it, with a surrogate per undecodable byte (PEP 383)."""
    if "\\" in name:
        name = re.sub(_WRITTEN, r"\\x5cx\1", name)
    if name.isascii():
        return name
    return re.sub(_RAW, lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", name)


def to_disk(text: str) -> str:
    """Return the name that Python passes to the system, for a text that `from_disk` returned."""
    return re.sub(_WRITTEN, _character, text) if "\\" in text else text


def canonical(text: str) -> str:
    r"""Return the one text for a name as somebody wrote it: `\xc3\xa9` becomes `é`.

    UnicodeEncodeError for text that is not valid Unicode.
    """
    if text.isascii() and "\\" not in text:
        return text
    raw = re.sub(_BYTE, _character, text).encode("utf-8", "surrogateescape")
    return re.sub(
        _RAW, lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", raw.decode("utf-8", "surrogateescape")
    )


def as_matched(name: str) -> str:
    """Return the name with one character for each undecodable byte: `?` in a pattern matches one byte."""
    return re.sub(_BYTE, _character, name) if "\\" in name else name


def is_written(text: str) -> bool:
    r"""Whether every backslash in `text` begins a byte from `\x80` to `\xff`."""
    return "\\" not in re.sub(_BYTE, "", text)


def _character(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    return chr(0xDC00 + number) if number >= 0x80 else chr(number)
