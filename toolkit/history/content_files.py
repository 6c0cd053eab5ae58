"""Stored content outside the history's database: large contents in files named by digest, and deleted trees
in the quarantine. Read and written piece by piece.

A file is on the disk under its final name before a row refers to it. Never changes a stored file.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.content import StreamedContent, checked
from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.storage import sparse_files
from ringfence.toolkit.storage.backend import Tree, at

FILED = 2  # the value of `packed` for content in a file of its own; 1: compressed, 0: as it is
# From this size on a file costs less than a row; measured on incompressible content, one durable write each.
LARGE = 128 << 10


class ContentFiles:
    """The content files in `folder` (None: there are none), and the quarantined trees of `backend`."""

    def __init__(self, folder: str | None, backend: Tree, *, durable: bool = True) -> None:
        self.backend = backend
        self.folder = None if folder is None else Path(folder, "content")
        self._durable = durable

    def put(self, content: Iterable[bytes]) -> tuple[str, int]:
        """Store content as a file; return its digest and size. Raises OSError."""
        assert self.folder is not None, "asked only where there is a folder"
        self.folder.mkdir(mode=0o700, exist_ok=True)
        part = self.folder / f"part-{secrets.token_hex(8)}"
        hashed, size = hashlib.sha256(), 0

        def counted(pieces: Iterable[bytes]) -> Iterator[bytes]:
            nonlocal size
            for piece in pieces:
                hashed.update(piece)
                size += len(piece)
                yield piece

        try:
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                sparse_files.write_all(fd, counted(content))
                self._sync(fd)
            finally:
                os.close(fd)
            part.rename(self.folder / hashed.hexdigest())
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        self._sync_folder()
        return hashed.hexdigest(), size

    def filed(self, digest: str, size: int) -> StreamedContent:
        """Return a stored content."""
        return StreamedContent(digest, size, lambda: checked(digest, self._read(digest)))

    def has(self, digest: str) -> bool:
        """Whether a content is still stored."""
        return self.folder is not None and (self.folder / digest).is_file()

    def quarantined(self, digest: str, size: int, path: str) -> StreamedContent | None:
        """Return a quarantined file's content, by its path in the quarantine; None if it is not there."""
        with at(self.backend, f"{OWN_DIRECTORY}/{path}") as spot:
            found = self.backend.stat(spot)
        return None if found is None else self.in_quarantine(digest, size, path)

    def in_quarantine(self, digest: str, size: int, path: str) -> StreamedContent:
        """Return the content of a file that is known to be in the quarantine, by its path there."""
        return StreamedContent(digest, size, lambda: checked(digest, self._chunks(path)))

    def attached(self, path: str) -> Metadata | None:
        """Return a quarantined entry's metadata, by its path in the quarantine; None if it is not there."""
        with at(self.backend, f"{OWN_DIRECTORY}/{path}") as spot:
            found = self.backend.stat(spot)
            return None if found is None else self.backend.metadata(spot, found)

    def forget(self, digest: str) -> int:
        """Remove a stored content; return its size on the disk in bytes."""
        assert self.folder is not None, "asked only where there is a folder"
        file = self.folder / digest
        try:
            size = file.stat().st_size
            file.unlink()
        except FileNotFoundError:
            return 0
        return size

    def names(self) -> list[str]:
        """Return the names of all files: digests, and unfinished parts."""
        if self.folder is None or not self.folder.is_dir():
            return []
        return sorted(file.name for file in self.folder.iterdir())

    def _chunks(self, path: str) -> Iterator[bytes]:
        with at(self.backend, f"{OWN_DIRECTORY}/{path}") as spot:
            yield from self.backend.chunks(spot)

    def _read(self, digest: str) -> Iterator[bytes]:
        assert self.folder is not None, "a row speaks of a file only where there is a folder"
        try:
            fd = os.open(self.folder / digest, os.O_RDONLY | os.O_CLOEXEC)
            try:
                yield from sparse_files.pieces_of(fd, os.fstat(fd))
            finally:
                os.close(fd)
        except OSError:
            raise CallError("not_recoverable", "The kept content cannot be read") from None

    def _sync(self, fd: int) -> None:
        if self._durable:
            os.fsync(fd)

    def _sync_folder(self) -> None:
        assert self.folder is not None, "something was just put in it"
        fd = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._sync(fd)
        finally:
            os.close(fd)
