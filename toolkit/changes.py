"""A session's changed files, as a side panel shows them: each path once, from first to last.

Only reads the history.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from toolkit.history import History, Version
from toolkit.plan import DIRECTORY
from toolkit.text import diff


@dataclass(frozen=True, slots=True)
class Changed:
    """One file: `kind` is "created", "updated" or "deleted"; counts are lines, 0 for what is not text."""

    path: str
    kind: str
    additions: int
    removals: int
    before: bytes | None
    after: bytes | None

    @property
    def diff(self) -> str:
        return diff(self.path, self.before, self.after)


def changed(history: History, session: str) -> list[Changed]:
    """The files that differ between the session's beginning and its last change, by path."""
    touched: set[str] = set()
    for item in history.items("op.session = ? AND item.type != ?", (session, DIRECTORY)):
        touched.update(path for path in (item.path, item.path2) if path is not None)
    found = (_changed(history, path, history.versions(path, session)) for path in sorted(touched))
    return [one for one in found if one is not None]


def _changed(history: History, path: str, versions: list[Version]) -> Changed | None:
    if not versions or versions[0].digest == versions[-1].digest:
        return None
    before, after = (
        None if version.digest is None else history.content(version.digest)
        for version in (versions[0], versions[-1])
    )
    kind = "created" if before is None else "deleted" if after is None else "updated"
    additions, removals = _counts(before, after)
    return Changed(path, kind, additions, removals, before, after)


def _counts(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    old, new = _lines(before), _lines(after)
    if not old or not new:
        return len(new), len(old)
    additions = removals = 0
    for line in difflib.unified_diff(old, new, n=0, lineterm=""):
        additions += line.startswith("+") and not line.startswith("+++")
        removals += line.startswith("-") and not line.startswith("---")
    return additions, removals


def _lines(data: bytes | None) -> list[str]:
    if data is None or b"\0" in data:
        return []
    return data.decode("utf-8", "replace").splitlines()
