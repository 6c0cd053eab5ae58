"""Ignored names of a walk: the entries that `.gitignore` files exclude. Asks for files
that are listed, and for those above the walk.

Reads the files whether or not the agent may, and shows nothing of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.gitignore_rules import GIT, GITIGNORE, Applied, GitignoreRules, is_ignored
from ringfence.toolkit.plan.entries import FileNames
from ringfence.toolkit.storage.backend import Folder, Spot, at
from ringfence.toolkit.workspace.workspace import Workspace

MAX_BYTES: Final = 64 << 10  # of a file; a longer one, or one with too many lines, is not used

REMEMBERED: Final = 30.0  # seconds; a disk is asked each time

# Errors after which the walk goes on without the file.
_UNUSED: Final = frozenset({"too_large", "permission_denied", "path_changed"})
_NOT_A_FILE: Final = frozenset({"not_found", "not_a_directory", "is_directory", "not_regular_file"})


class IgnoredHere(NamedTuple):
    """The rules that apply to the names in one directory; `above` is what comes before a name in its path."""

    above: str
    rules: Applied

    def holds(self, name: str, directory: bool) -> bool:
        """Whether a name is ignored."""
        return is_ignored(self.rules, self.above + name, directory)

    def may_hold(self, files: FileNames) -> bool:
        """Whether one of these names may be ignored; False is certain."""
        return files.has(GIT) or any(own.mentions(files.names) for _, own in self.rules)


@dataclass(slots=True)
class IgnoredNames:
    """The rules along one walk, parents first. `note_unused` gets the path of each file that is not used."""

    workspace: Workspace
    note_unused: Callable[[str], None]
    # The directories down to the walk's position, with the rules that apply in each.
    _way: list[tuple[str, Applied]] = field(default_factory=list)

    def begin(self, top: str) -> None:
        """Look for files above the directory that a walk begins with. If that is ignored itself, no rule from
        above applies in it. Raises CallError.
        """
        rules: Applied = []
        for path in [] if top == paths.ROOT else [*reversed([*paths.above(top)]), top]:
            rules = self._with(rules, paths.parent(path), None)
            if is_ignored(rules, path, directory=True):
                rules = []
                break
        self._way = [(top, rules)]

    def within(self, path: str, folder: Folder, size: int | None) -> IgnoredHere:
        """Return which names in the open directory at `path` are ignored. `size` is that of its file with
        rules, as far as it is known; None if it has none. Raises CallError.
        """
        while self._way[-1][0] != path and not paths.is_below(path, self._way[-1][0]):
            self._way.pop()
        rules = self._way[-1][1]
        if size is not None and size > MAX_BYTES:
            self.note_unused(paths.child(path, GITIGNORE))
        elif size is not None:
            rules = self._with(rules, path, folder.spot(GITIGNORE))
        self._way.append((path, rules))
        return IgnoredHere(paths.child(path, ""), rules)

    def _above(self, path: str) -> bytes | None:
        """Return the content of a file above the walk; None if there is none. CallError as for reading.

        A store is asked for each directory, so what it answers is remembered for a while, and until this
        session changes something.
        """
        backend, remembered = self.workspace.backend, self.workspace.remembered
        until, data = remembered.get(path, (0.0, None))
        if until > time.monotonic():
            return data
        try:
            with at(backend, path) as own:
                data = backend.read(own, MAX_BYTES)
        except CallError as error:
            if error.code not in _NOT_A_FILE:
                raise
            data = None
        if not backend.traits.race_free:
            remembered[path] = time.monotonic() + REMEMBERED, data
        return data

    def _with(self, rules: Applied, folder: str, spot: Spot | None) -> Applied:
        """Return the rules and, before them, those of the file in a folder."""
        path, backend = paths.child(folder, GITIGNORE), self.workspace.backend
        try:
            data = self._above(path) if spot is None else backend.read(spot, MAX_BYTES)
        except CallError as error:
            if error.code in _UNUSED:
                self.note_unused(path)
            elif error.code not in _NOT_A_FILE:
                raise
            return rules
        if data is None:
            return rules
        read = GitignoreRules(data.decode("utf-8", "surrogateescape"), self.workspace.fold)
        if not read.whole:
            self.note_unused(path)
            return rules
        return [(folder, read), *rules]
