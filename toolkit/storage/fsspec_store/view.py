"""Any fsspec file system as a confined read-only tree: exact keys only, one object per operation.

Never calls an fsspec method that expands globs in its argument, never treats a failed request as absence, and
never passes a name to the store that the store would rewrite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Stat
from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.storage.backend import Spot, Tree
from ringfence.toolkit.storage.fsspec_store.abilities import traits_of
from ringfence.toolkit.storage.fsspec_store.errors import errors
from ringfence.toolkit.storage.fsspec_store.ftp import with_reconnection
from ringfence.toolkit.storage.fsspec_store.identity import identity_of
from ringfence.toolkit.storage.fsspec_store.keys import Keys
from ringfence.toolkit.storage.fsspec_store.metadata import copied_fields, fields_in
from ringfence.toolkit.storage.fsspec_store.rows import relative_key, stat_of
from ringfence.toolkit.storage.store_base import StoreBase

CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class StoreSpot:
    """A path relative to the workspace; a store without links needs nothing else."""

    path: str


class StoreFolder:
    """A directory or prefix; after a scan `left_out` holds the keys in it that no path names."""

    def __init__(self, store: StoreView, path: str) -> None:
        self._store = store
        self._path = path
        self.left_out: list[str] = []

    def scan(self) -> list[tuple[str, Stat]]:
        found, self.left_out = self._store.children(self._path)
        return found

    def spot(self, name: str) -> StoreSpot:
        return StoreSpot(paths.child(self._path, name))


class StoreView(StoreBase):
    """A read-only tree below `root` of the fsspec file system `fs`."""

    def __init__(self, fs: Any, root: str) -> None:
        self._fs = with_reconnection(fs)
        self._keys = Keys(fs, root)
        self.traits = traits_of(fs)
        self.fold = False
        self.root = self._keys.root
        self.place = identity_of(fs, self.root)

    def close(self) -> None:
        """Do nothing: no handle is open."""

    # ------------------------------------------------------------------ reading

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> StoreSpot:
        return StoreSpot(paths.lexical(names))

    def is_link(self, names: tuple[str, ...]) -> bool:
        return False

    def release(self, spot: StoreSpot) -> None:
        """Do nothing: no handle is open."""

    def stat(self, spot: StoreSpot) -> Stat | None:
        return self._info(spot.path)

    def read(self, spot: StoreSpot, limit: int | None = None, judged: Stat | None = None) -> bytes:
        found = self._info(spot.path)
        if found is None:
            raise CallError("not_found", f"'{spot.path}' does not exist", where=spot.path)
        if found.kind == DIRECTORY:
            raise CallError("is_directory", f"'{spot.path}' is a directory", where=spot.path)
        if limit is not None and (found.size or 0) > limit:
            raise CallError("too_large", f"'{spot.path}' is larger than {limit} bytes", where=spot.path)
        with errors(spot.path):
            return bytes(self._fs.cat_file(self._key(spot.path)))

    def chunks(self, spot: StoreSpot, judged: Stat | None = None) -> Iterator[bytes]:
        key = self._key(spot.path)
        return in_ranges(self, spot, lambda start, end: bytes(self._fs.cat_file(key, start=start, end=end)))

    def metadata(self, spot: StoreSpot, stat: Stat, *, copied: bool = False) -> Metadata | None:
        """Return the file's metadata for comparison; the store cannot set any of it."""
        if stat.kind != FILE:
            return None
        found = self._judged_metadata(spot.path, stat)
        return (copied_fields(found) if copied else found) or None

    @contextmanager
    def folder(self, spot: StoreSpot) -> Iterator[StoreFolder]:
        yield StoreFolder(self, spot.path)

    def children(self, path: str) -> tuple[list[tuple[str, Stat]], list[str]]:
        """Return the names directly below `path` with their stats, and the keys that no path names."""
        key = self._key(path)
        with errors(path):
            self._clear_listings()
            try:
                rows = self._fs.ls(key, detail=True)
            except FileNotFoundError:
                if path == paths.ROOT:
                    return [], []
                raise
        found: dict[str, Stat] = {}
        left_out: list[str] = []
        for row in rows:
            stat, relative = stat_of(row), relative_key(key.strip("/"), str(row["name"]).lstrip("/"))
            name = relative.removesuffix("/")
            if not relative:
                if stat.kind == FILE and stat.size:  # a marker with content
                    left_out.append(relative)
            elif name in ("", ".", "..") or "/" in name or name in found:
                left_out.append(relative)
            else:
                found[name] = stat
        return sorted(found.items()), left_out

    def rights(self, spot: StoreSpot, stat: Stat) -> tuple[bool, bool]:
        return True, not self.traits.read_only

    def changeable(self, spot: StoreSpot, *, leaves: bool) -> bool:
        return True  # only an attempt shows it

    def check(self, spot: StoreSpot) -> None:
        """Do nothing: a key stays the same key."""

    def missing(self, spot: StoreSpot) -> tuple[str, ...]:
        names = paths.parts(spot.path)
        absent = []
        for depth in range(len(names) - 1, 0, -1):
            path = paths.join(names[:depth])
            found = self._info(path)
            if found is not None and found.kind != DIRECTORY:
                raise CallError("not_a_directory", f"'{path}' is not a directory", where=path)
            if found is not None:
                break
            absent.append(path)
        return tuple(reversed(absent))

    # ------------------------------------------------------------------- inside

    def _key(self, path: str) -> str:
        return self._keys.key(path)

    def _clear_listings(self) -> None:
        """Clear the file system's cache of listings, because others change the store as well."""
        self._fs.invalidate_cache()

    def _row(self, path: str) -> dict[str, Any] | None:
        with errors(path):
            self._clear_listings()
            try:
                return dict(self._fs.info(self._key(path)))
            except FileNotFoundError:
                return None

    def _info(self, path: str) -> Stat | None:
        if path == paths.ROOT:
            return Stat(DIRECTORY, 0)
        row = self._row(path)
        return None if row is None else stat_of(row)

    def _check_same(self, path: str, judged: Stat) -> None:
        _check_same(path, judged, self._info(path))

    def _judged_metadata(self, path: str, judged: Stat) -> Metadata:
        """Return the metadata of the judged entry. CallError `path_changed`."""
        row = self._row(path) or {}
        _check_same(path, judged, stat_of(row) if row else None)
        return fields_in(row)

    def _content(self, path: str) -> bytes:
        with errors(path):
            return bytes(self._fs.cat_file(self._key(path)))


def _check_same(path: str, judged: Stat, now: Stat | None) -> None:
    if now is None or (now.kind, now.size, now.identity) != (judged.kind, judged.size, judged.identity):
        raise CallError("path_changed", f"'{path}' changed after it was judged", where=path)


def in_ranges(store: Tree, spot: Spot, read_range: Callable[[int, int], bytes]) -> Iterator[bytes]:
    """Yield the content of a file by requests of at most CHUNK bytes; `read_range` reads one range."""
    found = store.stat(spot)
    if found is None or found.size is None or found.size <= CHUNK:
        yield store.read(spot)
        return
    for start in range(0, found.size, CHUNK):
        with errors(spot.path):
            data = read_range(start, min(start + CHUNK, found.size))
        yield data
