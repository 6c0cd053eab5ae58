"""Spots of an SFTP server, with what resolving them has shown; and the names that a link leads through."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Stat

_MAX_LINKS = 8
_FRESH = 5.0  # seconds for which an entry that was looked at may be opened without another look


@dataclass(frozen=True, slots=True)
class Seen:
    """What was at a path when it was looked at: None for nothing; `row` has the server's attributes."""

    stat: Stat | None
    row: Any
    changes: int  # that this connection had made by then
    until: float = field(default_factory=lambda: time.monotonic() + _FRESH)

    def is_fresh(self, changes: int) -> bool:
        """Whether a call may still rely on it, and open the entry, which is then compared with it."""
        return self.changes == changes and time.monotonic() < self.until


@dataclass(slots=True)
class SftpSpot:
    """A canonical path; `rest` counts names below one that does not exist, or (`blocked`) is no directory.

    `seen` is what resolving the path has shown. The first `stat` takes its answer from there.
    """

    path: str
    rest: int = 0
    blocked: bool = False
    seen: Seen | None = None
    was_asked: bool = False


def link_names(link: Stat, names: tuple[str, ...], count: int) -> list[str]:
    if ".." in names:
        raise CallError("path_invalid", "The path goes up ('..') and through a link, which is ambiguous")
    if count > _MAX_LINKS:
        raise CallError("path_invalid", "The path goes through too many links")
    target = link.target or ""
    if target.startswith("/"):
        raise paths.outside()
    return [part for part in target.split("/") if part not in ("", ".")]


def is_name(name: str) -> bool:
    return name not in ("", ".", "..") and not set("/\0") & set(name)


def is_same(judged: Stat, now: Stat) -> bool:
    """Whether the entry is still the judged version."""
    if judged.kind != now.kind:
        return False
    return judged.kind == DIRECTORY or (judged.target, judged.identity) == (now.target, now.identity)
