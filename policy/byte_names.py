r"""File names that are not valid UTF-8, as text: each byte that is no text stands as `\xNN`, 80 to ff.

Pure. Every file name has exactly one such text and no two have the same: a backslash of the name's own that
would read as such a byte stands as `\x5c`.
"""

from __future__ import annotations

import re

_BYTE = re.compile(r"\\x([89a-fA-F][0-9a-fA-F])")
_WRITTEN = re.compile(r"\\x([89a-f][0-9a-f]|5c)")
_RAW = re.compile("[\udc80-\udcff]")


def from_disk(name: str) -> str:
    """The text of a name as Python gives it, where such a byte is half of a surrogate pair."""
    if "\\" in name:
        name = _WRITTEN.sub(r"\\x5cx\1", name)
    if name.isascii():
        return name
    return _RAW.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", name)


def to_disk(text: str) -> str:
    """The name as Python wants it, of the text that `from_disk` gave."""
    return _WRITTEN.sub(_character, text) if "\\" in text else text


def canonical(text: str) -> str:
    r"""The one text of what somebody wrote: `\xc3\xa9` is `é`, which has a character of its own.

    UnicodeEncodeError for text that is not valid Unicode.
    """
    raw = _BYTE.sub(_character, text).encode("utf-8", "surrogateescape")
    return _RAW.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", raw.decode("utf-8", "surrogateescape"))


def as_matched(name: str) -> str:
    """The name with one character for each byte that is no text, as `?` in a pattern counts them."""
    return _BYTE.sub(_character, name) if "\\" in name else name


def is_written(text: str) -> bool:
    r"""Whether every backslash in `text` begins a byte from `\x80` to `\xff`."""
    return "\\" not in _BYTE.sub("", text)


def _character(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    return chr(0xDC00 + number) if number >= 0x80 else chr(number)
