"""Scratches of a workspace's commands: the directories that hold what commands changed, and whose they are.

A scratch belongs to the process that made it until an approval request owns it. What belongs to nobody any
more is removed: at the next command, session or answer.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import stat as S
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ringfence.toolkit.commands.folder_names import TURN
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.private_files import private_directory

_LOCK, _MANIFEST, _CHANGES = "lock", "command.json", "changes"
_PAUSE = 0.02  # seconds between two looks at whether it is this command's turn
_VERSION = 1


@dataclass(slots=True)
class Scratch:
    """A directory with a command's changes. Locked by the process that works with it."""

    path: str
    manifest: dict[str, Any] = field(default_factory=dict)
    _lock: int = -1

    @property
    def changes(self) -> str:
        """The directory for the sandbox, which holds what the command changes."""
        return os.path.join(self.path, _CHANGES)

    @property
    def approval(self) -> str | None:
        """The id of the approval request that the changes wait for."""
        found = self.manifest.get("approval")
        return found if isinstance(found, str) else None

    def note(self, **fields: Any) -> None:
        """Store JSON values with the scratch, so that they outlive this process."""
        self.manifest |= fields
        temporary = os.path.join(self.path, f".{_MANIFEST}")
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            json.dump({"version": _VERSION, **self.manifest}, file)
        os.replace(temporary, os.path.join(self.path, _MANIFEST))

    def release(self) -> None:
        """Keep the scratch for its approval, and let other processes work with it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def remove(self) -> None:
        """Remove the scratch with everything in it.

        The manifest goes first: from then on nobody takes the rest for changes that wait.
        """
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.path, _MANIFEST))
        remove_tree(self.path)
        self.release()

    def size(self) -> int:
        """Return how many bytes the scratch has on disk."""
        total = 0
        for folder, _, names in os.walk(self.path, followlinks=False):
            for name in names:
                with contextlib.suppress(OSError):
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512
        return total


class Scratches:
    """All scratches of one workspace, in the directory `folder`. Made at first use."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def new(self) -> Scratch:
        """Make an empty scratch that belongs to this process. Raises CallError `command_failed`."""
        try:
            private_directory(self.folder)
            with self._alone():
                path = os.path.join(self.folder, secrets.token_hex(8))
                os.mkdir(path, 0o700)
                lock = locked_file(os.path.join(path, _LOCK))
                assert lock is not None, "nobody else knows the new directory"
                scratch = Scratch(path, {}, lock)
                os.mkdir(scratch.changes, 0o700)
                return scratch
        except OSError as error:
            raise _unusable(error) from None

    def waiting(self, **wanted: Any) -> Scratch | None:
        """Return the scratch of a finished command with these fields in its manifest; None if there is none.

        Raises CallError `command_failed` if another process works with it now.
        """
        with self._alone():
            for path in self._paths():
                if not _has(_manifest(path), wanted):
                    continue
                lock = locked_file(os.path.join(path, _LOCK))
                manifest = _manifest(path)  # another process may have removed it before the lock was taken
                if manifest is None or not _has(manifest, wanted):
                    if lock is not None:
                        os.close(lock)
                    continue
                if lock is None:
                    message = "The same call is being carried out by another process"
                    raise CallError("command_failed", message, hint="wait for its end")
                return Scratch(path, manifest, lock)
        return None

    def sweep(self, is_open: Callable[[str], bool]) -> int:
        """Remove what dead processes left, and what waits for an approval that has ended by `is_open`.

        Returns how many scratches were removed.
        """
        if not os.path.isdir(self.folder):
            return 0
        gone = 0
        with self._alone():
            for path in self._paths():
                lock = locked_file(os.path.join(path, _LOCK))
                if lock is None:
                    continue  # a living process works with it
                scratch = Scratch(path, _manifest(path) or {}, lock)
                if scratch.approval is not None and is_open(scratch.approval):
                    scratch.release()
                else:
                    scratch.remove()
                    gone += 1
        return gone

    def pending_bytes(self) -> int:
        """Return how many bytes all scratches that wait for approvals have on disk."""
        return sum(int((_manifest(path) or {}).get("bytes", 0)) for path in self._paths())

    @contextlib.contextmanager
    def turn(self, check: Callable[[], None], seconds: float) -> Iterator[None]:
        """Wait until no other command runs in this workspace. `check` raises to give up.

        Raises CallError `command_failed` after `seconds`.
        """
        private_directory(self.folder)
        until = time.monotonic() + seconds
        fd = os.open(os.path.join(self.folder, TURN), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while not _lock(fd, wait=False):
                check()
                if time.monotonic() > until:
                    message = "Another command still runs in this workspace"
                    raise CallError("command_failed", message, hint="try again later")
                time.sleep(_PAUSE)
            yield
        finally:
            os.close(fd)

    def _paths(self) -> list[str]:
        try:
            with os.scandir(self.folder) as entries:
                return sorted(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the folder, so that a new scratch has its lock before another process sees it.

        Raises CallError `history_unavailable` if another user could have put scratches there.
        """
        try:
            if os.path.isdir(self.folder):
                private_directory(self.folder)
            fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            yield
            return
        try:
            _lock(fd, wait=True)
            yield
        finally:
            os.close(fd)


def locked_file(path: str) -> int | None:
    """Return a descriptor that holds the lock of a file, made if need be; None if another process has it, or
    has just removed the directory.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return None
    if _lock(fd, wait=False):
        return fd
    os.close(fd)
    return None


def _lock(fd: int, *, wait: bool) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def _manifest(path: str) -> dict[str, Any] | None:
    """Return a scratch's manifest; None if the command did not end, or another version wrote it."""
    try:
        with open(os.path.join(path, _MANIFEST), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.pop("version", None) == _VERSION else None


def _has(manifest: dict[str, Any] | None, wanted: dict[str, Any]) -> bool:
    return manifest is not None and all(manifest.get(name) == value for name, value in wanted.items())


def remove_tree(path: str) -> None:
    """Remove a tree in which a command or the kernel may have taken rights from its owner."""
    for folder, names, _ in os.walk(path, followlinks=False, onerror=lambda _: None):
        for name in names:
            place = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                if S.S_ISDIR(mode := os.lstat(place).st_mode) and mode & 0o700 != 0o700:
                    os.chmod(place, 0o700)
    shutil.rmtree(path, ignore_errors=True)


def _unusable(error: OSError) -> CallError:
    return CallError("command_failed", f"The scratch of a command cannot be made: {error.strerror}")
