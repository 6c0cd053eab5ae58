"""Usage of a running command: its processes, their memory, and the bytes it has written to the scratch."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from ringfence.toolkit.sandbox.mounts import PRIVATE
from ringfence.toolkit.sandbox.request import Request
from ringfence.toolkit.sandbox.spec import Stop

FIRST, _LONGEST = 0.1, 5.0  # seconds to the next look
_SHARE = 20  # a look may take one part in so many of the time
_WRITTEN = ("upper", "copy", "home", "tmp")  # what the scratch has of the command, by the beginnings of names


class Watch:
    """Looks at what a command uses, less often where looking takes long."""

    def __init__(self, request: Request, scratch: int) -> None:
        self._request = request
        self._scratch = scratch  # a descriptor, since the directory may be covered by now
        self.due = time.monotonic() + FIRST

    def exceeded(self) -> Stop | None:
        """Return the first limit that is exceeded."""
        began = time.monotonic()
        found = self._processes() if self._request.namespaces else None
        if (
            found is None
            and written(self._scratch, self._request.scratch_bytes) > self._request.scratch_bytes
        ):
            found = "scratch"
        now = time.monotonic()
        self.due = now + min(_LONGEST, max(FIRST, (now - began) * _SHARE))
        return found

    def _processes(self) -> Stop | None:
        """Compare memory and number; `/proc` has those of the pid namespace alone."""
        memory = threads = 0
        for name in os.listdir("/proc"):
            if name.isdecimal():
                used, running = _of_process(name)
                memory, threads = memory + used, threads + running
        memory += max(_of_private(place) for place in PRIVATE)  # parts of one file system
        if threads > self._request.processes:
            return "processes"
        return "memory" if memory > self._request.memory else None


def _of_process(name: str) -> tuple[int, int]:
    """The bytes that a process has to itself, and its threads; 0 if it is gone."""
    try:
        with open(f"/proc/{name}/status", "rb") as lines:
            wanted = (line for line in lines if line.startswith((b"RssAnon", b"VmSwap", b"Threads")))
            found = dict(line.split(b":", 1) for line in wanted)
    except OSError:
        return 0, 0
    kibibytes = sum(int(found[key].split()[0]) for key in (b"RssAnon", b"VmSwap") if key in found)
    return kibibytes << 10, int(found.get(b"Threads", b"0"))


def _of_private(place: str) -> int:
    try:
        found = os.statvfs(place)
    except OSError:
        return 0
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def written(scratch: int, most: int) -> int:
    """Return the bytes on disk of what a command has written; stops counting above `most`.

    Directories too deep to be counted are more than `most`: no command needs a thousand levels.
    """
    try:
        return _written(scratch, most)
    except RecursionError:
        return most + 1


def _written(scratch: int, most: int) -> int:
    total = 0
    for name in os.listdir(scratch):
        if name.startswith(_WRITTEN):
            for size in _sizes(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=scratch)):
                total += size
                if total > most:
                    return total
    return total


def _sizes(directory: int) -> Iterator[int]:
    """The sizes on disk below a directory, whose descriptor is closed at the end."""
    try:
        with os.scandir(directory) as entries:
            found = list(entries)
        for entry in found:
            try:
                yield entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                    yield from _sizes(os.open(entry.name, flags, dir_fd=directory))
            except OSError:
                continue  # the command removes it, or has made it unreadable for itself
    finally:
        os.close(directory)
