"""Protected paths, which no policy can permit: policy files, Ringfence's own state, and reserved names.

Pure, except that it resolves the links to protected files. Every path is checked here before it is opened.
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
ASIDE = (".", "-")  # what follows a log's name in the names of its rotated copies: `log.1`, `log-20261128.gz`

_MAX_LINKS = 40  # as many as the kernel follows
_FIRST = frozenset((OWN_DIRECTORY[0], TASKS[0]))  # case folding maps no other character to these
_OWN_BEGINS, _TASKS_BEGIN = f"/{OWN_DIRECTORY[0]}", f"/{TASKS[0]}"


class Protection:
    """The paths that no tool may change, below some roots (spellings of one directory)."""

    def __init__(self, roots: tuple[str, ...], fold: Fold) -> None:
        self._roots = roots
        self._fold = fold
        self._held: set[str] = set()
        self._links: set[str] = set()
        self._linked: set[str] = set()
        self._beginnings: tuple[str, ...] = ()

    def protect(self, absolute: str, *, aside: bool = False) -> None:
        """Protect a file or directory of this machine, if it lies in the root.

        Every link and every directory on the way to it is protected, too. With `aside` also its rotated
        copies, and names that look like these.
        """
        folded_names = {folded(relative, self._fold) for relative in self.inside(absolute)}
        self._held |= folded_names
        links = {link for link in links_to(absolute) if link != absolute}
        if links:
            self._linked.add(absolute)
            self._links |= {folded(name, self._fold) for link in links for name in self._relative(link)}
        if aside:
            self._beginnings += tuple(f"{name}{sign}" for name in folded_names for sign in ASIDE)

    def protect_program(self) -> tuple[str, ...]:
        """Protect the files that the running program was loaded from, and names that its next start would
        run.

        Returns the names of these files in the root.
        """
        before = self._held
        self._held = set()
        for place in program_files.trees(self._roots):
            self.protect(place)
        loaded, self._held = self._held, self._held | before
        for folder, names in program_files.names():
            for inside in dict.fromkeys(self.inside(folder)):
                if any(
                    paths.is_below(inside, folded_names) or inside == folded_names for folded_names in loaded
                ):
                    continue
                self._beginnings += tuple(folded(paths.child(inside, each), self._fold) for each in names)
        return tuple(sorted(loaded))

    def renew(self) -> None:
        """Resolve the links to protected files again: another program may have replaced one."""
        for absolute in tuple(self._linked):
            self.protect(absolute)

    def inside(self, absolute: str) -> Iterator[str]:
        """Return the names in the root of a file or directory of this machine, if it lies there."""
        for form in (absolute, os.path.realpath(absolute)):
            yield from self._relative(form)

    def _relative(self, absolute: str) -> Iterator[str]:
        for root in self._roots:
            if program_files.within(absolute, root):
                yield from_disk(os.path.relpath(absolute, root))

    def guard(self, path: str, *, reading: bool = False, tasks: bool = False) -> None:
        """Refuse (`protected_path`) a path that no policy can permit; `tasks`: a task tool may use the task
        store.
        """
        name = folded(path, self._fold) if self._fold else path
        first = name.partition("/")[0]
        if (first == TASKS) != tasks:
            raise _protected(path)
        own = OWN_DIRECTORY in name  # few paths contain it anywhere
        if own and (first == OWN_DIRECTORY or any(each.startswith(TEMPORARY) for each in paths.parts(name))):
            raise _protected(path)
        if reading:
            return
        if name.rpartition("/")[2] == POLICY_FILE or f"{name}/".startswith(self._beginnings):
            raise _protected(path)
        if any(
            name == folded_names or paths.is_below(name, folded_names) or paths.is_below(folded_names, name)
            for folded_names in self._held
        ):
            raise _protected(path)
        # A link's target is not protected because of the link; the directories above the link are.
        if self._links and any(name == link or paths.is_below(link, name) for link in self._links):
            raise _protected(path)

    def guard_new(self, path: str) -> None:
        """Refuse (`protected_path`) to create a policy or VCS folder in a sub-folder.

        A program started there would find the new file first, and not the policy above it.
        """
        folder, _, name = (folded(path, self._fold) if self._fold else path).rpartition("/")
        if folder and name in MARKS:
            raise _protected(path, "it would cut its folder off from the policy; a person makes it")

    def hides(self, path: str, name: str) -> bool:
        """Whether an entry is Ringfence's own and never listed."""
        if name[:1] not in _FIRST:
            return False
        own = folded(name, self._fold)
        return own.startswith(TEMPORARY) or (path == paths.ROOT and own in (OWN_DIRECTORY, TASKS))

    def may_hide(self, names: str) -> bool:
        """Whether `hides` may hold for one of these names, each between slashes, in some directory; False is
        certain.
        """
        return _OWN_BEGINS in names or _TASKS_BEGIN in names


def links_to(absolute: str) -> Iterator[str]:
    """Yield every link on the way to a file of this machine, by its own path."""
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
    """Return the names in the root of the files that the running program was loaded from."""
    forms = dict.fromkeys((os.path.realpath(root), os.path.abspath(root)))
    return Protection(tuple(forms), Folding.NONE).protect_program()


def _protected(path: str, hint: str | None = None) -> CallError:
    return CallError("protected_path", f"'{path}' is protected", where=path, hint=hint)


BEING_REMOVED_PREFIX = "going-"  # before the name of a quarantined entry that a prune removes
QUARANTINED_PREFIX = "kept-"  # prefix of a quarantined entry that stays in the workspace
