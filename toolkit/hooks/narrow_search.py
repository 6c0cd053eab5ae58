"""Narrowing of a content search: the call's arguments with the names left out that may not be read.

Only where this leaves out exactly those names; the caller judges the new arguments like any others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.hooks.directory_listing import TooMany

if TYPE_CHECKING:
    from ringfence.toolkit.hooks.judge import Judge
    from ringfence.toolkit.hooks.touch import Touch

_MOST = 50  # names; more make a pattern that nobody can read
_PLAIN = re.compile(r"[A-Za-z0-9._-]+")  # a name without any meaning in a file pattern
_LEFT_OUT = re.compile(r"!([A-Za-z0-9._*?-]+)")  # a pattern that only leaves something out


def narrowed(judge: Judge, touch: Touch, given: Mapping[str, Any], argument: str) -> dict[str, Any] | None:
    """Return the arguments of a search with a file pattern that leaves out denied names; else None.

    `argument` is the name of the argument that has the file pattern.
    """
    before = given.get(argument) or ""
    already = _LEFT_OUT.fullmatch(before) if isinstance(before, str) else None
    if before and already is None:
        return None  # the host's versions join two patterns in different ways
    names = _denied_names(judge, touch)
    if not names:
        return None
    wanted = sorted({*names, *([already[1]] if already else [])})
    return {**given, argument: f"!{wanted[0]}" if len(wanted) == 1 else f"!{{{','.join(wanted)}}}"}


def _denied_names(judge: Judge, touch: Touch) -> set[str]:
    """Return names that belong to denied files or folders alone; nothing if there are no such names."""
    shown: list[tuple[str, ...]] = []
    denied: list[tuple[str, ...]] = []
    try:
        for path, may in judge.shown_below(touch):
            (shown if may else denied).append(tuple(path.split("/")))
    except (TooMany, CallError):
        return set()
    kept_folders = {parts[:n] for parts in shown for n in range(len(parts))}
    found = set()
    for parts in denied:
        # The first folder in which everything is denied stands for all of it.
        end = next((n for n in range(1, len(parts)) if parts[:n] not in kept_folders), len(parts))
        found.add(parts[end - 1])
    kept = {name for parts in shown for name in parts}
    if not shown or len(found) > _MOST or found & kept or not all(map(_PLAIN.fullmatch, found)):
        return set()
    return found
