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
    """Names to hide, and the outermost directories that a command writes at once, both as on the disk.

    `overlaid` are directories that would be written at once, but hold something protected or hidden: changes
    in them are planned like all others.
    """

    hidden: tuple[str, ...]
    through: tuple[str, ...]
    overlaid: tuple[str, ...]


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
    walked = _Walk(workspace, within, opens_below, through, check)
    with at(workspace.backend, paths.ROOT) as spot:
        for _ in walk(workspace.backend, spot, paths.ROOT, walked.choose, on_error=walked.missed):
            pass
    hidden = walked.outermost()
    direct = [place for place, alone in walked.direct.items() if alone]
    overlaid = tuple(place for place, alone in walked.direct.items() if not alone)
    return Surroundings(tuple(map(to_disk, hidden)), tuple(map(to_disk, direct)), overlaid)


class _Walk:
    """A walk through the workspace, and what it has found so far."""

    def __init__(
        self,
        workspace: Workspace,
        within: Within,
        opens_below: Callable[[str], bool],
        through: Sequence[str],
        check: Callable[[], None],
    ) -> None:
        self._workspace = workspace
        self._within = within
        self._opens_below = opens_below
        self._at_once = Matcher(through, workspace.fold) if through else None
        self._check = check
        # Denied directories that were entered, and whether anything is shown there.
        self._on_the_way: dict[str, bool] = {}
        self.hidden: list[str] = []
        self.direct: dict[str, bool] = {}  # whether nothing protected or hidden is in it
        self._last_direct = ""

    def choose(self, path: str, folder: Folder) -> Iterator[Entry]:
        """Yield the directories to enter."""
        self._check()
        judge, above = self._within(path), paths.child(path, "")
        for name, stat in folder.scan():
            directory, place = stat.kind == DIRECTORY, above + name
            if self._workspace.hides(path, name):
                self._hide(place)
                continue
            if judge(name, directory) is not Effect.ALLOW:
                if directory and self._opens_below(place):
                    self._on_the_way[place] = False
                    yield Entry(place, stat)
                else:
                    self._hide(place)
                continue
            if self._on_the_way:
                _show(path, self._on_the_way)
            if directory:
                self._note_direct(place)
                yield Entry(place, stat)

    def _hide(self, place: str) -> None:
        self.hidden.append(place)
        if self._last_direct and paths.is_below(place, self._last_direct):
            self.direct[self._last_direct] = False

    def _note_direct(self, place: str) -> None:
        """Note an outermost directory that is written at once; one with protected names in it is not."""
        if self._at_once is None or not self._at_once.matches(place, True):
            return
        if self._last_direct and paths.is_below(place, self._last_direct):
            return
        self._last_direct = place
        try:
            self._workspace.guard(place)
        except CallError:
            self.direct[place] = False
        else:
            self.direct[place] = True

    def missed(self, entry: Entry, _: CallError) -> None:
        """Hide a directory that cannot be listed."""
        self._hide(entry.path)

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
