"""Paths in the arguments of unknown tools: other MCP servers' tools, and tools newer than the tables.

Pure. Tools of file servers are known by their common names; for any other tool, each argument with the name
of a path counts as read and written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from ringfence.toolkit.hooks.tool_table import SERVER_TOOLS
from ringfence.toolkit.hooks.touch import EDIT, READ, UNKNOWN, Touch

OURS = "ringfence"  # the server name for `serve mcp` in the documentation
# `mcp__server__tool`, and as Gemini CLI writes it; there a server with `_` in its name is ambiguous.
_OF_A_SERVER = re.compile(r"(?:mcp__)?([^_](?:_?[^_])*)__(.+)|mcp_([^_]+)_(.+)")
# Tools of Claude Code that send a file elsewhere and change none: an allow of reading does not cover that.
_SENDING = frozenset({"Artifact", "SendUserFile"})
_NAMES = ("list_directory", "directory_tree", "search_files")
_CONTENT = ("search_text", "copy_file", "read_file", "read_files")
# The last word in the name of a path argument.
_WORD = re.compile(
    r"(?:file|dir|folder)s?|(?:path|filename|filepath|pathname)s?|director(?:y|ies)|source|destination|src|dst"
)


def is_ours(tool: str) -> bool:
    """Whether a tool belongs to Ringfence's own server, which judges each call and asks by itself."""
    server, name = _split(tool)
    return server == OURS and name in SERVER_TOOLS


def server_of(joined: str) -> str:
    """Return the server in a name `server_tool` whose tool file servers have in common; else ""."""
    found = [joined[: -len(name) - 1] for name in SERVER_TOOLS if joined.endswith(f"_{name}")]
    return min(found, key=len, default="")


def read(tool: str, given: Mapping[str, Any]) -> Iterator[Touch]:
    """Return what a call would touch; nothing where no argument has the name of a path."""
    known = SERVER_TOOLS.get(_split(tool)[1])
    rest = dict(given)
    if known is not None:
        name, parts = known
        for key, actions in parts:
            for path in _texts(rest.pop(key, None)):
                yield _touch(name, actions, path, filtered=is_ours(tool))
    for path in _paths("", rest):
        yield Touch(UNKNOWN, READ if tool in _SENDING else EDIT, path)


def _touch(name: str, actions: tuple[str, ...], path: str, *, filtered: bool) -> Touch:
    if filtered or actions != READ:
        return Touch(name, actions, path)
    return Touch(name, actions, path, () if name in _NAMES + _CONTENT else None, name in _NAMES)


def _split(tool: str) -> tuple[str, str]:
    """Return the server and the name of a tool; "" for the server of a tool without one."""
    found = _OF_A_SERVER.fullmatch(tool)
    return ("", "") if found is None else (found[1] or found[3], found[2] or found[4])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value or "."
    elif value is not None:
        yield from _paths("path", value)


def _paths(key: str, value: object) -> Iterator[str]:
    """Yield every text under a key with the name of a path, and every `file:` URL, at any depth."""
    named = _is_path(key)
    if isinstance(value, str):
        if value.lower().startswith("file:"):
            yield _of_url(value)
        elif named:
            yield value or "."
    elif isinstance(value, Mapping):
        if named:  # {"a.py": "its text"}
            yield from (each for each, of in value.items() if isinstance(of, str) and not _is_path(each))
        yield from chain.from_iterable(_paths(each, of) for each, of in value.items())
    elif isinstance(value, list):
        yield from chain.from_iterable(_paths(key, each) for each in value)


def _is_path(key: str) -> bool:
    """Whether an argument has the name of a path, such as `local_path`, `filePath` or `targetDir`."""
    words = re.split(r"[^a-z0-9]+", re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", key).lower())
    return _WORD.fullmatch(words[-1]) is not None


def _of_url(url: str) -> str:
    from urllib.parse import unquote

    rest = url[len("file:") :]
    return unquote(re.sub(r"^//(localhost)?(?=/)", "", rest)) or "."
