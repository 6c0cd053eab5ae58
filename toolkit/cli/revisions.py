"""Loads a policy as it was in a git revision, with the files it extends as they were.

Asks git, and changes nothing in the repository.
"""

from __future__ import annotations

import io
import subprocess
import tarfile
import tempfile
from pathlib import Path

from policy import Policy
from toolkit.cli.perform import UsageError


def load_revision(revision: str, path: str) -> Policy:
    """Load REV:path; as with git, a path is seen from the repository's top, with `./` from here."""
    if not revision or revision.startswith("-"):
        raise UsageError(f"{revision}:{path}: no file, and no revision of git")
    top = Path(_git("rev-parse", "--show-toplevel").decode().strip())
    if path.startswith("./"):
        path = (Path.cwd() / path).resolve().relative_to(top).as_posix()
    listed = _git("-C", str(top), "ls-tree", "-r", "-z", "--name-only", revision).decode().split("\0")
    names = [name for name in listed if name.endswith((".yaml", ".yml"))]
    if path not in names:
        raise UsageError(f"{revision} has no policy {path}")
    archive = _git("-C", str(top), "archive", "--format=tar", revision, "--", *names)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            tar.extractall(folder, filter="data")
        return Policy.load(Path(folder) / path)


def _git(*arguments: str) -> bytes:
    try:
        return subprocess.run(["git", *arguments], capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise UsageError("git is not installed") from None
    except subprocess.CalledProcessError as error:
        raise UsageError(f"git: {error.stderr.decode(errors='replace').strip()}") from None
