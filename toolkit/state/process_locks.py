"""Which processes of this machine live: each holds a lock on its own file, which the kernel drops with it.

Says nothing of processes on other machines, and removes only the files of owners that are gone.
"""

from __future__ import annotations

import os
import secrets
import weakref

from ringfence.toolkit.errors import CallError


class Owner:
    """This process's own lock in `folder`, and a look at those of the others. Raises OSError.

    Where machines share the folder, `kernel` tells their locks apart: each kernel knows its own alone.
    """

    def __init__(self, folder: str, kernel: str = "") -> None:
        self.name = secrets.token_hex(8)
        self._kernel = f".{kernel}" if kernel else ""
        self._folder = folder
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._held = self._hold()
        _OWNERS.add(self)

    def check(self) -> None:
        """Refuse (`history_unavailable`) in a child forked from the process that has the lock."""
        if self._held < 0:
            raise CallError(
                "history_unavailable",
                "The history was opened by the process that this one was forked from, so nothing was changed",
                hint="open a session in each process",
            )

    def close(self) -> None:
        if self._held >= 0:
            self.forget(self.name)  # the folder may be gone by now
            self.release()

    def release(self) -> None:
        """Let go of the lock; the file stays, as after the end of the process."""
        held, self._held = self._held, -1
        if held >= 0:
            os.close(held)

    def dead(self, owner: str) -> bool | None:
        """Whether the process of this machine that `owner` names is gone; None where it has no lock."""
        return False if owner == self.name else is_dead(self._folder, owner + self._kernel)

    def gone(self) -> list[str]:
        """The owners whose processes are gone and whose files are still there."""
        found = (name.removesuffix(self._kernel) for name in self._files())
        return [owner for owner in found if self.dead(owner)]

    def forget(self, owner: str) -> None:
        """Remove the file of an owner."""
        try:
            os.unlink(self._file(owner))
        except FileNotFoundError:
            pass

    def _hold(self) -> int:
        import fcntl

        # Named once it is locked: whoever looked before, and found no lock, would remove it after.
        early = self._file(f".{self.name}")
        while True:
            fd = os.open(early, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)
            try:
                os.rename(early, self._file(self.name))
                return fd
            except FileNotFoundError:
                os.close(fd)  # swept by another process before it was locked

    def _files(self) -> list[str]:
        return [name for name in os.listdir(self._folder) if name.endswith(self._kernel)]

    def _file(self, owner: str) -> str:
        return os.path.join(self._folder, owner + self._kernel)


def is_dead(folder: str, name: str) -> bool | None:
    """Whether the process that has the lock `name` in a folder is gone; None where there is no such lock."""
    import fcntl

    try:
        fd = os.open(os.path.join(folder, name), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        # Shared, so that two who look at once do not take each other for the owner.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(fd)


def living(folder: str) -> list[str]:
    """The locks in a folder whose processes live."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return [name for name in sorted(names) if is_dead(folder, name) is False]


_OWNERS: weakref.WeakSet[Owner] = weakref.WeakSet()


def _forked() -> None:
    """A child has the lock too, and would make a process that is gone look alive."""
    for owner in tuple(_OWNERS):
        owner.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
