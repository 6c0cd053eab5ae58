"""S3, and servers with its protocol, as a read-only tree: listings of exact keys.

Every answer comes from a request made for it. A directory is a prefix of keys, or a marker: an empty object
`name/`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Stat
from ringfence.toolkit.plan.entries import LooksFor
from ringfence.toolkit.storage.first_look import Look
from ringfence.toolkit.storage.s3.keys import Rows, children_of, left_out_of
from ringfence.toolkit.storage.s3.requests import Requests

_MAX_CONFIRMED = 16  # directories that a listing confirms one by one, at once
_PAGES = 10  # pages of keys in a flat listing; a directory with more is listed by itself


@dataclass(slots=True)
class S3Spot:
    """A key by its path in the workspace, with facts from the listing that contained it (None: unknown)."""

    path: str
    parent_exists: bool | None = None  # whether its directory has any entry
    only_entry: bool | None = None  # whether it is the only entry of its directory
    has_marker: bool = False  # whether its directory has a marker
    siblings: tuple[Rows, str] | None = None  # the first page of its directory, and the next page's token
    below: Rows | None = None  # everything below it, if a listing contained it
    children: Rows | None = None  # what is directly in it, if it was listed by itself


class S3Folder:
    """A directory. One flat listing also serves the directories below it, unless it is too long.

    A listing of the first look serves one folder: a later one is listed again. After a scan `left_out` holds
    the keys in the directory that no path names, relative to it.
    """

    def __init__(self, store: S3View, spot: S3Spot) -> None:
        self._store = store
        self._path = spot.path
        self._descendants, spot.below = spot.below, None
        self._children, spot.children = spot.children, None
        self.left_out: list[str] = []

    def scan(self) -> list[tuple[str, Stat]]:
        rows, self._children = self._children, None
        if rows is None and self._descendants is None:
            self._descendants = self._store.descendants(self._path)
        if rows is None:
            rows = self._store.children(self._path) if self._descendants is None else self._descendants
        self.left_out = left_out_of(rows)
        return children_of(rows)

    def spot(self, name: str) -> S3Spot:
        below = None
        if self._descendants is not None:
            start = name + "/"
            below = {
                key[len(start) :]: stat for key, stat in self._descendants.items() if key.startswith(start)
            }
        return S3Spot(paths.child(self._path, name), below=below)


class S3View(Requests):
    """The keys below `root` (`bucket` or `bucket/prefix`) of an s3fs file system, read-only."""

    fold = False

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root)
        self._large_directories: set[str] = set()
        self._deep_directories: set[str] = set()  # those with more below them than one answer has

    def close(self) -> None:
        """Do nothing: the client belongs to the file system."""

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> S3Spot:
        path = paths.lexical(names)
        self._key(path)
        return S3Spot(path)

    def is_link(self, names: tuple[str, ...]) -> bool:
        return False

    def release(self, spot: S3Spot) -> None:
        """Do nothing: no handle is open."""

    def look(self, spot: S3Spot, wanted: LooksFor, beside: Sequence[S3Spot]) -> Look:
        """Look at a path; at a directory that the call lists by the listing of its content."""
        if wanted in ("names", "entries"):
            found = self._listed(spot, deep=wanted == "entries")
            if found is not None:
                return Look(found)
        parent = paths.parent(spot.path)
        known = (other.siblings for other in beside if paths.parent(other.path) == parent)
        siblings = next((page for page in known if page is not None), None)
        return Look(self._stat(spot, siblings, whole=wanted == "tree"))

    def _listed(self, spot: S3Spot, *, deep: bool) -> Stat | None:
        """Return the stat of a directory from a listing of its content, which its folder then has.

        None if nothing is in it.
        """
        path = spot.path
        rows: Rows = {}
        more = ""
        if deep or not (self.is_amazon or path in self._deep_directories):
            # A flat listing also shows that there are keys in each directory: see `_confirmed`.
            rows, more = self._page(path, "")
            if not more:
                spot.below = rows
            elif deep:
                spot.below = self.descendants(path, rows, more)
            else:
                self._deep_directories.add(path)  # only saves this listing next time
        if not deep and spot.below is None:
            rows = spot.children = self._names(path, rows)
        return Stat(DIRECTORY, 0) if rows or path == paths.ROOT else None

    def _names(self, path: str, known: Rows) -> Rows:
        """Return the names directly in a directory with many keys; `known` are keys that were just listed.

        Other servers than Amazon's may list a directory long after its last key: see `_confirmed`.
        """
        rows = self.children(path)
        proved = {key.partition("/")[0] + "/" for key in known}
        doubtful = [name for name in rows if name.endswith("/") and name not in proved and name.strip("./")]
        if self.is_amazon or not doubtful:
            return rows
        if len(doubtful) > _MAX_CONFIRMED:
            return self.descendants(path) or rows
        from concurrent.futures import ThreadPoolExecutor

        def has_keys(name: str) -> bool:
            return bool(self._page(paths.child(path, name[:-1]), "", limit=1)[0])

        with ThreadPoolExecutor(len(doubtful)) as pool:
            there = dict(zip(doubtful, pool.map(has_keys, doubtful), strict=True))
        return {name: stat for name, stat in rows.items() if there.get(name, True)}

    def stat(self, spot: S3Spot) -> Stat | None:
        """Return the stat from a listing of the parent directory, which also fills the fields of the spot."""
        return self._stat(spot)

    def _stat(
        self, spot: S3Spot, siblings: tuple[Rows, str] | None = None, *, whole: bool = False
    ) -> Stat | None:
        """Return the stat, from `siblings` if that page of the parent directory was just listed.

        With `whole`, the folder of a directory gets the listing that confirms it.
        """
        path = spot.path
        if path == paths.ROOT:
            return Stat(DIRECTORY, 0)
        parent, name = paths.parent(path), path.rpartition("/")[2]
        if parent not in self._large_directories:
            spot.siblings = rows, more = siblings or self._page(parent, "", delimited=True)
            found = dict(children_of(rows))
            if not more or name in found or any(other > name + "0" for other in found):
                spot.parent_exists = bool(rows) or parent == paths.ROOT
                spot.only_entry = not (set(found) - {name}) and not more
                spot.has_marker = "" in rows
                now = found.get(name)
                if whole and now is not None and now.kind == DIRECTORY:
                    return self._listed(spot, deep=True)
                return self._confirmed(path, now)
            self._large_directories.add(parent)  # only saves a listing next time; no answer comes from it
        spot.parent_exists, spot.only_entry = True, False
        return self._exact(path)

    @contextmanager
    def folder(self, spot: S3Spot) -> Iterator[S3Folder]:
        yield S3Folder(self, spot)

    def descendants(self, path: str, rows: Rows | None = None, after: str = "") -> Rows | None:
        """Return all keys below a directory, or None when there are too many for a single directory.

        `rows` is the first page, and `after` the next page's token.
        """
        pages = _PAGES
        if rows is None:
            rows, after = self._page(path, "")
        while after and (pages := pages - 1):
            found, after = self._page(path, "", start=after)
            rows = rows | found
        return None if after else rows

    def children(self, path: str) -> Rows:
        """Return the keys directly in a directory, and the names of its directories, each with a slash."""
        found, more = self._page(path, "", delimited=True)
        while more:
            rows, more = self._page(path, "", start=more, delimited=True)
            found |= rows
        return found

    def rights(self, spot: S3Spot, stat: Stat) -> tuple[bool, bool]:
        return True, True

    def changeable(self, spot: S3Spot, *, leaves: bool) -> bool:
        return True  # only an attempt shows it

    def missing(self, spot: S3Spot) -> tuple[str, ...]:
        """Return the parent directories without any key. CallError `not_a_directory` for a file there."""
        if spot.parent_exists or paths.parent(spot.path) == paths.ROOT:
            return ()
        absent: list[str] = []
        path = paths.parent(spot.path)
        while path != paths.ROOT:
            above = S3Spot(path)
            found = self.stat(above)
            if found is not None and found.kind != DIRECTORY:
                raise CallError("not_a_directory", f"'{path}' is not a directory", where=path)
            if found is not None:
                break
            absent.append(path)
            if above.parent_exists:
                break
            path = paths.parent(path)
        return tuple(reversed(absent))

    def check(self, spot: S3Spot) -> None:
        """Do nothing: a key stays the same key."""
