"""Redo log: the changes whose intent is on the disk with their content, and whose files may not be yet.

A row for each. A thread syncs the files soon after and removes the rows. After a power cut, recovery makes
the changes again whose rows are left. Never removes the row of a change before its files are on the disk.
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ringfence.toolkit.errors import CallError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ringfence.toolkit.state.protocol import Database, State
    from ringfence.toolkit.storage.local.late_sync import LateSync
    from ringfence.toolkit.workspace.workspace import Workspace

# A change is synced after so many seconds, or as soon as so many changes or bytes wait.
AFTER, CHANGES, BYTES = 0.3, 100, 8 << 20
_FULL = 4 * CHANGES  # so many waiting changes: the next one waits for the disk
_BOOT = "/proc/sys/kernel/random/boot_id"
_NO_BOOT = "unknown"
# The file systems (statfs(2)) on which power was cut in tests: ext4, with ext2 and ext3, and XFS. On one in
# memory, over a network or in layers, a commit may not be on a disk when it ends.
_KNOWN = frozenset((0xEF53, 0x58465342))
LOG = "log"  # the policy's word
_FAILED = ""  # in place of a boot: a sync failed, so the system may have forgotten what it could not write
_GIVEN_UP = ""  # in place of a root
_ROWS = (
    "SELECT unsynced.op, boot, root, umask, op.owner FROM unsynced"
    " LEFT JOIN op ON op.id = unsynced.op AND op.state = 'pending' ORDER BY unsynced.op"
)
_READY = (
    "SELECT unsynced.op, op.owner FROM unsynced JOIN op ON op.id = unsynced.op"
    " WHERE unsynced.boot = ? AND op.state = 'done'"
)


class Unsynced(NamedTuple):
    """A row: the operation, the boot and the root directory that it was begun with, and its umask."""

    op: int
    boot: str
    root: str
    umask: int

    @property
    def failed(self) -> bool:
        """Whether syncing its files failed, so that what is read now may not be on the disk."""
        return self.boot == _FAILED

    @property
    def given_up(self) -> bool:
        """Whether a person has given it up, because the workspace is another directory now."""
        return self.root == _GIVEN_UP


class Disk(Protocol):
    """The local disk of a workspace, as this module uses it."""

    fd: int

    def later(self, noted: LateSync) -> AbstractContextManager[None]:
        """Note what the block would sync."""


class SyncFailed(CallError):
    """The files of earlier changes could not be synced, so a change that needs them was not begun."""


class RedoLog:
    """The unsynced changes of one workspace.

    `disk` is None where changes are made elsewhere than on a local disk; then there are none. `root` names
    the root directory, "" if this session logs no changes.
    """

    def __init__(self, state: State, disk: Disk | None, root: str = "") -> None:
        self._state, self._disk, self._root = state, disk, root
        self.in_use = bool(root)  # false also from the first sync that failed
        self._umask = _umask() if root else 0
        self._begun: set[int] = set()  # the logged operations of this process that have not ended
        self._noted: dict[int, tuple[LateSync, int]] = {}  # and what those noted that were made
        self._lock = threading.Lock()  # of the following four
        self._waiting: list[int] = []
        self._to_sync: LateSync | None = None
        self._bytes = 0
        self._thread: threading.Thread | None = None
        self._flushing = threading.Lock()
        self._some, self._now = threading.Event(), threading.Event()
        self._closed = False
        self._process = os.getpid()

    # ------------------------------------------------------------------ one change

    def add(self, db: Database, op: int) -> None:
        """Add the row of an operation, in the transaction of its intent."""
        row = op, boot_id(), self._root, self._umask
        db.execute("INSERT INTO unsynced VALUES(?,?,?,?)", row)
        self._begun.add(op)

    @contextmanager
    def later(self, op: int, size: int) -> Iterator[None]:
        """Make the change of a logged operation in this block: what it would sync is synced later."""
        from ringfence.toolkit.storage.local.late_sync import LateSync

        assert self._disk is not None, "only a local disk logs changes"
        noted = LateSync()
        self._noted[op] = noted, size
        with self._disk.later(noted):
            yield

    def is_logged(self, op: int) -> bool:
        """Whether this process has begun, or adopted, the logged operation, and not ended it."""
        return op in self._begun

    def adopt(self, db: Database, op: int) -> None:
        """Take over a dead process's operation, if it is a logged one."""
        if db.execute("SELECT 1 FROM unsynced WHERE op = ?", (op,)).fetchone() is not None:
            self._begun.add(op)

    def remove(self, db: Database, op: int) -> None:
        """Remove the row of an operation that was not done, so that recovery does not make it."""
        db.execute("DELETE FROM unsynced WHERE op = ?", (op,))

    def ended(self, op: int, *, done: bool) -> None:
        """Sync the files of a logged operation soon, if it was done."""
        self._begun.discard(op)
        noted, size = self._noted.pop(op, (None, 0))
        if not done:
            if noted is not None:
                noted.close()
            return
        if noted is None:  # of a dead process, or of a call whose outcome was unknown
            if not self.in_use:
                return  # `sync_left`, or the next change's `sync_before`
            noted = self._whole()
        with self._lock:
            self._wait([op], noted)
            self._bytes += size
            count, most = len(self._waiting), self._bytes
            started = self._thread is not None or self._start()
        self._some.set()
        if count >= CHANGES or most >= BYTES:
            self._now.set()
        if count >= _FULL or not started:
            self.flush()

    def _wait(self, ops: list[int], noted: LateSync) -> None:
        self._waiting += ops
        if self._to_sync is None:
            self._to_sync = noted
        else:
            self._to_sync.join(noted)

    @staticmethod
    def _whole() -> LateSync:
        from ringfence.toolkit.storage.local.late_sync import LateSync

        noted = LateSync()
        noted.sync_whole()
        return noted

    # -------------------------------------------------------------------- syncing

    def _start(self) -> bool:
        self._thread = threading.Thread(target=self._run, name="ringfence-sync", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:  # no thread could be started, so each change is synced at once
            self._thread = None
            return False
        atexit.register(self.close)  # a session that nobody closes
        return True

    def _run(self) -> None:
        while True:
            self._some.wait()
            if self._closed:
                return
            self._now.wait(AFTER)
            self.flush()

    def flush(self) -> None:
        """Sync the files of every change that waits, and remove the rows."""
        with self._flushing:
            with self._lock:
                ops, noted, self._waiting, self._to_sync = self._waiting, self._to_sync, [], None
                self._bytes = 0
                self._some.clear()
                self._now.clear()
                if self._closed:
                    self._some.set()
            if noted is None or self._disk is None:
                return
            try:
                if not self.in_use:
                    return  # a sync has failed: nothing is known to be on the disk from then on
                noted.sync(self._disk.fd)
            except OSError as error:
                self.give_up(error)
                return
            finally:
                noted.close()
            try:
                # Durable: a row that a power cut brings back would bring back what was removed since.
                with self._state.transaction(durable=True) as db:
                    db.executemany("DELETE FROM unsynced WHERE op = ?", [(op,) for op in ops])
            except CallError:  # they are synced again with the next change, at the latest by the next session
                with self._lock:
                    self._wait(ops, self._whole())

    def sync_before(self, db: Database) -> None:
        """Sync the files of all changes that are done, before a change that is not logged.

        So recovery never makes a change again at a path that another kind of change has concerned since.
        Raises SyncFailed.
        """
        if self._disk is None:
            return
        ops = [(int(op),) for op, _ in db.execute(_READY, (boot_id(),)).fetchall()]
        if ops:
            self.sync_all()
            db.executemany("DELETE FROM unsynced WHERE op = ?", ops)

    def sync_left(self) -> None:
        """Sync the files of the changes that dead processes have left unsynced. Raises SyncFailed."""
        if self._disk is None or not self._state.rows("SELECT 1 FROM unsynced LIMIT 1"):
            return
        with self._lock:
            own = {*self._waiting, *self._begun}
        me = self._state.owner
        rows = [(int(op), str(owner)) for op, owner in self._state.rows(_READY, (boot_id(),))]
        ops = [(op,) for op, owner in rows if op not in own and (owner == me or self._state.dead(owner))]
        if ops:
            with self.giving_up():
                self.sync_all()
            with self._state.transaction(durable=True) as db:
                db.executemany("DELETE FROM unsynced WHERE op = ?", ops)

    def sync_all(self) -> None:
        """Sync the workspace's file system. Raises SyncFailed; then `give_up`, outside of a transaction."""
        from ringfence.toolkit.storage.local.late_sync import sync_all

        assert self._disk is not None, "only a local disk logs changes"
        try:
            sync_all(self._disk.fd)
        except OSError as error:
            message = f"The changes made so far could not be written to the disk: {error.strerror}"
            raise SyncFailed("io_error", message) from error

    @contextmanager
    def giving_up(self) -> Iterator[None]:
        """Give up if a sync in this block fails. Around a transaction, not in one."""
        try:
            yield
        except SyncFailed as error:
            self.give_up(error)
            raise

    def give_up(self, error: BaseException) -> None:
        """After a failed sync: log no more changes in this process, and `mark_failed`."""
        self.in_use = False
        import logging  # slow to import, and seldom needed

        logging.getLogger("ringfence").error(
            "the disk failed to sync (%s): from now on every change waits for the disk, as with"
            " `durable: true`; the next session writes the changes of the last moments again",
            error,
        )
        self.mark_failed()

    def mark_failed(self) -> None:
        """Mark all unsynced changes as ones whose files may not be on the disk, whatever is read of them.

        Linux reports a failed sync once, and a later one without an error says nothing about these files.
        The changes of other processes too: those that live remove the rows of what they synced themselves.
        """
        with suppress(CallError), self._state.transaction(durable=True) as db:
            db.execute("UPDATE unsynced SET boot = ?", (_FAILED,))

    def close(self) -> None:
        """Sync what waits, and end the thread."""
        if self._process != os.getpid():
            return  # a fork has the parent's locks, and not its thread
        self._closed = True
        thread = self._thread
        if thread is not None:
            atexit.unregister(self.close)
            self._some.set()
            self._now.set()
            thread.join()
        self.flush()

    # ------------------------------------------------------------------- recovery

    def to_settle(self) -> list[Unsynced]:
        """Return the rows that another boot has left, or a failed sync, oldest first; not those of changes
        that another process is making now.
        """
        found = [(Unsynced(*row), owner) for *row, owner in self._state.rows(_ROWS)]
        left = [(row, owner) for row, owner in found if row.boot != boot_id()]
        return [row for row, owner in left if not row.failed or owner is None or self._state.dead(owner)]

    def is_elsewhere(self, row: Unsynced) -> bool:
        """Whether the workspace is another directory than the one in which this row was made."""
        return self._disk is None or row.root != root_name(self._disk.fd)

    def give_up_elsewhere(self) -> None:
        """Give up the changes that `to_settle` returns, and that were made in another directory: a session
        does not insist on that one any more.
        """
        with self._state.transaction(durable=True) as db:
            db.execute("UPDATE unsynced SET root = ? WHERE boot != ?", (_GIVEN_UP, boot_id()))

    def mode_under(self, umask: int) -> int | None:
        """Return the mode of a file that was created with this umask; None if that is the present one."""
        return None if umask == _umask() else 0o666 & ~umask

    @contextmanager
    def settling(self) -> Iterator[Database]:
        """Open the transaction in which the rows are settled: nobody else begins a change meanwhile."""
        with self._state.transaction(durable=True) as db:
            yield db


def open_redo_log(state: State, workspace: Workspace, *, in_use: bool) -> RedoLog:
    """Return the redo log of a workspace; `in_use`: its changes are logged, as with `durable: log`.

    Raises CallError `log_unavailable` if they cannot be.
    """
    backend = workspace.backend
    backend = getattr(backend, "main", backend)  # beside a task store
    disk: Disk | None = backend if hasattr(backend, "later") else None  # type: ignore[assignment]
    if not in_use:
        return RedoLog(state, disk)
    if disk is None:
        raise _unavailable("the workspace is not on a local disk")
    if state.folder is None or not Path(state.folder).is_dir():
        raise _unavailable("the state is not in a directory of this machine")
    _check_file_system(disk.fd, "the workspace")
    fd = os.open(state.folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _check_file_system(fd, "the state")
    finally:
        os.close(fd)
    root = root_name(disk.fd)
    if root is None or boot_id() == _NO_BOOT:
        raise _unavailable("this system tells neither boots nor directories apart")
    return RedoLog(state, disk, root)


def _check_file_system(fd: int, what: str) -> None:
    from ringfence.toolkit.storage.local.syscalls import file_system_of

    if file_system_of(fd) not in _KNOWN:
        raise _unavailable(f"{what} is on another file system than ext4 or XFS")


def _unavailable(why: str) -> CallError:
    return CallError("log_unavailable", f"The policy's `durable: log` cannot be kept here: {why}")


def root_name(fd: int) -> str | None:
    """Return what distinguishes the open directory from every other one; None where that cannot be told."""
    from ringfence.toolkit.storage.local.syscalls import birth_of

    return birth_of(fd)


@functools.cache
def boot_id() -> str:
    """Return the identity of the system's present boot; a word of its own where the system has none."""
    try:
        return Path(_BOOT).read_text("ascii").strip()
    except OSError:
        return _NO_BOOT


def _umask() -> int:
    """Return the process's umask, which a new file's mode is made of.

    Asked for by the system call, it would be another one for a moment, also in other threads.
    """
    for line in Path("/proc/self/status").read_text("utf-8", "replace").splitlines():
        if line.startswith("Umask:"):
            return int(line.partition(":")[2], 8)
    return 0o022
