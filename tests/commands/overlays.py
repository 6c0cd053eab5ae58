"""Runs a shell script over an overlay of a directory, by the kernel alone, for an upper directory to read.

Knows nothing of the sandbox: what the kernel leaves in an upper directory is the same whoever mounts it.
"""

from __future__ import annotations

import os
import shutil
import stat as S
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_MOUNT = (
    'mount -t overlay overlay -o "userxattr,lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$1"'
    ' && cd "$1" && exec sh -c "$3"'
)


def ran(script: str, workspace: Path, scratch: Path) -> int:
    """Run a script with the workspace as its directory; return the clock of before, in nanoseconds."""
    for name in ("upper", "work"):
        (scratch / name).mkdir(parents=True)
    started = time.time_ns()
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", _MOUNT, "sh", str(workspace), str(scratch), script],
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return started


def ran_in_copy(script: str, workspace: Path, scratch: Path, hidden: tuple[str, ...] = ()) -> int:
    """Run a script in a copy of the workspace, as level copy does."""
    scratch.mkdir()
    subprocess.run(
        ["cp", "-a", "--no-preserve=links", str(workspace), str(scratch / "copy")], check=True, timeout=60
    )
    subprocess.run(["find", str(scratch / "copy"), "-type", "p", "-delete"], check=True, timeout=60)
    for name in hidden:
        subprocess.run(["rm", "-r", str(scratch / "copy" / name)], check=True, timeout=60)
    time.sleep(0.03)  # until the clock of the files has moved on
    started = time.time_ns()
    subprocess.run(["sh", "-c", script], cwd=scratch / "copy", check=True, timeout=60, capture_output=True)
    return started


def tree(root: Path, *, modes: bool) -> dict[str, Any]:
    """All entries: the kind and content of each, with a file's whole mode or its executable bits alone."""
    found: dict[str, Any] = {}
    for above, folders, files in os.walk(root):
        for name in (*folders, *files):
            place = Path(above, name)
            info = place.lstat()
            path = place.relative_to(root).as_posix()
            if S.S_ISLNK(info.st_mode):
                found[path] = ("link", str(place.readlink()))
            elif S.S_ISDIR(info.st_mode):
                found[path] = ("directory",)
            elif not S.S_ISREG(info.st_mode):
                found[path] = ("other",)
            else:
                found[path] = ("file", place.read_bytes(), info.st_mode & (0o7777 if modes else 0o111))
    return {path: what for path, what in found.items() if path.partition("/")[0] != ".ringfence"}


@cache
def _works(folder: str) -> bool:
    base = Path(folder)
    (base / "lower").mkdir()
    try:
        ran("true", base / "lower", base / "scratch")
    except (AssertionError, OSError):
        return False
    return True


@pytest.fixture(scope="session")
def overlays(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Skip where this kernel, or what this process runs in, has no overlay for a user."""
    if not shutil.which("unshare") or not _works(str(tmp_path_factory.mktemp("overlay"))):
        pytest.skip("no overlay can be mounted here")
