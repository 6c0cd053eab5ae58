"""Request to the fork server: everything that a sandboxed process needs to know, with all paths resolved."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Home:
    """A home directory that is shown with its secrets hidden, and whose changes are thrown away."""

    path: str
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """Request to the supervisor. Paths are absolute and real unless stated otherwise.

    `level` is overlay, copy, copy-in-place (no namespaces: the command runs in the copy), landlock or none.
    `readable` and `writes_in` are the trees of the levels without namespaces. `terminal`: the command shares
    the caller's session, and descriptor 0, 1 or 2 of `terminals` is a terminal.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    level: str
    workspace: str
    scratch: str
    cwd: str
    hidden: tuple[str, ...]
    through: tuple[str, ...]
    network: bool
    homes: tuple[Home, ...]
    hidden_places: tuple[str, ...]
    read_only_places: tuple[str, ...]
    readable: tuple[str, ...]
    writes_in: tuple[str, ...]
    terminal: bool
    terminals: tuple[int, ...]
    seconds: float
    memory: int
    processes: int
    scratch_bytes: int
    user: int
    group: int

    def encoded(self) -> bytes:
        """Return the request as JSON; names that are not UTF-8 stay what they are."""
        return json.dumps(asdict(self)).encode("ascii")

    @property
    def directory(self) -> str:
        """The directory that stands for the workspace inside."""
        return f"{self.scratch}/copy" if self.level == "copy-in-place" else self.workspace

    @property
    def place(self) -> bytes:
        """The kind of process that the server forks: with all namespaces, all but the network's, or none."""
        return b"n" if self.namespaces and self.network else b"i" if self.namespaces else b"p"

    @property
    def namespaces(self) -> bool:
        """Whether the command gets namespaces of its own."""
        return self.level in ("overlay", "copy")


def read_request(descriptor: int) -> Request:
    """Read a request from a memory file."""
    size = os.fstat(descriptor).st_size
    found: dict[str, Any] = json.loads(os.pread(descriptor, size, 0))
    homes = tuple(Home(one["path"], tuple(one["hidden"])) for one in found.pop("homes"))
    plain: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.items()
    }
    return Request(homes=homes, **plain)
