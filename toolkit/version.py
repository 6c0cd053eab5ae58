"""Version of the installed package; light to import, as `--version` runs it at each start of an editor."""

from __future__ import annotations

import os
import sys

_START, _END = "ringfence-", ".dist-info"


def version() -> str:
    """Return the installed version; "0" if the package is not installed."""
    return _installed() or "0"


def version_line() -> str:
    """Return the text of `--version`."""
    return f"ringfence {_installed() or '(not installed)'}"


def documentation() -> str | None:
    """Return the address of docs/ in the package's metadata (`Documentation`), or None."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        named = metadata("ringfence").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    pages = dict(str(entry).split(", ", 1) for entry in named)
    return pages.get("Documentation")


def _installed() -> str | None:
    """Return the version of the first installation on the import path; None if there is none.

    The name of its folder has the version; `importlib.metadata`, which is slow to import, answers for folders
    with other names and where an interrupted upgrade left two.
    """
    for place in sys.path:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208 pathlib is as heavy as all the rest
        except OSError:
            continue
        found = [name for name in names if name.startswith(_START) and name.endswith(_END)]
        if len(found) == 1:
            return found[0][len(_START) : -len(_END)]
        if found:
            break
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as by_metadata

    try:
        return by_metadata("ringfence")
    except PackageNotFoundError:
        return None
