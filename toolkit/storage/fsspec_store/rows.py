"""Rows that an fsspec file system lists, as names and stats.

Never takes a link for the file it leads to: what a link leads to has a path of its own, which is judged.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ringfence.toolkit.plan.changes import DIRECTORY, FILE, OTHER, Stat


def below(directory: str, key: str) -> str:
    """A key relative to the directory it was listed in: empty for the directory itself and its marker."""
    if key in (directory, f"{directory}/"):
        return ""
    if directory and not key.startswith(f"{directory}/"):
        return key.rstrip("/").rpartition("/")[2]  # a store that lists by names of its own
    return key[len(directory) + 1 :] if directory else key


_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "modify", "created")
_MARKS = (
    *("ETag", "etag", "VersionId", "generation", "CRC"),
    *("ino", "mtime", "modify", "LastModified", "created"),
)


def stat_of(row: dict[str, Any]) -> Stat:
    """What a row says is there; a link is neither file nor directory."""
    kind = {"file": FILE, "directory": DIRECTORY}.get(str(row.get("type")), OTHER)
    if row.get("islink") or row.get("linkname"):
        kind = OTHER
    marks = [row.get(key) for key in _MARKS]
    modified = next((_seconds(row[key]) for key in _TIMES if key in row), None)
    return Stat(
        kind=kind,
        size=row.get("size"),
        modified=modified,
        identity="" if kind == DIRECTORY else ":".join(_mark(mark) for mark in marks if mark is not None),
    )


def _mark(value: Any) -> str:
    # The same moment comes as a datetime from one method and as a number from another.
    return repr(value.timestamp()) if isinstance(value, datetime) else str(value)


def _seconds(value: Any) -> float | None:
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, str):
        return _of_text(value)
    return float(value) if isinstance(value, int | float) else None


def _of_text(value: str) -> float | None:
    """The moment in RFC 3339, or in what FTP servers write (`20261128211555`, in UTC)."""
    try:
        written = datetime.strptime(value[:14], "%Y%m%d%H%M%S") if value[:14].isdecimal() else None
        found = written or datetime.fromisoformat(value)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
