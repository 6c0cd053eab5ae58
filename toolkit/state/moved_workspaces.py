"""Moved workspaces: finds the former state of a workspace, by what that state and the workspace record.

Only reads. A state is named after its workspace's path, so a moved workspace seems to have none.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import closing

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.protected_paths import BEING_REMOVED_PREFIX, OWN_DIRECTORY, QUARANTINED_PREFIX
from ringfence.toolkit.state.files import is_state, owning, read_owning
from ringfence.toolkit.state.read_only import open_to_read

_PUT_ASIDE = re.compile(r"\.(aside|damaged|salvaged)(-|$)")


def of_moved(root: str, folder: str) -> list[str]:
    """Return the states beside `folder` that seem to belong to the workspace at `root` before it was moved.

    Such a state names this very directory and a path that is gone, or has records of files quarantined here.
    """
    here, names = owning(root), quarantined_in(root)
    found = []
    for other in _beside(folder):
        known = read_owning(other)
        if known is None or not known.is_local or os.path.lexists(known.root):
            continue
        if (known.directory is not None and known.directory == here.directory) or _knows(other, names):
            found.append(other)
    return found


def log_moved_state(root: str, folder: str) -> None:
    """Log, for a new state, evidence that the workspace had another state before."""
    found = of_moved(root, folder)
    if not found and not quarantined_in(root):
        return
    import logging  # slow to import, and seldom needed

    whose = [known.root for known in map(read_owning, found) if known is not None]
    logging.getLogger("ringfence").warning(
        "a new history is begun for this workspace, which %s; `ringfence state adopt` takes over the former"
        " one",
        f"was moved from {', '.join(whose)}" if whose else "holds deleted trees of another state",
    )


def _beside(folder: str) -> Iterator[str]:
    above = os.path.dirname(folder)
    for name in sorted(os.listdir(above)) if os.path.isdir(above) else ():
        other = os.path.join(above, name)
        if other != folder and is_state(other) and not _PUT_ASIDE.search(name):
            yield other


def _knows(folder: str, names: set[str]) -> bool:
    if not names:
        return False
    try:
        with closing(open_to_read(folder)) as state:
            return any(str(name) in names for (name,) in state.rows("SELECT name FROM caught"))
    except CallError:
        return False


def quarantined(names: Iterable[str]) -> set[str]:
    """Return those of the names in a quarantine that are of deletions, as the history knows them.

    What is left of an entry after a prune was killed counts by the name that it had.
    """
    known = (name.removeprefix(BEING_REMOVED_PREFIX) for name in names)
    return {name for name in known if name.startswith(QUARANTINED_PREFIX)}


def quarantined_in(root: str) -> set[str]:
    """Return the names of quarantined deletions in a workspace of this machine."""
    try:
        return quarantined(os.listdir(os.path.join(root, OWN_DIRECTORY)))
    except OSError:
        return set()
