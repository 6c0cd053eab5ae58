"""Lock files of processes: each running process holds a lock on its own file, which the kernel releases.

Knows nothing of processes on other machines, and removes only files of processes that are gone.
"""

from __future__ import annotations

import os
import secrets
import weakref

from ringfence.toolkit.errors import CallError


class Owner:
    """This process's own lock in `folder`, and tests of other processes' locks. OSError.

    Where machines share the directory, `kernel` distinguishes their locks: each kernel knows only its own.
    """

    def __init__(self, folder: str, kernel: str = "") -> None:
        self.name = secrets.token_hex(8)
        self._kernel = f".{kernel}" if kernel else ""
        self._folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._descriptor = self._lock()
        _OWNERS.add(self)

    def check(self) -> None:
        """Raise CallError `history_unavailable` in a child forked from the process that holds the lock."""
        if self._descriptor < 0:
            raise CallError(
                "history_unavailable",
                "The history was opened by the process that this one was forked from, so nothing was changed",
                hint="open a session in each process",
            )

    def close(self) -> None:
        """Release the lock and remove its file."""
        if self._descriptor >= 0:
            self.forget(self.name)  # the directory may be gone by now
            self.release()

    def release(self) -> None:
        """Release the lock; the file stays, as after the end of the process."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def dead(self, owner: str) -> bool | None:
        """Whether the process of this machine that `owner` names is gone; None if it has no lock file."""
        return False if owner == self.name else is_dead(self._folder, owner + self._kernel)

    def gone(self) -> list[str]:
        """Return the owners whose processes are gone and whose files remain."""
        found = (name.removesuffix(self._kernel) for name in self._files())
        return [owner for owner in found if self.dead(owner)]

    def forget(self, owner: str) -> None:
        """Remove the file of an owner."""
        try:
            os.unlink(self._file(owner))
        except FileNotFoundError:
            pass

    def _lock(self) -> int:
        import fcntl

        # Renamed after locking: another process would remove a file that it finds unlocked.
        early = self._file(f".{self.name}")
        while True:
            fd = os.open(early, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)
            try:
                os.rename(early, self._file(self.name))
                return fd
            except FileNotFoundError:
                os.close(fd)  # removed by another process before it was locked

    def _files(self) -> list[str]:
        return [name for name in os.listdir(self._folder) if name.endswith(self._kernel)]

    def _file(self, owner: str) -> str:
        return os.path.join(self._folder, owner + self._kernel)


def is_dead(folder: str, name: str) -> bool | None:
    """Whether the process with the lock `name` in a directory is gone; None if there is no such lock."""
    import fcntl

    try:
        fd = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # A shared lock, so that two concurrent tests do not take each other for the owner.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def living(folder: str) -> list[str]:
    """Return the locks in a directory whose processes are running."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return [name for name in sorted(names) if is_dead(folder, name) is False]


_OWNERS: weakref.WeakSet[Owner] = weakref.WeakSet()


def _forked() -> None:
    """Close an inherited lock in a child, which would make a dead process look alive."""
    for owner in tuple(_OWNERS):
        owner.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
