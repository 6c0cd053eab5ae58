"""The text of a file that is most like one that was not found, for the hint of `no_match`.

Shows nothing that the agent may not read: not without the permission to read the file, not where its reading
is limited, and masked as in every answer.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from ringfence.toolkit.text import decode, escape, split_lines

if TYPE_CHECKING:
    from ringfence.toolkit.plan.changes import Place
    from ringfence.toolkit.workspace.view import View

# Comparing lines takes time in proportion to their number and the square of their length.
_MAX_LINES = 2000
_MAX_LENGTH = 200
_SHOWN = 100
_ALIKE = 0.6


def nearest(data: bytes, wanted: bytes, place: Place, view: View) -> str | None:
    """Return in words where the text most like `wanted` is, and what it is; None if nothing is like it."""
    if not view.may_show(place):
        return None
    seen = view.excerpt(place, data).data
    if seen is None:
        return None
    lines = [decode(line).rstrip("\r\n") for line in split_lines(seen)[:_MAX_LINES]]
    found = _by_spaces(lines, decode(wanted))
    if found is not None:
        return f"with other spaces or line ends it is at {found}"
    return _by_likeness(lines, decode(wanted))


def _by_spaces(lines: list[str], wanted: str) -> str | None:
    """Return the lines that are the wanted ones but for spaces."""
    sought = [" ".join(line.split()) for line in wanted.strip().splitlines()]
    squeezed = [" ".join(line.split()) for line in lines]
    if not any(sought):
        return None
    for at in range(len(squeezed) - len(sought) + 1):
        if squeezed[at : at + len(sought)] == sought:
            end = at + len(sought)
            return f"line {at + 1}" if len(sought) == 1 else f"lines {at + 1} to {end}"
    return None


def _by_likeness(lines: list[str], wanted: str) -> str | None:
    longest = max(wanted.splitlines() or [""], key=lambda line: len(line.strip())).strip()[:_MAX_LENGTH]
    if not longest:
        return None
    stripped = [line.strip()[:_MAX_LENGTH] for line in lines]
    alike = difflib.get_close_matches(longest, dict.fromkeys(filter(None, stripped)), 1, _ALIKE)
    if not alike:
        return None
    shown = escape(alike[0][:_SHOWN])
    return f"the nearest text is at line {stripped.index(alike[0]) + 1}: {shown}"
