"""Known content: what was read of exact versions of files, which a listing names by tag, size and time.

A tag alone is not enough: it may be an MD5 digest, and two contents with one can be made on purpose.
"""

from __future__ import annotations

from threading import Lock

from ringfence.toolkit.plan.changes import Stat

_MAX_BYTES = 32 << 20
_MAX_FILES = 10_000

_Version = tuple[str, str, int | None, int]


class KnownContent:
    """The content of file versions, up to 32 MiB; the oldest are dropped first. Threads may share it."""

    def __init__(self) -> None:
        self._contents: dict[_Version, bytes] = {}
        self._size = 0
        self._lock = Lock()

    def get(self, path: str, stat: Stat) -> bytes | None:
        """Return the content of exactly this version; None if it is not known."""
        return self._contents.get(_version(path, stat))

    def put(self, path: str, stat: Stat, data: bytes) -> None:
        """Remember the content of a version."""
        with self._lock:
            self._size -= len(self._contents.pop(_version(path, stat), b""))
            self._contents[_version(path, stat)] = data
            self._size += len(data)
            while self._size > _MAX_BYTES or len(self._contents) > _MAX_FILES:
                self._size -= len(self._contents.pop(next(iter(self._contents))))

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._contents.clear()
            self._size = 0


def _version(path: str, stat: Stat) -> _Version:
    # Some servers quote a tag, and give parts of a second, in one reply and not in another.
    return path, stat.identity.strip('"'), stat.size, int(stat.modified or 0)
