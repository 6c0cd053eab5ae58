"""Definitions of upstream tools: what a server says of each, bounded, and the name that clients get.

Pure. A server's texts are for the model alone: nothing is decided by them, but its hints can make a verdict
stricter.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ringfence.policy.upstreams.rows import MOST_NAME, key_of, split_key
from ringfence.toolkit.text import escape

MOST_DESCRIPTION = 4000  # characters
_MOST_SCHEMA = 64 << 10  # bytes of a tool's schema as JSON
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_HINTS = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


@dataclass(frozen=True, slots=True)
class UpstreamTool:
    """A tool of a server. `key` is its name in policies and records, `offered` the one that clients get.

    `parameters` is the JSON Schema of its arguments, `output` that of its structured answer, if it has one.
    `digest` changes with everything that the server says of it, so that no grant outlives a change.
    """

    server: str
    name: str
    key: str
    offered: str
    title: str
    description: str
    parameters: dict[str, Any]
    output: dict[str, Any] | None
    hints: dict[str, Any]
    digest: str

    @property
    def says_it_changes(self) -> bool:
        """Whether the server says that the tool changes something."""
        return self.hints.get("destructiveHint") is True or self.hints.get("readOnlyHint") is False

    @property
    def says_it_destroys(self) -> bool:
        """Whether the server says that the tool may take something away."""
        return self.hints.get("destructiveHint") is True and self.hints.get("readOnlyHint") is not True


def defined(server: str, listed: Iterable[dict[str, Any]], taken: set[str]) -> tuple[list[UpstreamTool], int]:
    """Return the tools of a server's list, and how many entries are none. `taken`: names that are in use; the
    names given are added.
    """
    found: list[UpstreamTool] = []
    keys: set[str] = set()
    refused = 0
    for entry in listed:
        tool = _defined(server, entry, taken)
        if tool is None or tool.key in keys:
            refused += 1
            continue
        keys.add(tool.key)
        taken.add(tool.offered)
        found.append(tool)
    return found, refused


def _defined(server: str, entry: dict[str, Any], taken: set[str]) -> UpstreamTool | None:
    name, parameters = entry.get("name"), entry.get("inputSchema")
    if not isinstance(name, str) or split_key(key_of(server, name)) is None:
        return None
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        return None
    given, hints = entry.get("outputSchema"), entry.get("annotations")
    output = given if isinstance(given, dict) else None
    whole = json.dumps([parameters, output], sort_keys=True)
    if len(whole) > _MOST_SCHEMA:
        return None
    known = {key: hints[key] for key in _HINTS if key in hints} if isinstance(hints, dict) else {}
    said = json.dumps([name, entry.get("description"), known, whole], sort_keys=True)
    return UpstreamTool(
        server=server,
        name=name,
        key=key_of(server, name),
        offered=offered_name(server, name, taken),
        title=_text(entry.get("title") or known.get("title") or name, 200),
        description=_text(entry.get("description") or "", MOST_DESCRIPTION),
        parameters=parameters,
        output=output,
        hints=known,
        digest=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest(),
    )


def offered_name(server: str, tool: str, taken: Iterable[str] = (), most: int = MOST_NAME) -> str:
    """Return the name of a tool for clients: `files_read_file`, unique, of at most `most` characters."""
    name = _FOREIGN.sub("_", f"{server}_{tool}")
    if len(name) <= most and name not in taken:
        return name
    # Names that are cut or written in other letters stay apart, and the same from one start to the next.
    mark = hashlib.sha256(key_of(server, tool).encode()).hexdigest()[:8]
    return f"{name[: most - 9]}_{mark}"


def _text(given: Any, most: int) -> str:
    text = escape(str(given), newlines=True)
    return text if len(text) <= most else f"{text[: most - 1]}…"
