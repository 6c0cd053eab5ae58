"""Rows of the tables of upstream tools, as values: the path arguments of a tool, and what is done to them.

Values only. A table says what a tool does, never that it may.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

from ringfence.policy.value_classes import dataclass

Below = Literal["", "entries", "tree", "glob"]
BELOW: tuple[Below, ...] = ("entries", "tree", "glob")
CALL: Final = "call"  # the action of a tool without paths
MORE: Final = "*"  # in the place of a selector: what a tool does besides its paths
NO_PATH: Final = "none"  # in the place of an action: the argument only looks like a path
MOST_NAME = 64
UPSTREAM_NAME = r"[a-z][a-z0-9-]{0,31}\Z"
_TOOL_NAME = r"[A-Za-z0-9_./-]{1,128}\Z"
# Where in a call's arguments a path is: `path`, `files[]`, `edits[].file`.
SELECTOR = r"[A-Za-z0-9_$-]{1,64}(\[\])?(\.[A-Za-z0-9_$-]{1,64}(\[\])?){0,3}\Z"
# First parts of a key of a policy that name no server.
RESERVED: Final = frozenset({"read", "write", "delete", "run", "call", "ringfence"})


@dataclass(frozen=True, slots=True)
class PathArgument:
    """One argument of an upstream tool that is a path, or a list of paths.

    `actions` are what the tool does to each path; none: the argument only looks like a path. `below`: the
    tool shows or changes what is in the directory too: its `entries`, or the whole `tree`. `mirrors`: each
    path below the argument of this selector appears below this one (the destination of a move). `default` is
    the path if the call leaves the argument out; None: it then has no path.
    """

    selector: str
    actions: tuple[str, ...] = ()
    below: Below = ""
    mirrors: str = ""
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One tool of an upstream server. `calls`: it does more than its paths tell, so it needs `call`, too."""

    arguments: tuple[PathArgument, ...] = ()
    calls: bool = False

    @property
    def paths(self) -> tuple[PathArgument, ...]:
        """The arguments with paths on which the tool does something."""
        return tuple(each for each in self.arguments if each.actions)

    @property
    def reads_only(self) -> bool:
        """Whether all that the tool does to its paths is reading them."""
        return all(action == "read" for each in self.arguments for action in each.actions)


Table = Mapping[str, Row]  # by the tool's own name
Upstreams = Mapping[str, Table]  # by the server's name


def key_of(server: str, tool: str) -> str:
    """Return the key of an upstream tool in a policy: `files.read_file`."""
    return f"{server}.{tool}"


def split_key(key: str) -> tuple[str, str] | None:
    """Return the server and the tool that a key of a policy names; None if it can name none."""
    server, dot, tool = key.partition(".")
    if not dot or server in RESERVED or not re.match(UPSTREAM_NAME, server) or not re.match(_TOOL_NAME, tool):
        return None
    return server, tool


def needs_of(row: Row) -> tuple[tuple[str, str], ...]:
    """Return what a statement about a tool is about: each action with the selector of its paths.

    For a tool without paths that is `call` on its own key. Whether a tool with paths may be called at all,
    where it needs that, is a statement about `call`.
    """
    found = tuple((action, each.selector) for each in row.paths for action in each.actions)
    return found or ((CALL, ""),)


def needs_by_key(upstreams: Upstreams) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Yield the key and the needs of every upstream tool."""
    for server, table in upstreams.items():
        for tool, row in table.items():
            key = key_of(server, tool)
            yield key, needs_of(row)
