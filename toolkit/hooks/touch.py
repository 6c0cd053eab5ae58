"""Touch: one path of a host's call, and what the call would do there. A value without file access."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

READ, WRITE, EDIT, DELETE = ("read",), ("write",), ("read", "write"), ("delete",)
UNKNOWN = ""  # the tool of a touch with unknown effect


class Touch(NamedTuple):
    """One path of a call. `tool` is our equivalent tool.

    `within` holds the file patterns of a search through everything below the path (None: nothing below it is
    shown); `names`: the search shows names only; `ignores`: it does not enter what `.gitignore` names.
    """

    tool: str
    actions: tuple[str, ...]
    path: str
    within: tuple[str, ...] | None = None
    names: bool = False
    ignores: bool = False


def text_of(given: Mapping[str, Any], key: str) -> str:
    """Return an argument that is non-empty text; else ValueError."""
    value = given.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is no text")
    return value
