"""Cuts the power, as far as a loop device can show it, while a process makes calls; Linux and root only.

    python -m tests.crash.power SNAPSHOTS [--seed N] [--durable log] [--again] [--fs xfs] [--mutant NAME]

Workspace and state are on an ext4 or XFS whose disk is a file. At random moments writing to it is stopped,
the file copied, and the copy mounted, settled and checked. With `--again` the power fails a second time, at a
random moment while the copy is settled, and a copy of that is checked. No other process sees the mounts; they
go with this one. Must never leave a file system frozen. Prints one JSON object; exits with 77 where it cannot
be done.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import filecmp
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NoReturn

from ringfence.policy import Policy
from ringfence.toolkit.history import redo_log
from ringfence.toolkit.session import crash_recovery
from ringfence.toolkit.session import session as session_module
from ringfence.toolkit.session.crash_recovery import recover_orphans
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.local.late_sync import LateSync
from tests.crash.harness import ALLOW, DURABLE, LOG, Run, Workload, answer_all, digest, files_of, open_session

CALLS = 400  # of one process, on one disk
DISKS = {"ext4": 96 << 20, "xfs": 320 << 20}  # XFS is never smaller
SINGLE = 0.95  # of the calls of `durable: log`: others sync what was logged before
AGAIN = 0.15  # seconds after the start of a settlement in which the power fails again
CANNOT = 77
_FREEZE, _THAW = 0xC0045877, 0xC0045878  # FIFREEZE and FITHAW of linux/fs.h
_NEW_MOUNTS = 0x00020000  # CLONE_NEWNS of linux/sched.h


# -------------------------------------------------------------------------- the disk


def why_not(kind: str = "ext4") -> str | None:
    """Why power cannot be cut here, by trying; where it can, this process has mounts of its own."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs Linux and root, for loop devices"
    try:
        _own_mounts()
        with tempfile.TemporaryDirectory(dir=_memory()) as place, Disk(Path(place), kind) as disk:
            disk.snapshot(Path(place) / "copy.img")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no loop device with {kind} can be mounted and frozen here: {error}"
    return None


def _memory() -> str | None:
    return "/dev/shm" if os.path.isdir("/dev/shm") else None


def _own_mounts() -> None:
    """From here on nobody else sees what is mounted, and so nobody can hold it."""
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_MOUNTS) != 0:
        raise OSError(ctypes.get_errno(), "no mounts of its own")
    _run("mount", "--make-rprivate", "/")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


@contextmanager
def mounted(image: Path, at: Path, kind: str = "ext4") -> Iterator[Path]:
    at.mkdir(exist_ok=True)
    # A copy of an XFS has the same identity as the one that is still mounted.
    _run("mount", "-o", "loop,nouuid" if kind == "xfs" else "loop", str(image), str(at))
    try:
        yield at
    finally:
        _unmount(at)
        # A process that had a view of its own of the mounts may have ended, and its view not yet.
        until = time.monotonic() + 10
        while subprocess.run(["losetup", "-j", str(image)], capture_output=True, check=True).stdout:
            if time.monotonic() > until:
                raise OSError(f"{image} was still attached")
            time.sleep(0.005)


def _unmount(at: Path) -> None:
    for wait in (0.05, 0.2, 1.0):
        try:
            return _run("umount", str(at))  # which detaches the loop device too
        except subprocess.CalledProcessError:
            time.sleep(wait)
    _run("umount", "-l", str(at))
    raise OSError(f"{at} was still in use")


class Disk:
    """A file system on a file, which is on an ext4 of its own: that can be frozen, whatever the first does.

    With `of`, a copy of another disk's snapshot in place of a new one.
    """

    def __init__(self, place: Path, kind: str = "ext4", of: Path | None = None) -> None:
        self._place, self.kind, self._of = place, kind, of
        self._open = ExitStack()

    def __enter__(self) -> Disk:
        with ExitStack() as stack:
            self._place.mkdir(exist_ok=True)
            below = self._format("ext4", "below.img", DISKS[self.kind] * 2, "-F", "-O", "^has_journal")
            self._below = stack.enter_context(mounted(below, self._place / "below"))
            if self._of is None:
                force = "-F" if self.kind == "ext4" else "-f"
                self._image = self._format(self.kind, "below/disk.img", DISKS[self.kind], force)
            else:
                self._image = self._place / "below/disk.img"
                _run("cp", "--sparse=always", str(self._of), str(self._image))
                os.sync()
            self.root = stack.enter_context(mounted(self._image, self._place / "disk", self.kind))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _format(self, kind: str, name: str, size: int, *options: str) -> Path:
        image = self._place / name
        with open(image, "wb") as file:
            file.truncate(size)
        _run(f"mkfs.{kind}", "-q", *options, str(image))
        return image

    def snapshot(self, to: Path) -> None:
        """What has been written to the disk at one moment, which may be in the middle of anything."""
        again = to.with_suffix(".again")
        with self._frozen():
            for copy in (to, again):
                _run("cp", "--sparse=always", str(self._image), str(copy))
        if not filecmp.cmp(to, again, shallow=False):
            raise OSError("the disk was written to while it was copied: no single moment")
        again.unlink()

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        fd = os.open(self._below, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, _FREEZE, 0)
            try:
                yield
            finally:
                fcntl.ioctl(fd, _THAW, 0)
        finally:
            os.close(fd)


# --------------------------------------------------------------------------- mutants


def state_off() -> None:
    """The database leaves it to the system when what it wrote is on the disk."""

    class Careless(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            return super().execute("PRAGMA synchronous=OFF" if "synchronous" in sql else sql, *values)

    real = sqlite3.connect
    sqlite3.connect = lambda *a, **k: real(*a, **k, factory=Careless)  # type: ignore[assignment]


def files_unsynced() -> None:
    """The intent is on the disk in time, the change is not."""
    os.fsync = lambda fd: None


def never_played() -> None:
    """What was logged is taken for what is on the disk."""
    crash_recovery.recover_orphans = session_module.recover_orphans = _recover_alone


def _recover_alone(context: Any) -> list[Any]:
    context.history.redo.to_settle = list
    return recover_orphans(context)


def marked_unsynced() -> None:
    """The row of a logged change is removed, and nothing was synced before."""
    redo_log.AFTER = 0.02
    LateSync.sync = lambda self, root: None  # type: ignore[method-assign]


MUTANTS: dict[str, Callable[[], None]] = {
    "not-durable": lambda: None,  # by its policy
    "state-off": state_off,
    "files-unsynced": files_unsynced,
}
# What only `durable: log` shows.
LOGGED: dict[str, Callable[[], None]] = {"never-played": never_played, "marked-unsynced": marked_unsynced}


# ---------------------------------------------------------------------------- cutting


class Cuts(Run):
    """One process on one disk, and what is found on copies of that disk."""

    def __init__(
        self, disk: Disk, place: Path, seed: int, mutant: str | None, policy: Policy, *, again: bool
    ) -> None:
        super().__init__(disk.root, "random", seed, mutant, ALLOW if mutant == "not-durable" else policy)
        self.disk, self.place, self.again = disk, place, again
        self.seen = Counter[str]()
        self.load = Workload(self.model, self.chance, CALLS, single=SINGLE if self.policy is LOG else 0.0)
        self.snapshots = self.answered = self.open = 0
        os.sync()

    def cut(self, snapshots: int) -> None:
        """Take this many snapshots, or fewer where the process is done before."""
        said, say = os.pipe()
        process = os.fork()
        if process == 0:
            self._calls(say)
        os.close(say)
        os.set_blocking(said, False)
        try:
            heard = b""
            while self.snapshots < snapshots:
                time.sleep(self.chance.uniform(0.0, 0.4 if self.policy is LOG else 0.1))
                heard += _ready(said)
                before = heard
                self.disk.snapshot(self.place / "cut.img")
                os.kill(process, signal.SIGSTOP)  # nothing is gained by calls while the copy is looked at
                heard += _ready(said)
                self._look(before.decode().split(), len(heard.split()))
                if len(heard.split()) >= CALLS or os.waitpid(process, os.WNOHANG)[0]:
                    break
                os.kill(process, signal.SIGCONT)
        finally:
            os.close(said)
            _end(process)

    def _calls(self, say: int) -> NoReturn:
        try:
            # Much waits at each cut: the disk has less of it than with the product's own interval.
            redo_log.AFTER = 3.0
            {**MUTANTS, **LOGGED}.get(str(self.mutant), lambda: None)()
            with open_session(self.base, self.policy) as session:
                _grow_log(session)
                answer_all(
                    session, self.load.calls, lambda call: os.write(say, f"{call}\n".encode()) and None
                )
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(9)
        os._exit(0)

    def _look(self, answers: list[str], at_most: int) -> None:
        """In a process of its own, so that whatever it left open does not hold the mount."""
        self.snapshots += 1
        self.answered += len(answers)
        if self.again:
            self._cut_again()
        with mounted(self.place / "cut.img", self.place / "cut", self.disk.kind) as base:
            found, tell = os.pipe()
            process = os.fork()
            if process == 0:
                self._report(base, answers, at_most, tell)
            os.close(tell)
            with os.fdopen(found, "rb") as file:
                text = file.read()
            os.waitpid(process, 0)
        report = json.loads(text)
        self.violations += Counter(report["violations"])
        self.settled += Counter(report["settled"])
        self.seen += Counter(report["seen"])
        for what, example in report["examples"].items():
            self.examples.setdefault(what, example)

    def _cut_again(self) -> None:
        """Settle the copy on a disk of its own, and replace it by what that disk holds at some moment."""
        with Disk(self.place / "again", self.disk.kind, self.place / "cut.img") as disk:
            process = os.fork()
            if process == 0:
                try:
                    _put_over(self.base, disk.root)
                    boot("the second boot")
                    open_session(self.base, self.policy).close()
                finally:
                    os._exit(0)
            time.sleep(self.chance.uniform(0.0, AGAIN))
            disk.snapshot(self.place / "cut.img")
            _end(process)

    def _report(self, base: Path, answers: list[str], at_most: int, tell: int) -> NoReturn:
        self.violations, self.settled, self.examples, self.seen = Counter(), Counter(), {}, Counter()
        try:
            if self.mutant == "never-played":
                never_played()
            _put_over(self.base, base)
            boot("the last boot")
            self._see(self.load.models[len(answers)])
            self._found(answers, at_most)
        except BaseException as error:
            self._wrong("what is left cannot be opened", f"{type(error).__name__}: {error}")
        report = {"violations": self.violations, "settled": self.settled, "examples": self.examples}
        report["seen"] = self.seen
        with os.fdopen(tell, "wb") as file:
            file.write(json.dumps(report).encode())
        os._exit(0)

    def _see(self, expected: dict[str, bytes]) -> None:
        """Count what another program sees before anything is settled, by the last answer that was heard."""
        found = files_of(self.base / "ws")
        for path in found.keys() | expected.keys():
            now = found.get(path)
            if now != expected.get(path) and not path.rpartition("/")[2].startswith(".ringfence"):
                self.seen[
                    "missing" if now is None else "other" if now.strip(b"\0") else "empty or zeros"
                ] += 1

    def _found(self, answers: list[str], at_most: int) -> None:
        load, done = self.load, len(answers)
        with open_session(self.base, self.policy) as session:
            found = files_of(self.base / "ws")
            now = {path: digest(data) for path, data in found.items()}
            self.ledger |= {digest(data) for model in load.models[: done + 1] for data in model.values()}
            # A call may have been answered between the last look at the answers and the cut.
            if not any(load.allows(n, found) for n in range(done, at_most + 1)):
                self._wrong("files that no call leaves", str(load.calls[done : at_most + 1])[:200])
            self._check_told(session, now)
            self._check_history(session, answers, set(now.values()))
        self._check_left()


def _grow_log(session: Session) -> None:
    """Make the database's log long, and begin it anew.

    While it grows, each commit brings all that was done before to the disk with it, on the same file system.
    """
    db = session.state.db  # type: ignore[attr-defined]
    db.execute("CREATE TABLE large(data BLOB)")
    db.execute("INSERT INTO large VALUES(zeroblob(8000000))")
    db.execute("DROP TABLE large")
    db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()


def boot(name: str) -> None:
    """From here on this process runs in another boot than those before it."""
    redo_log.boot_id = lambda: name  # type: ignore[assignment]


def _put_over(place: Path, other: Path) -> None:
    """For this process alone, `other` is at `place`: state belongs to a workspace by its path."""
    _own_mounts()
    _run("mount", "--bind", str(other), str(place))


def _ready(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 20)
    except BlockingIOError:
        return b""


def _end(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    except (ProcessLookupError, ChildProcessError):
        pass  # it had ended, and was waited for


def cut(
    snapshots: int,
    seed: int = 1,
    mutant: str | None = None,
    *,
    policy: Policy = DURABLE,
    kind: str = "ext4",
    again: bool = False,
) -> dict[str, Any]:
    total: dict[str, Any] = {"snapshots": 0, "answered": 0}
    violations, settled, examples, seen = Counter[str](), Counter[str](), dict[str, str](), Counter[str]()
    started = time.time()
    while total["snapshots"] < snapshots:
        with tempfile.TemporaryDirectory(dir=_memory()) as place, Disk(Path(place), kind) as disk:
            run = Cuts(disk, Path(place), seed, mutant, policy, again=again)
            run.cut(snapshots - total["snapshots"])
        total["snapshots"] += run.snapshots
        total["answered"] += run.answered
        violations += run.violations
        settled += run.settled
        seen += run.seen
        examples |= run.examples
        seed += 1000
    seconds = round(time.time() - started, 1)
    found = {"violations": violations, "examples": examples, "settled": settled, "seen": seen}
    return {**total, **found, "seconds": seconds}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("snapshots", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--durable", choices=("true", "log"), default="true", help="the policy's word")
    parser.add_argument("--again", action="store_true", help="cut the power in the settlement too")
    parser.add_argument("--fs", choices=sorted(DISKS), default="ext4")
    parser.add_argument("--mutant", choices=sorted({**MUTANTS, **LOGGED}))
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that it is cleared away
    if reason := why_not(given.fs):
        print(reason, file=sys.stderr)
        return CANNOT
    policy = LOG if given.durable == "log" else DURABLE
    found = cut(given.snapshots, given.seed, given.mutant, policy=policy, kind=given.fs, again=given.again)
    json.dump(found, sys.stdout)
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
