"""Files of a state in a directory: whether they are still the opened ones, and how they are created.

Uses names alone: opening and closing a database's file beside SQLite drops the locks that SQLite holds on it.
"""

from __future__ import annotations

import json
import os
import stat as S
from collections.abc import Callable
from dataclasses import dataclass

from ringfence.toolkit.private_files import private_file
from ringfence.toolkit.state.errors import wrong

DATABASE, LOG, INDEX = "state.db", "state.db-wal", "state.db-shm"
_PART = "state.db.part"
OF = "workspace.json"  # the owner of the state; in a file of its own, so that a damaged database has one too
_Identity = tuple[int, int] | None


class OpenedFiles:
    """The files of a state when it was opened. OSError."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._database = os.path.join(folder, DATABASE)
        info = os.stat(self._database)
        self._known = (info.st_dev, info.st_ino)
        self._size = info.st_size
        beside = [os.path.join(folder, name) for name in (LOG, INDEX)]
        self._beside = [(path, _identity(path)) for path in beside]

    def check(self) -> bool:
        """Whether the database's file is at least as long as at the last check.

        CallError `history_unavailable` when it is not the file that was opened, OSError.
        """
        try:
            info = os.stat(self._database)
        except FileNotFoundError:
            there = os.path.isdir(self._folder) and os.listdir(self._folder)
            raise wrong("file removed" if there else "removed") from None
        if (info.st_dev, info.st_ino) != self._known:
            raise wrong("replaced")
        if not info.st_size:
            raise wrong("emptied")
        for path, known in self._beside:
            if _identity(path) != known:
                raise wrong("log")
        return info.st_size >= self._size

    def is_shorter(self) -> None:
        """Accept the present length of the database as the right one."""
        self._size = os.stat(self._database).st_size


def _identity(path: str) -> _Identity:
    try:
        info = os.stat(path)
    except FileNotFoundError:
        return None
    return info.st_dev, info.st_ino


def make_database(folder: str, build: Callable[[str], None]) -> bool:
    """Create the database of a new state with `build`; returns whether there was none.

    The file gets its name when it is complete. CallError `history_unavailable` where the directory holds
    remains of a state that lost its database, OSError.
    """
    if _has_content(os.path.join(folder, DATABASE)):
        return False
    import fcntl

    fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)  # the lock ends with the descriptor
        database, part = os.path.join(folder, DATABASE), os.path.join(folder, _PART)
        if _has_content(database):
            return False
        names = set(os.listdir(folder))
        unfinished = {name for name in names if name.startswith(_PART)}  # with SQLite's journal
        if left := names - unfinished:
            raise wrong("emptied" if DATABASE in left else "missing")
        for name in unfinished:
            os.unlink(os.path.join(folder, name))
        private_file(part)
        build(part)
        os.rename(part, database)
        os.fsync(fd)
        return True
    finally:
        os.close(fd)


def _has_content(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except FileNotFoundError:
        return False


def is_state(folder: str) -> bool:
    """Whether a directory holds a state."""
    return os.path.isfile(os.path.join(folder, DATABASE))


@dataclass(frozen=True, slots=True)
class Owning:
    """The workspace that a state belongs to: its root as displayed, and its directory if it has one.

    `directory` is device and inode, which stay the same when a directory is renamed.
    """

    root: str
    directory: tuple[int, int] | None = None

    @property
    def is_local(self) -> bool:
        """Whether the workspace is a directory of this machine."""
        return "://" not in self.root


def owning(root: str) -> Owning:
    """Return the workspace at a root of this machine, or at a root in a store."""
    try:
        info = os.stat(root)
    except OSError:
        return Owning(root)
    return Owning(root, (info.st_dev, info.st_ino) if S.S_ISDIR(info.st_mode) else None)


def read_owning(folder: str) -> Owning | None:
    """Return the workspace that the state in a directory belongs to; None if it is not recorded."""
    try:
        with open(os.path.join(folder, OF), encoding="utf-8", errors="surrogateescape") as file:
            found = json.load(file)
        directory = found["directory"]
        return Owning(
            str(found["root"]), None if directory is None else (int(directory[0]), int(directory[1]))
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def write_owning(folder: str, workspace: Owning) -> None:
    """Record which workspace a state belongs to. OSError."""
    if read_owning(folder) == workspace:
        return
    path, part = os.path.join(folder, OF), os.path.join(folder, f"{OF}.{os.getpid()}")
    private_file(part)
    directory = None if workspace.directory is None else list(workspace.directory)
    with open(part, "w", encoding="utf-8") as file:
        json.dump({"root": workspace.root, "directory": directory}, file)
    os.rename(part, path)
