"""Text of `--version`; imported only for it."""

from __future__ import annotations

import os
import sys


def version_line() -> str:
    """Return the name and the version of the installed package."""
    version = _by_folder()
    if version is None:
        from importlib.metadata import PackageNotFoundError
        from importlib.metadata import version as installed

        try:
            version = installed("ringfence")
        except PackageNotFoundError:
            return "ringfence (not installed)"
    return f"ringfence {version}"


def _by_folder() -> str | None:
    """Return the version in the name of the installed folder; reading its metadata takes longer."""
    for place in sys.path:
        try:
            names = os.listdir(place or ".")  # noqa: PTH208 pathlib is as heavy as all the rest
        except OSError:
            continue
        found = [name for name in names if name.startswith("ringfence-") and name.endswith(".dist-info")]
        if found:
            return found[0][len("ringfence-") : -len(".dist-info")] if len(found) == 1 else None
    return None
