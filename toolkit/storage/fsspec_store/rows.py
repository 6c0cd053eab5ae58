"""Rows of a listing by fsspec, as names and stats.

Never treats a link as the file it leads to: that file has its own path, which is judged.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ringfence.toolkit.plan.changes import DIRECTORY, FILE, OTHER, Stat


def relative_key(directory: str, key: str) -> str:
    """Return a key relative to its directory; empty for the directory itself and its marker."""
    if key in (directory, f"{directory}/"):
        return ""
    if directory and not key.startswith(f"{directory}/"):
        return key.rstrip("/").rpartition("/")[2]  # a store that lists names instead of keys
    return key[len(directory) + 1 :] if directory else key


_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "modify", "created")
_VERSION_KEYS = (
    *("ETag", "etag", "VersionId", "generation", "CRC"),
    *("ino", "mtime", "modify", "LastModified", "created"),
)


def stat_of(row: dict[str, Any]) -> Stat:
    """Return the stat in a row; a link is neither file nor directory."""
    kind = {"file": FILE, "directory": DIRECTORY}.get(str(row.get("type")), OTHER)
    if row.get("islink") or row.get("linkname"):
        kind = OTHER
    versions = [_version_text(row[key]) for key in _VERSION_KEYS if row.get(key) is not None]
    modified = next((_seconds(row[key]) for key in _TIMES if key in row), None)
    return Stat(
        kind=kind,
        size=row.get("size"),
        modified=modified,
        identity="" if kind == DIRECTORY else ":".join(versions),
    )


def _version_text(value: Any) -> str:
    # The same moment comes as a datetime from one method and as a number from another.
    return repr(value.timestamp()) if isinstance(value, datetime) else str(value)


def _seconds(value: Any) -> float | None:
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, str):
        return _of_text(value)
    return float(value) if isinstance(value, int | float) else None


def _of_text(value: str) -> float | None:
    """Return the time in a text of RFC 3339, or of FTP servers (`20261128211555` in UTC)."""
    try:
        written = datetime.strptime(value[:14], "%Y%m%d%H%M%S") if value[:14].isdecimal() else None
        found = written or datetime.fromisoformat(value)
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
