"""Read-ahead: the files of a walk are read several at a time, and handed out in the order of the walk.

Nothing is read before the walk has judged it, and nothing before the first file is asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import FILE, Entry
from ringfence.toolkit.storage.backend import Tree, at

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_MAX_BYTES = 32 << 20  # of files that are read at once; a larger one is read alone
_Ahead = tuple[Entry, list[Any]]


class ReadAhead:
    """The entries of a walk, each with its content once that is asked for.

    `read` reads an entry, in a thread. Files of more than `limit` bytes are not read ahead. `noted` is a list
    to which the walk adds while it goes on: what it adds for an entry is there when the entry's turn comes,
    and not before.
    """

    def __init__(
        self,
        entries: Iterator[Entry],
        read: Callable[[Entry], bytes],
        *,
        at_once: int,
        limit: int,
        noted: list[Any],
    ) -> None:
        self.turn: Entry | None = None
        self._entries, self._read, self._limit = entries, read, limit
        self._at_once, self._noted = at_once, noted
        self._ahead: deque[_Ahead] = deque()
        self._ended = False
        self._last_noted: list[Any] = []
        self._pool: ThreadPoolExecutor | None = None
        self._reading: dict[str, Future[bytes]] = {}

    def __enter__(self) -> ReadAhead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.turn = None
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        if self.turn is not None:
            self._reading.pop(self.turn.path, None)
        while not self._ended and len(self._ahead) < self._at_once:
            self._step()
        if not self._ahead:
            self._noted += self._last_noted
            self._last_noted = []
            raise StopIteration
        self.turn, noted = self._ahead.popleft()
        self._noted += noted
        return self.turn

    def content(self, entry: Entry) -> bytes:
        """Return the content of the entry in turn. Raises what `read` raises."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # only stores need it

            self._pool = ThreadPoolExecutor(self._at_once)
        size = 0
        for other in (entry, *(ahead for ahead, _ in self._ahead)):
            size += other.stat.size or 0
            if other is not entry and size > _MAX_BYTES:
                break
            is_read = other is entry or (other.stat.kind == FILE and (other.stat.size or 0) <= self._limit)
            if is_read and other.path not in self._reading:
                self._reading[other.path] = self._pool.submit(self._read, other)
        return self._reading[entry.path].result()

    def _step(self) -> None:
        """Take one more entry from the walk, with what the walk noted for it."""
        known = len(self._noted)
        entry = next(self._entries, None)
        noted = self._noted[known:]
        del self._noted[known:]
        if entry is None:
            self._ended, self._last_noted = True, noted
        else:
            self._ahead.append((entry, noted))


def ahead_of_walk(
    backend: Tree, entries: Iterator[Entry], limit: int, noted: list[Any], *, exactly: bool
) -> ReadAhead | None:
    """Return a read-ahead for the files of a walk; None for a backend that reads one file at a time.

    Content that the store knows of exactly the listed version is not read again. A file that has changed
    since is read as it is now, or with `exactly` is an error: `path_changed`.
    """

    def read(entry: Entry) -> bytes:
        with at(backend, entry.path) as spot:
            try:
                return backend.read(spot, limit, entry.stat)
            except CallError as error:
                if exactly or error.code != "path_changed":
                    raise
                return backend.read(spot, limit)

    at_once = backend.traits.reads_at_once
    if at_once == 1:
        return None
    return ReadAhead(entries, read, at_once=at_once, limit=limit, noted=noted)
