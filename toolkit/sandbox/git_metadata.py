"""Git metadata outside the workspace: a worktree or a submodule names it in a file `.git`."""

from __future__ import annotations

import os

_LONGEST = 4096


def outside_metadata(workspace: str) -> tuple[str, ...]:
    """Return the real paths of the directories that git needs and that are not in the workspace."""
    named = _line(f"{workspace}/.git")
    if not named.startswith("gitdir: "):
        return ()
    directory = os.path.realpath(os.path.join(workspace, named.removeprefix("gitdir: ")))
    common = _line(f"{directory}/commondir")
    found = [directory, *([os.path.realpath(os.path.join(directory, common))] if common else [])]
    return tuple(path for path in found if not f"{path}/".startswith(f"{workspace}/") and os.path.isdir(path))


def _line(path: str) -> str:
    """The only line of a small regular file; nothing where it is something else."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.fsdecode(os.read(descriptor, _LONGEST)).rstrip("\n")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
