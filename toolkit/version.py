"""Version of Ringfence, without importing `importlib.metadata`, which is slow."""

from __future__ import annotations

import sys
from pathlib import Path

_START, _END = "ringfence-", ".dist-info"


def version() -> str:
    """Return the installed version in the first folder of the import path that has one; "0" if none has."""
    for folder in sys.path:
        try:
            names = [path.name for path in Path(folder or ".").iterdir()]
        except OSError:
            continue
        for name in names:
            if name.startswith(_START) and name.endswith(_END):
                return name[len(_START) : -len(_END)]
    return "0"


def documentation() -> str | None:
    """Return the address of docs/ in the package's metadata (`Documentation`), or None."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        named = metadata("ringfence").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    pages = dict(str(entry).split(", ", 1) for entry in named)
    return pages.get("Documentation")
