"""What a command sees of the workspace: names that its agent may not read are hidden. Only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ringfence.policy import Effect
from ringfence.policy.byte_names import to_disk
from ringfence.policy.patterns.matcher import Matcher
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Entry
from ringfence.toolkit.storage.backend import Folder, at
from ringfence.toolkit.storage.tree_walk import walk
from ringfence.toolkit.workspace.workspace import Workspace

# From a directory's path to a function that judges reading (name directly in it, is it a directory).
Within = Callable[[str], Callable[[str, bool], Effect]]


class Surroundings(NamedTuple):
    """Names to hide, and the outermost directories that a command writes at once, both as on the disk."""

    hidden: tuple[str, ...]
    through: tuple[str, ...]


def surroundings(
    workspace: Workspace,
    within: Within,
    opens_below: Callable[[str], bool],
    through: Sequence[str],
    check: Callable[[], None],
) -> Surroundings:
    """Look through the workspace. `through` are the patterns of directories to be written at once.

    A directory is hidden as one, if nothing below it may be read. What a person would be asked about is
    hidden, too: a command cannot wait for the answer. So is a directory that cannot be listed, and everything
    of another file system. `check` raises to give up.
    """
    hidden: list[str] = []
    direct: list[str] = []
    at_once = Matcher(through, workspace.fold) if through else None

    def choose(path: str, folder: Folder) -> Iterator[Entry]:
        judge, above = within(path), paths.child(path, "")
        check()
        for name, stat in folder.scan():
            directory, place = stat.kind == DIRECTORY, above + name
            if workspace.hides(path, name):
                hidden.append(place)
            elif judge(name, directory) is not Effect.ALLOW:
                if directory and opens_below(place):
                    yield Entry(place, stat)
                else:
                    hidden.append(place)
            elif directory and at_once is not None and at_once.matches(place, True):
                direct.append(place)
            elif directory:
                yield Entry(place, stat)

    def missed(entry: Entry, _: CallError) -> None:
        hidden.append(entry.path)

    with at(workspace.backend, paths.ROOT) as spot:
        for _ in walk(workspace.backend, spot, paths.ROOT, choose, missed=missed):
            pass
    return Surroundings(tuple(map(to_disk, hidden)), tuple(map(to_disk, direct)))
