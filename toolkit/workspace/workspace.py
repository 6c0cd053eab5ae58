"""Workspace of a session: the confined tree with its protected paths.

Never judges: the policy is asked by the session and by the view.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from ringfence.policy.patterns.syntax import Fold
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import shown
from ringfence.toolkit.plan.entries import Entry
from ringfence.toolkit.protected_paths import Protection
from ringfence.toolkit.storage.backend import Folder, Spot, Tree, WritableTree
from ringfence.toolkit.storage.local_roots import local_path
from ringfence.toolkit.storage.tree_walk import all_entries, walk

_LARGE = 1 << 20


class Workspace:
    """A confined tree with its name and its protected paths.

    `root` is a directory, `memory://`, or any fsspec URL (opened with `options`); with `fs` it is a path on
    that file system. A directory of this machine is always confined, in whichever way it is given. `place`
    names the machine, server or account of the root; the attribute `url` is its location for people. Raises
    CallError `not_found` or `not_a_directory` for an invalid root, and `not_confined` for one that reaches
    the local disk in a way that cannot be confined.
    """

    def __init__(  # noqa: PLR0913  the settings of a root, by keyword
        self,
        root: str,
        *,
        fs: Any = None,
        durable: bool = True,
        found_by: str = "given",
        options: dict[str, Any] | None = None,
        tasks: str | None = None,
        place: str | None = None,
    ) -> None:
        if tasks is None:  # else the options may be for the task store
            _check_options(root, fs, options or {})
        self._writable, self.roots = _open(root, fs, durable, options or {})
        self.has_tasks = tasks is not None
        self.own_task: str | None = None
        if tasks is not None:
            self._join(tasks, fs, durable, options or {})
        self.place = self.backend.place if place is None else self.backend.place.named(place)
        self.url = shown(self.place)
        self.root_name = self.url.rstrip("/").rpartition("/")[2] or self.url
        self.found_by = found_by
        # What files above a search contain (None: there is none), and until when that is remembered.
        self.remembered: dict[str, tuple[float, bytes | None]] = {}
        self._protection = Protection(self.roots, self.fold)
        # Whether an entry, by its directory and its name, is Ringfence's own and never listed.
        self.hides = self._protection.hides
        self.may_hide = self._protection.may_hide
        if local_path(root, fs, options or {}) is not None:
            self._protection.protect_program()

    def _join(self, tasks: str, fs: Any, durable: bool, options: dict[str, Any]) -> None:
        from ringfence.toolkit.storage.task_mount_open import mount_tasks

        try:
            self._writable = mount_tasks(self._writable, tasks, fs, durable, options)
        except BaseException:
            self._writable.close()
            raise

    @property
    def backend(self) -> Tree:
        """The tree, for reading."""
        return self._writable

    def writable(self) -> WritableTree:
        """Return the tree for changes: only for execution, recovery and pruning."""
        return self._writable

    def quarantine_beside(self, state: str, *, make: bool = True) -> None:
        """Quarantine deleted entries in the directory `state` of this machine, if that is possible."""
        self._writable.quarantine_beside(state, make=make)

    def open_tasks(self) -> None:
        """Check that the task store can be used now. Raises CallError if it cannot."""
        renew: Callable[[], None] = getattr(self.backend, "renew", lambda: None)
        renew()

    @property
    def fold(self) -> Fold:
        """Which differences between names the backend ignores, such as case."""
        return self.backend.fold

    def close(self) -> None:
        """Close the backend."""
        self.backend.close()

    def split(self, text: str, parameter: str = "path") -> tuple[str, ...]:
        """Return the names of a path argument; an absolute path inside the root becomes relative."""
        for root in self.roots[1:]:
            try:
                return paths.split(text, root, parameter)
            except CallError as error:
                if error.code != "outside_root":
                    raise
        return paths.split(text, self.roots[0], parameter)

    def protect(self, absolute: str, *, aside: bool = False) -> None:
        """Protect a file or directory of this machine, if it lies in the root; with `aside` a log and its
        rotated copies.
        """
        self._protection.protect(absolute, aside=aside)

    def look_again_at_links(self) -> None:
        """Protect the present links on the way to protected files."""
        self._protection.renew()

    def holds(self, absolute: str) -> bool:
        """Whether a file of this machine lies in the root."""
        return any(self._protection.inside(absolute))

    def protect_tasks(self) -> None:
        """Protect the task store from other tools, also if it lies in the workspace."""
        store = getattr(self.backend, "store_root", None)
        for place in (store, f"{store}.trash") if store is not None else ():
            self.protect(place)

    def guard(self, path: str, *, reading: bool = False, tasks: bool = False) -> None:
        """Refuse (`protected_path`) a path that no policy can permit; `tasks`: a task tool may use the task
        store.
        """
        self._protection.guard(path, reading=reading, tasks=tasks)

    def guard_new(self, path: str) -> None:
        """Refuse (`protected_path`) to create a name that would separate a sub-folder from its policy."""
        self._protection.guard_new(path)

    def below(self, spot: Spot, path: str) -> Iterator[Entry]:
        """Yield every descendant of the directory at `spot`, readable or not, parents before children."""
        for entry, _ in walk(self.backend, spot, path, self._shown):
            yield entry

    def _shown(self, path: str, folder: Folder) -> Iterator[Entry]:
        return (entry for entry in all_entries(path, folder) if not self.hides(path, entry.name))


def _check_options(root: str, fs: Any, options: dict[str, Any]) -> None:
    """Refuse (`invalid_arguments`) options that would have no effect."""
    known = {"root"} if fs is None and root.startswith("ringfence://") else set()
    unknown = sorted(options.keys() - known)
    kind = "a file system object has those it was made with" if fs is not None else "they are for stores"
    if unknown and (
        root.startswith("memory://") or local_path(root, fs, options) is not None or fs is not None
    ):
        from ringfence.toolkit.storage.fsspec_store.options import wrong_option

        raise wrong_option(unknown[0], kind)


def _open(root: str, fs: Any, durable: bool, options: dict[str, Any]) -> tuple[WritableTree, tuple[str, ...]]:
    path = local_path(root, fs, options)
    if path is not None:
        from ringfence.toolkit.storage.local.opening import open_local

        local = open_local(path, durable=durable)
        given = os.path.abspath(path)
        return local, (local.root,) if given == local.root else (local.root, given)
    from ringfence.toolkit.storage.open import open_store, private_memory, store_on

    if fs is None and root.startswith("memory://"):
        fs, root = private_memory(), root.removeprefix("memory://") or "/workspace"
        root = "/" + root.strip("/")
        fs.makedirs(root, exist_ok=True)
    elif fs is None:
        if root.startswith(("sftp://", "ssh://")):
            from ringfence.toolkit.storage.sftp import open_sftp

            sftp = open_sftp(root, options)
            return sftp, (sftp.root,)
        fs, root = open_store(root, options)
    store = store_on(fs, root)
    # If fsspec's DirFileSystem was given, paths are absolute in its directory.
    same = store.root.strip("/") == root.strip("/")
    return store, (store.root if same else root.rstrip("/"),)
