"""The roots that the rows are run on: a workspace, with something outside it and task folders beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ringfence.policy import Policy
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.open import private_memory
from ringfence.toolkit.testing.backend_contract import OWN_TASK, Disk, Remote, content


class World:
    """A row's files below one folder of this machine: `ws`, `outside`, the state, the task store."""

    def __init__(self, folder: Path, tree: Disk | Remote, root: str) -> None:
        self.folder = folder
        self.tree_of: Any = tree
        self.root = root  # as a user would type it
        self.policy_file = folder / "policy.yaml"
        self.beside = folder / "outside"

    @classmethod
    def local(cls, folder: Path) -> World:
        (folder / "ws").mkdir()
        return cls(folder, Disk(folder / "ws"), str(folder / "ws"))

    @classmethod
    def by_url(cls, folder: Path) -> World:
        (folder / "ws").mkdir()
        return cls(folder, Disk(folder / "ws"), (folder / "ws").as_uri())

    @classmethod
    def memory(cls, folder: Path) -> World:
        fs = private_memory()
        fs.makedirs("/workspace")
        return cls(folder, Remote(fs, "/workspace"), "/workspace")

    # -- before

    def fill(self, row: dict[str, Any]) -> None:
        for path, what in row.get("files", {}).items():
            self.tree_of.put(path, what)
        for path, what in row.get("tasks", {}).items():
            self.tree_of.put_task(path, what)
        for path, what in row.get("outside", {}).items():
            Disk(self.beside).put(path, what)
        for path, mode in row.get("modes", {}).items():
            (self.folder / path).chmod(int(mode, 8))

    def unlock(self) -> None:
        """Let the folder be removed by whoever made it."""
        for place in [path for path in self.folder.rglob("*") if path.is_dir() and not path.is_symlink()]:
            place.chmod(0o700)

    # -- meanwhile

    def open(self, policy: Policy, agent: str) -> Session:
        fs = self.tree_of.fs if isinstance(self.tree_of, Remote) else None
        return Session(
            self.root,
            policy,
            fs=fs,
            agent=agent,
            state=self.folder / "state",
            session="seeds",
            tasks=self.store if self._stored() else None,
            task=OWN_TASK,
        )

    @property
    def store(self) -> str:
        """The task store, as a user would type it."""
        place = self.tree_of.store
        return place.as_uri() if self.root.startswith("file:") else str(place)

    def _stored(self) -> bool:
        if isinstance(self.tree_of, Remote):
            return bool(self.tree_of.fs.exists(self.tree_of.store))
        return self.tree_of.store.is_dir()

    def replace(self, path: str, what: Any) -> None:
        """Somebody else, past Ringfence, writes a path of the workspace or (null) takes it away."""
        tree = self.tree_of
        if isinstance(tree, Remote):
            tree.fs.rm(f"{tree.root}/{path}", recursive=True) if what is None else tree.put(path, what)
        elif what is None:
            os.unlink(tree.root / path)
        else:
            tree.put(path, what)

    def words(self, words: list[str]) -> list[str]:
        """A command line for this workspace, with what a row writes as `${...}` filled in."""
        where = ["--root", self.root, "--state", str(self.folder / "state")]
        known = {"${policy}": str(self.policy_file), "${tasks}": self.store, "${folder}": str(self.folder)}
        found = []
        for word in words:
            for name, text in known.items():
                word = word.replace(name, text)
            found += where if word == "${where}" else [word]
        return found

    # -- after

    def tree(self) -> dict[str, Any]:
        found: dict[str, Any] = self.tree_of.tree()
        return found

    def outside(self) -> dict[str, Any]:
        return Disk(self.beside).tree()

    def task_names(self) -> list[str]:
        names: list[str] = self.tree_of.task_names()
        return names

    @staticmethod
    def expected(tree: dict[str, Any]) -> dict[str, Any]:
        kept = {"link", "dir"}
        return {
            path.rstrip("/"): what if isinstance(what, dict) and kept & set(what) else content(what)
            for path, what in tree.items()
        }


# One line for each way to open a workspace, and whether it is on this machine's disk.
ROOTS: dict[str, tuple[Callable[[Path], World], bool]] = {
    "local": (World.local, True),
    "file": (World.by_url, True),
    "memory": (World.memory, False),
}
