"""What no policy can open up: policy files, Ringfence's own state, and names that are reserved.

Pure but for looking where a protected file really is; whoever opens a path asks here first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from ringfence.policy.byte_names import from_disk
from ringfence.policy.patterns.syntax import Fold, Folding, folded
from ringfence.toolkit import paths, program_files
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.project_root import MARKS, POLICY_FILE

OWN_DIRECTORY = ".ringfence"
TEMPORARY = ".ringfence-"
TASKS = "@tasks"  # the task store's name in paths; at a workspace's root it is reserved
ASIDE = (".", "-")  # what follows a log's name in the names of what was put aside: `log.1`, `log-20261128.gz`

_MAX_LINKS = 40  # as many as the kernel follows
_FIRST = (OWN_DIRECTORY[0], TASKS[0])  # no other character is one of these when case is folded


class Protection:
    """The paths below some roots (spellings of one directory) that no tool may change."""

    def __init__(self, roots: tuple[str, ...], fold: Fold) -> None:
        self._roots = roots
        self._fold = fold
        self._held: set[str] = set()
        self._links: set[str] = set()
        self._linked: set[str] = set()
        self._beginnings: tuple[str, ...] = ()

    def protect(self, absolute: str, *, aside: bool = False) -> None:
        """Name a file or directory of this machine that no tool may change, where it lies in the root.

        Every link and every directory on the way to it is protected with it. With `aside` neither what was
        put aside of it, nor what would pass for that.
        """
        held = {folded(relative, self._fold) for relative in self.inside(absolute)}
        self._held |= held
        links = {link for link in links_to(absolute) if link != absolute}
        if links:
            self._linked.add(absolute)
            self._links |= {folded(name, self._fold) for link in links for name in self._relative(link)}
        if aside:
            self._beginnings += tuple(f"{name}{sign}" for name in held for sign in ASIDE)

    def protect_program(self) -> tuple[str, ...]:
        """Protect what the running program was loaded from, and names that its next start would run.

        Gives the names in the root of what it was loaded from.
        """
        before = self._held
        self._held = set()
        for place in program_files.trees(self._roots):
            self.protect(place)
        loaded, self._held = self._held, self._held | before
        for folder, names in program_files.names():
            for inside in dict.fromkeys(self.inside(folder)):
                if any(paths.is_below(inside, held) or inside == held for held in loaded):
                    continue
                self._beginnings += tuple(folded(paths.child(inside, each), self._fold) for each in names)
        return tuple(sorted(loaded))

    def renew(self) -> None:
        """Look again at what is reached through links: others may have exchanged one since."""
        for absolute in tuple(self._linked):
            self.protect(absolute)

    def inside(self, absolute: str) -> Iterator[str]:
        """The names in the root of a file or directory of this machine, if it lies there."""
        for form in (absolute, os.path.realpath(absolute)):
            yield from self._relative(form)

    def _relative(self, absolute: str) -> Iterator[str]:
        for root in self._roots:
            if program_files.within(absolute, root):
                yield from_disk(os.path.relpath(absolute, root))

    def guard(self, path: str, *, reading: bool = False, tasks: bool = False) -> None:
        """Refuse (`protected_path`) a path that no policy can open up; `tasks` for a task tool's own."""
        name = folded(path, self._fold) if self._fold else path
        first = name.partition("/")[0]
        if (first == TASKS) != tasks:
            raise _protected(path)
        own = OWN_DIRECTORY in name  # which few paths hold, at whatever place
        if own and (first == OWN_DIRECTORY or any(each.startswith(TEMPORARY) for each in paths.parts(name))):
            raise _protected(path)
        if reading:
            return
        if name.rpartition("/")[2] == POLICY_FILE or f"{name}/".startswith(self._beginnings):
            raise _protected(path)
        if any(
            name == held or paths.is_below(name, held) or paths.is_below(held, name) for held in self._held
        ):
            raise _protected(path)
        # What lies behind a link is not of the link; what the link lies in is.
        if self._links and any(name == link or paths.is_below(link, name) for link in self._links):
            raise _protected(path)

    def guard_new(self, path: str) -> None:
        """Refuse (`protected_path`) to make, where nothing is, a mark of a project in a sub-folder.

        Whoever starts there finds the nearest mark of a project, and no policy above it.
        """
        folder, _, name = (folded(path, self._fold) if self._fold else path).rpartition("/")
        if folder and name in MARKS:
            raise _protected(path, "it would cut its folder off from the policy; a person makes it")

    def hides(self, path: str, name: str) -> bool:
        """Whether an entry is Ringfence's own and shown to nobody."""
        if name[:1] not in _FIRST:
            return False
        own = folded(name, self._fold)
        return own.startswith(TEMPORARY) or (path == paths.ROOT and own in (OWN_DIRECTORY, TASKS))


def links_to(absolute: str) -> Iterator[str]:
    """Every link that the way to a file of this machine goes through, by its own place."""
    at, todo, followed = "/", list(reversed(absolute.split("/"))), 0
    while todo and followed < _MAX_LINKS:
        name = todo.pop()
        if name == "..":
            at = os.path.dirname(at)
            continue
        here = os.path.join(at, name)
        try:
            target = os.readlink(here) if name not in ("", ".") else None
        except OSError:
            target = None
        if target is None:
            at = here if name not in ("", ".") else at
            continue
        yield here
        followed += 1
        at = "/" if target.startswith("/") else at
        todo.extend(reversed(target.split("/")))


def of_program(root: str) -> tuple[str, ...]:
    """What the running program was loaded from, by its names in the root."""
    forms = dict.fromkeys((os.path.realpath(root), os.path.abspath(root)))
    return Protection(tuple(forms), Folding.NONE).protect_program()


def _protected(path: str, hint: str | None = None) -> CallError:
    return CallError("protected_path", f"'{path}' is protected", where=path, hint=hint)


QUARANTINED_PREFIX = "kept-"  # how the name of a catch that stays begins
