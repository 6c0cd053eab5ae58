"""Ready-made tables of well-known MCP servers, read from the JSON files of `policy.upstreams`.

A table is chosen by whoever writes the policy or starts the server, never by what a server says of itself.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ringfence.policy.upstreams.rows import BELOW, MORE, NO_PATH, PathArgument, Row, Table

_FOLDER = Path(__file__).parent.parent / "upstreams" / "tables"


@functools.cache
def names() -> tuple[str, ...]:
    """Return the names of all ready-made tables."""
    return tuple(sorted(each.stem for each in _FOLDER.glob("*.json")))


@functools.cache
def table(name: str) -> Table:
    """Return a ready-made table. KeyError for a name that is none of `names`."""
    return {tool: _row(each) for tool, each in _document(name)["tools"].items()}


def table_for(command: Iterable[str]) -> str:
    """Return the name of the table for the server that a command starts, by its package; "" if it is unknown.

    A package counts by its name, with or without a version, and by the folder or script it is installed as.
    """
    known = {package: name for name in names() for package in _document(name)["packages"]}
    for word in command:
        plain = word.rpartition("@")[0] if "@" in word[1:] and not word.startswith("/") else word
        if plain in known:
            return known[plain]
        for package, name in known.items():
            if f"/node_modules/{package}/" in word or word.endswith(f"/.bin/{package}"):
                return name
    return ""


@functools.cache
def _document(name: str) -> dict[str, Any]:
    if name not in names():
        raise KeyError(name)
    document: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return document


def _row(arguments: Mapping[str, Any]) -> Row:
    paths = tuple(_argument(name, given) for name, given in arguments.items() if name != MORE)
    return Row(paths, MORE in arguments)


def _argument(selector: str, given: Any) -> PathArgument:
    """Read one argument: its action, a list of actions, or a mapping with more. TypeError for other keys."""
    fields = dict(given) if isinstance(given, dict) else {"action": given}
    actions = fields.pop("action")
    listed = (actions,) if isinstance(actions, str) else tuple(actions)
    below = fields.pop("below", "")
    if below not in ("", *BELOW):
        raise TypeError(f"{selector}: {below}")
    return PathArgument(selector, tuple(each for each in listed if each != NO_PATH), below, **fields)
