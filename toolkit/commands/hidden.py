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
    hidden, too: a command cannot wait for the answer. So is a directory that cannot be listed. `check` raises
    to give up.
    """
    look = _Look(workspace, within, opens_below, through, check)
    with at(workspace.backend, paths.ROOT) as spot:
        for _ in walk(workspace.backend, spot, paths.ROOT, look.choose, missed=look.missed):
            pass
    return Surroundings(tuple(map(to_disk, look.outermost())), tuple(map(to_disk, look.direct)))


class _Look:
    """A walk through the workspace, and what it has found so far."""

    def __init__(
        self,
        workspace: Workspace,
        within: Within,
        opens_below: Callable[[str], bool],
        through: Sequence[str],
        check: Callable[[], None],
    ) -> None:
        self._hides = workspace.hides
        self._within = within
        self._opens_below = opens_below
        self._at_once = Matcher(through, workspace.fold) if through else None
        self._check = check
        # Denied directories that were entered, and whether anything is shown there.
        self._on_the_way: dict[str, bool] = {}
        self.hidden: list[str] = []
        self.direct: list[str] = []

    def choose(self, path: str, folder: Folder) -> Iterator[Entry]:
        """Yield the directories to enter."""
        self._check()
        judge, above = self._within(path), paths.child(path, "")
        for name, stat in folder.scan():
            directory, place = stat.kind == DIRECTORY, above + name
            if self._hides(path, name):
                self.hidden.append(place)
            elif judge(name, directory) is not Effect.ALLOW:
                if directory and self._opens_below(place):
                    self._on_the_way[place] = False
                    yield Entry(place, stat)
                else:
                    self.hidden.append(place)
            elif self._is_entered(path, place, directory):
                yield Entry(place, stat)

    def _is_entered(self, path: str, place: str, directory: bool) -> bool:
        """Note that something is shown in the directory `path`; return whether to look below it."""
        if self._on_the_way:
            _show(path, self._on_the_way)
        if directory and self._at_once is not None and self._at_once.matches(place, True):
            self.direct.append(place)
            return False
        return directory

    def missed(self, entry: Entry, _: CallError) -> None:
        """Hide a directory that cannot be listed."""
        self.hidden.append(entry.path)

    def outermost(self) -> list[str]:
        """Return what to hide; a directory in which nothing is shown hides all that is in it."""
        empty = [place for place, shown in self._on_the_way.items() if not shown]
        return _outermost([*self.hidden, *empty]) if empty else self.hidden


def _show(path: str, on_the_way: dict[str, bool]) -> None:
    """Mark a directory and those above it as shown."""
    while path != paths.ROOT:
        if path in on_the_way:
            on_the_way[path] = True
        path = paths.parent(path)


def _outermost(places: list[str]) -> list[str]:
    """Return the places without those that lie below another one."""
    found: list[str] = []
    for place in sorted(places, key=paths.parts):
        if not (found and paths.is_below(place, found[-1])):
            found.append(place)
    return found
