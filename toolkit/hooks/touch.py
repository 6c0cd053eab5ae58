"""Touch: one path of a host's call, and what the call would do there. A value; looks at nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

READ, WRITE, EDIT, DELETE = ("read",), ("write",), ("read", "write"), ("delete",)
UNKNOWN = ""  # the tool of a touch of which nobody knows what it does


class Touch(NamedTuple):
    """One path of a call. `tool` is ours that does the same; `within` holds the file patterns of a search
    through everything below the path (None: nothing below it is shown); `names`: it shows names alone.
    """

    tool: str
    actions: tuple[str, ...]
    path: str
    within: tuple[str, ...] | None = None
    names: bool = False


def text_of(given: Mapping[str, Any], key: str) -> str:
    """An argument that has to be text with something in it; else ValueError."""
    value = given.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is no text")
    return value
