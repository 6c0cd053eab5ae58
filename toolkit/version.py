"""Which Ringfence this is, without importing what reads the metadata of packages, which takes long."""

from __future__ import annotations

import sys
from pathlib import Path

_START, _END = "ringfence-", ".dist-info"


def version() -> str:
    """The version that is installed where modules are looked for first; "0" where none is."""
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
    """The address of docs/ that the package's metadata names (`Documentation`); None where it names none."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        named = metadata("ringfence").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    pages = dict(str(entry).split(", ", 1) for entry in named)
    return pages.get("Documentation")
