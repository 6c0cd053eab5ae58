"""Invisible characters, and characters that change how their neighbours are displayed: the only definition.

A policy that contains one is rejected; displayed text has it written as its number. Source: Unicode's
categories Cc, Cf, Cs, Zl and Zp, its Default_Ignorable_Code_Point, and blanks that Unicode counts as letters
or symbols.
"""

from __future__ import annotations

import re

# Compiled by `re` when it is first searched for: most programs end before.
INVISIBLE = (
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero width, line separators, bidirectional
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # tags, variation selectors
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U00013440"
    "\ud800-\udfff]"
)


def is_invisible(character: str) -> bool:
    """Whether a character is invisible, reorders its neighbours or cannot be encoded."""
    return not " " <= character <= "~" and re.match(INVISIBLE, character) is not None


def written_out(character: str) -> str:
    r"""Return the character's number as Python escapes it: `\x1b`, `\u0085`, `\u202e`, `\U000e0041`.

    From 0x80 on the form `\x85` is not used: it stands for an undecodable byte of a name.
    """
    number = ord(character)
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
