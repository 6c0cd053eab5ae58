"""Cuts the power, as far as a loop device can show it, while a process makes calls; Linux and root only.

    python -m tests.crash.power SNAPSHOTS [--seed N] [--mutant NAME]

Workspace and state are on an ext4 whose disk is a file. At random moments writing to it is stopped, the file
copied, and the copy mounted, settled and checked. No other process sees the mounts; they go with this one.
Must never leave a file system frozen. Prints one JSON object; exits with 77 where it cannot be done.
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

from tests.crash.harness import ALLOW, DURABLE, Run, Workload, digest, files_of, open_session, work

CALLS = 400  # of one process, on one disk
DISK = 96 << 20
CANNOT = 77
_FREEZE, _THAW = 0xC0045877, 0xC0045878  # FIFREEZE and FITHAW of linux/fs.h
_NEW_MOUNTS = 0x00020000  # CLONE_NEWNS of linux/sched.h


# -------------------------------------------------------------------------- the disk


def why_not() -> str | None:
    """Why power cannot be cut here, by trying; where it can, this process has mounts of its own."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs Linux and root, for loop devices"
    try:
        _own_mounts()
        with tempfile.TemporaryDirectory(dir=_memory()) as place, Disk(Path(place)) as disk:
            disk.snapshot(Path(place) / "copy.img")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no loop device with ext4 can be mounted and frozen here: {error}"
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
def mounted(image: Path, at: Path) -> Iterator[Path]:
    at.mkdir(exist_ok=True)
    _run("mount", "-o", "loop", str(image), str(at))
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
    """An ext4 on a file, which is on an ext4 of its own: that one can be frozen, whatever the first does."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._open = ExitStack()

    def __enter__(self) -> Disk:
        with ExitStack() as stack:
            below = self._format("below.img", DISK * 2, "-O", "^has_journal")
            self._below = stack.enter_context(mounted(below, self._place / "below"))
            self._image = self._format("below/disk.img", DISK)
            self.root = stack.enter_context(mounted(self._image, self._place / "disk"))
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _format(self, name: str, size: int, *options: str) -> Path:
        image = self._place / name
        with open(image, "wb") as file:
            file.truncate(size)
        _run("mkfs.ext4", "-q", "-F", *options, str(image))
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


MUTANTS: dict[str, Callable[[], None]] = {
    "not-durable": lambda: None,  # by its policy
    "state-off": state_off,
    "files-unsynced": files_unsynced,
}


# ---------------------------------------------------------------------------- cutting


class Cuts(Run):
    """One process on one disk, and what is found on copies of that disk."""

    def __init__(self, disk: Disk, place: Path, seed: int, mutant: str | None) -> None:
        policy = ALLOW if mutant == "not-durable" else DURABLE
        super().__init__(disk.root, "random", seed, mutant, policy)
        self.disk, self.place = disk, place
        self.load = Workload(self.model, self.chance, CALLS)
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
                time.sleep(self.chance.uniform(0.0, 0.1))
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
            MUTANTS.get(str(self.mutant), lambda: None)()
            work(
                self.base,
                self.load.calls,
                lambda call: os.write(say, f"{call}\n".encode()) and None,
                self.policy,
            )
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(9)
        os._exit(0)

    def _look(self, answers: list[str], at_most: int) -> None:
        """In a process of its own, so that whatever it left open does not hold the mount."""
        self.snapshots += 1
        self.answered += len(answers)
        with mounted(self.place / "cut.img", self.place / "cut") as base:
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
        for what, example in report["examples"].items():
            self.examples.setdefault(what, example)

    def _report(self, base: Path, answers: list[str], at_most: int, tell: int) -> NoReturn:
        self.violations, self.settled, self.examples = Counter(), Counter(), {}
        try:
            _put_over(self.base, base)
            self._found(answers, at_most)
        except BaseException as error:
            self._wrong("what is left cannot be opened", f"{type(error).__name__}: {error}")
        report = {"violations": self.violations, "settled": self.settled, "examples": self.examples}
        with os.fdopen(tell, "wb") as file:
            file.write(json.dumps(report).encode())
        os._exit(0)

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


def cut(snapshots: int, seed: int = 1, mutant: str | None = None) -> dict[str, Any]:
    total: dict[str, Any] = {"snapshots": 0, "answered": 0}
    violations, settled, examples = Counter[str](), Counter[str](), dict[str, str]()
    started = time.time()
    while total["snapshots"] < snapshots:
        with tempfile.TemporaryDirectory(dir=_memory()) as place, Disk(Path(place)) as disk:
            run = Cuts(disk, Path(place), seed, mutant)
            run.cut(snapshots - total["snapshots"])
        total["snapshots"] += run.snapshots
        total["answered"] += run.answered
        violations += run.violations
        settled += run.settled
        examples |= run.examples
        seed += 1000
    seconds = round(time.time() - started, 1)
    return {**total, "violations": violations, "examples": examples, "settled": settled, "seconds": seconds}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("snapshots", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutant", choices=sorted(MUTANTS))
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that it is cleared away
    if reason := why_not():
        print(reason, file=sys.stderr)
        return CANNOT
    found = cut(given.snapshots, given.seed, given.mutant)
    json.dump(found, sys.stdout)
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
