"""`doctor`: what this machine has that Ringfence can use, and what to do where something is missing."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec

from policy import Folding
from toolkit.cli.perform import DONE
from toolkit.cli.place import refuse_chained, root_of
from toolkit.cli.screen import Screen
from toolkit.landlock import held
from toolkit.local_roots import local_path

# Each extra of the package, and what it brings.
_EXTRAS = {
    "s3": "s3fs",
    "sftp": "paramiko",
    "azure": "adlfs",
    "postgres": "psycopg",
    "serve": "uvicorn",
    "review": "jinja2",
    "watch": "textual",
}


def doctor(arguments: argparse.Namespace, screen: Screen) -> int:
    """Look and tell; changes nothing."""
    extras = {extra: find_spec(module) is not None for extra, module in _EXTRAS.items()}
    found = {
        "python": sys.version.split()[0],
        "system": sys.platform,
        **_workspace(arguments),
        "landlock": _landlock(),
        "landlock_holds": ", ".join(held()) or None,
        "extras": extras,
    }
    if screen.as_json:
        screen.json(found)
        return DONE
    for name, value in found.items():
        if name != "extras":
            screen.line(f"{name.replace('_', ' '):<22} {_said(value)}")
    for extra, there in extras.items():
        said = "installed" if there else f"not installed: pip install 'ringfence[{extra}]'"
        screen.line(f"{extra:<22} {said}")
    return DONE


def _workspace(arguments: argparse.Namespace) -> dict[str, object]:
    root = root_of(arguments)[0]
    if "::" in root and "://" in root:
        refuse_chained(root)
    if local_path(root) is None or os.sep != "/":
        return {"root": root}
    from toolkit.local.opening import open_local

    local = open_local(root)
    try:
        return {
            "root": arguments.root or root,
            "kind": "the confined local disk",
            "resolves_by": "openat2" if local.kernel.beneath else "a walk, name by name",
            "renames_onto_nothing": local.kernel.rename_new,
            "tells_mounts_apart": local.kernel.mounts,
            "folds_case": local.fold == Folding.CASE,
            "folds_normal_form": local.fold != Folding.NONE,
        }
    finally:
        local.close()


def _landlock() -> int | None:
    from toolkit.landlock import version

    return version() or None


def _said(value: object) -> str:
    if value is None:
        return "no"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
