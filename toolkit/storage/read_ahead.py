"""Read-ahead: the files of a walk are read several at a time, and handed out in the order of the walk.

Nothing is read before the walk has judged it, and nothing before the first file is asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import FILE, Entry
from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.storage.backend import Tree, at

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

_MAX_BYTES = 32 << 20  # of files that are read at once; a larger one is read alone
_Ahead = tuple[Entry, list[Any]]


class FileRead(NamedTuple):
    """The content of a file, with its metadata."""

    data: bytes
    metadata: Metadata


Together = Callable[[Sequence[Entry]], Sequence[FileRead | None] | None]


class ReadAhead:
    """The entries of a walk, each with its content once that is asked for.

    `read` reads an entry, in a thread. `together` reads several at once and leaves some to `read`, without
    threads then; it returns None for a store that cannot do so. Files of more than `limit` bytes are not read
    ahead. `noted` is a list to which the walk adds while it goes on: what it adds for an entry is there when
    the entry's turn comes, and not before.
    """

    def __init__(  # noqa: PLR0913  the parts of a walk, named by the caller
        self,
        entries: Iterator[Entry],
        read: Callable[[Entry], bytes],
        *,
        at_once: int,
        limit: int,
        noted: list[Any],
        together: Together = lambda _: None,
    ) -> None:
        self.turn: Entry | None = None
        self._entries, self._read, self._limit = entries, read, limit
        self._at_once, self._noted, self._together = at_once, noted, together
        self._found: dict[str, FileRead | None] = {}
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
            self._found.pop(self.turn.path, None)
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
        if entry.path not in self._found:
            waiting = self._waiting(entry)
            found = None if self._pool is not None else self._together(waiting)
            if found is None:
                return self._from_thread(entry, waiting)
            self._found |= {one.path: read for one, read in zip(waiting, found, strict=True)}
        read = self._found[entry.path]
        return self._read(entry) if read is None else read.data

    def metadata(self, path: str) -> Metadata | None:
        """Return the metadata of the entry in turn, where the store sent it with the content."""
        read = self._found.get(path)
        return None if read is None else read.metadata

    def _waiting(self, entry: Entry) -> list[Entry]:
        """Return the entry in turn, and those of the next ones that are not read yet and may be."""
        waiting, size = [entry], entry.stat.size or 0
        for other, noted in self._ahead:
            if noted:
                continue  # it may ask a person, so it is not read before its turn
            size += other.stat.size or 0
            if size > _MAX_BYTES:
                break
            if other.stat.kind == FILE and (other.stat.size or 0) <= self._limit:
                waiting.append(other)
        return waiting

    def _from_thread(self, entry: Entry, waiting: list[Entry]) -> bytes:
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor  # only stores need it

            self._pool = ThreadPoolExecutor(self._at_once)
        for other in waiting:
            if other.path not in self._reading:
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


def together_from(backend: Tree, limit: int) -> Together:
    """Return the function that reads several files of a backend at once, for `ReadAhead`."""
    own = getattr(backend, "read_together", None)
    return lambda entries: None if own is None else own(entries, limit)


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
    together = together_from(backend, limit)
    return ReadAhead(entries, read, at_once=at_once, limit=limit, noted=noted, together=together)
