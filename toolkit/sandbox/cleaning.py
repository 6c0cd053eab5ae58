"""Cleaning of a scratch directory: removes what only the running command needed."""

from __future__ import annotations

import os
import shutil
import subprocess

from ringfence.toolkit.sandbox.errors import SandboxError

CHANGES = ("upper", "copy")  # what a run leaves in the scratch directory


def remove_private_parts(scratch: str) -> None:
    """Remove all but the changes: the temporary homes, the work directories, the places of the layers."""
    with os.scandir(scratch) as entries:
        found = [entry.name for entry in entries if _is_private(entry.name)]
    for name in found:
        path = f"{scratch}/{name}"
        if name == "blank-file":
            os.unlink(path)
            continue
        if name == "blank-directory":
            os.rmdir(path)
            continue
        try:
            if not _is_empty(path):
                _make_removable(path)
            shutil.rmtree(path, ignore_errors=True)
        except RecursionError:  # a command made a thousand directories in each other
            subprocess.run(["rm", "-rf", "--", path], stderr=subprocess.DEVNULL, check=False)


def _is_private(name: str) -> bool:
    return name in ("work", "private", "blank-file", "blank-directory", "tmp") or (
        name.startswith("home") and name[4:].isdecimal()
    )


def _is_empty(path: str) -> bool:
    with os.scandir(path) as entries:
        return next(entries, None) is None


def _make_removable(path: str) -> None:
    """Give the owner every right to the directories: an overlay leaves one of mode 0, a command any mode."""
    for above, _, _ in os.walk(path):
        with os.scandir(above) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    os.chmod(entry.path, 0o700)


def prepare_scratch(scratch: str) -> None:
    """Remove what a run that was killed has left; SandboxError where the changes of an earlier run are.

    Files of the caller with other names stay.
    """
    with os.scandir(scratch) as entries:
        found = {entry.name for entry in entries}
    if any(_is_private(name) for name in found):
        remove_private_parts(scratch)
    for name in CHANGES:
        if name in found and not _is_empty(f"{scratch}/{name}"):
            raise SandboxError(
                "bad_request", f"the changes of an earlier run are in {name!r}", place="scratch"
            )
        if name in found:
            os.rmdir(f"{scratch}/{name}")
