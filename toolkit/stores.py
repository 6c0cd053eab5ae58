"""Any fsspec file system as a confined tree: exact keys only, one object an operation.

Never calls an fsspec method that expands globs in its argument, never takes a failed look for absence,
and never lets a name reach the store that the store would rewrite.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from toolkit import paths
from toolkit.ambiguous_outcome import no_reply
from toolkit.backends import (
    BACKENDS,
    CONSERVATIVE,
    Missed,
    Spot,
    StoreBase,
    Tree,
    WritableTree,
    check_content,
)
from toolkit.errors import CallError
from toolkit.local_roots import refuse_local
from toolkit.metadata import Metadata, NotKept
from toolkit.move_by_copy import move_by_copy
from toolkit.plan import DIRECTORY, FILE, OTHER, Delete, Entry, Held, Move, Stat, sha256, whole
from toolkit.store_identity import identity_of

CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class StoreSpot:
    """A key of the store by its workspace-relative path; stores without links need no more."""

    path: str


class StoreFolder:
    """A directory or prefix; `left_out` is what is in it that no path names, once it was scanned."""

    def __init__(self, store: Store, path: str) -> None:
        self._store = store
        self._path = path
        self.left_out: list[str] = []

    def scan(self) -> list[tuple[str, Stat]]:
        found, self.left_out = self._store.level(self._path)
        return found

    def spot(self, name: str) -> StoreSpot:
        return StoreSpot(paths.child(self._path, name))


class Store(StoreBase):
    """A tree below `root` of the fsspec file system `fs`."""

    def __init__(self, fs: Any, root: str) -> None:
        self._fs = fs
        protocol = fs.protocol if isinstance(fs.protocol, str) else fs.protocol[0]
        self.traits = BACKENDS.get(protocol, CONSERVATIVE)
        self.fold = False
        self.root = root.rstrip("/")
        self.place = identity_of(fs, self.root)

    def close(self) -> None:
        """Nothing is held open."""

    # ------------------------------------------------------------------ looking

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> StoreSpot:
        return StoreSpot(paths.lexical(names))

    def is_link(self, names: tuple[str, ...]) -> bool:
        return False

    def release(self, spot: StoreSpot) -> None:
        """Nothing is held open."""

    def stat(self, spot: StoreSpot) -> Stat | None:
        return self._info(spot.path)

    def read(self, spot: StoreSpot, limit: int | None = None, known: Stat | None = None) -> bytes:
        found = self._info(spot.path)
        if found is None:
            raise CallError("not_found", f"'{spot.path}' does not exist", where=spot.path)
        if found.kind == DIRECTORY:
            raise CallError("is_directory", f"'{spot.path}' is a directory", where=spot.path)
        if limit is not None and (found.size or 0) > limit:
            raise CallError("too_large", f"'{spot.path}' is larger than {limit} bytes", where=spot.path)
        with errors(spot.path):
            return bytes(self._fs.cat_file(self._key(spot.path)))

    def chunks(self, spot: StoreSpot, known: Stat | None = None) -> Iterator[bytes]:
        key = self._key(spot.path)
        return in_parts(self, spot, lambda start, end: bytes(self._fs.cat_file(key, start=start, end=end)))

    @contextmanager
    def folder(self, spot: StoreSpot) -> Iterator[StoreFolder]:
        yield StoreFolder(self, spot.path)

    def level(self, path: str) -> tuple[list[tuple[str, Stat]], list[str]]:
        """The names directly below `path` with what they are, by name, and the keys that no path names."""
        key = self._key(path)
        with errors(path):
            try:
                rows = self._fs.ls(key, detail=True)
            except FileNotFoundError:
                if path == paths.ROOT:
                    return [], []
                raise
        found: dict[str, Stat] = {}
        left_out: list[str] = []
        for row in rows:
            stat, below = _stat(row), _below(key.strip("/"), str(row["name"]).lstrip("/"))
            name = below.removesuffix("/")
            if not below:
                if stat.kind == FILE and stat.size:  # a marker that holds something
                    left_out.append(below)
            elif name in ("", ".", "..") or "/" in name or name in found:
                left_out.append(below)
            else:
                found[name] = stat
        return sorted(found.items()), left_out

    def rights(self, spot: StoreSpot, stat: Stat) -> tuple[bool, bool]:
        return True, True

    def changeable(self, spot: StoreSpot, *, leaves: bool) -> bool:
        return True  # only trying tells

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

    # ----------------------------------------------------------------- changing

    def check(self, spot: StoreSpot) -> None:
        """A key is the same key however long it is held."""

    def create(
        self,
        spot: StoreSpot,
        data: bytes | Held,
        mode: int | None,
        temporary: str,
        metadata: Metadata | None = None,
    ) -> NotKept:
        content = whole(data)
        with changing(spot.path):
            self._create(spot.path, content)
        return ()

    def replace(
        self,
        spot: StoreSpot,
        data: bytes | Held,
        stat: Stat,
        mode: int | None,
        temporary: str,
        before: bytes | None = None,
        metadata: Metadata | None = None,
    ) -> NotKept:
        content = whole(data)
        check_content(self, spot, before)
        with changing(spot.path):
            self._replace(spot.path, content, stat)
        return ()

    def remove(self, spot: StoreSpot, change: Delete, temporary: str) -> Iterator[str | Missed]:
        """Delete exactly what was listed, files first; anything that differs by now is kept and reported."""
        for entry in (*reversed(change.entries), Entry(change.path, change.stat)):
            try:
                if entry.stat.kind == DIRECTORY:
                    self._remove_directory(entry.path)
                else:
                    with changing(entry.path):
                        self._remove(entry.path, entry.stat)
            except CallError as error:
                if not change.entries:
                    raise
                yield Missed(entry.path, error.message, error.code)
            else:
                yield entry.path
        self._keep_parent(change.path)

    def _remove_directory(self, path: str) -> None:
        try:
            self.remove_directory(StoreSpot(path))
        except CallError as error:
            # Where directories are only what keys lie below, the last key took it along.
            if error.code != "not_found":
                raise

    def _keep_parent(self, path: str) -> None:
        """A directory whose last entry went stays, as it does on disk, where the store can have it."""
        parent = paths.parent(path)
        if parent != paths.ROOT and self._info(parent) is None:
            with errors(parent):
                self._fs.makedirs(self._key(parent), exist_ok=True)
            self._mark(parent)

    def _mark(self, path: str) -> None:
        """Where directories are only what keys lie below, an empty object `name/` keeps one.

        Never puts one over what somebody has written there meanwhile.
        """
        if self._info(path) is None:
            with errors(path), suppress(FileExistsError):
                self._create(path + "/", b"")

    def move(self, source: StoreSpot, destination: StoreSpot, change: Move) -> NotKept:
        """Copy, verify, then delete: a store has no rename of its own that can be relied on."""
        if change.over is not None:
            self._same(destination.path, change.over)
        elif self._info(destination.path) is not None:
            raise CallError("already_exists", f"'{destination.path}' already exists", where=destination.path)

        copies: dict[str, Stat] = {}

        def at(entry: Entry) -> str:
            return destination.path + entry.path[len(change.source) :]

        def copy(entry: Entry) -> None:
            if entry.stat.kind == DIRECTORY:
                self.make_directory(StoreSpot(at(entry)))
            else:
                over = change.over if entry.path == change.source else None
                copies[at(entry)] = self._copy(entry.path, entry.stat, at(entry), over)

        def give_back(entry: Entry) -> None:
            if self._info(entry.path) is not None:
                return
            if entry.stat.kind == DIRECTORY:
                self.make_directory(StoreSpot(entry.path))
            else:
                self._copy(at(entry), copies[at(entry)], entry.path, None)

        def uncopy(entry: Entry) -> None:
            if change.over is not None:  # whose content is not here any more
                raise CallError("io_error", f"'{at(entry)}' was replaced", where=at(entry))
            if entry.stat.kind == DIRECTORY:
                self._remove_own(at(entry))
                return
            with errors(at(entry)):
                self._remove(at(entry), copies[at(entry)])

        move_by_copy(
            (Entry(change.source, change.stat), *change.entries),
            copy=copy,
            remove=lambda: self.remove(source, Delete(change.source, change.stat, change.entries), ""),
            give_back=give_back,
            uncopy=uncopy,
        )
        return ()

    def make_directory(self, spot: StoreSpot) -> None:
        with changing(spot.path):
            self._fs.mkdir(self._key(spot.path), create_parents=False)
        self._mark(spot.path)

    def _remove_own(self, path: str) -> None:
        """Take back a directory that was made just now; what others put into it meanwhile keeps it."""
        try:
            self.remove_directory(StoreSpot(path))
        except CallError as error:
            if error.code != "directory_not_empty":
                raise

    def remove_directory(self, spot: StoreSpot) -> None:
        found, left_out = self.level(spot.path)
        if found or left_out:
            raise CallError("directory_not_empty", f"'{spot.path}' is not empty", where=spot.path)
        with errors(spot.path):
            self._fs.rmdir(self._key(spot.path))
        if not self.traits.directories and self._info(spot.path) is not None:
            with errors(spot.path):
                self._fs.rm_file(self._key(spot.path) + "/")

    def make_link(self, spot: StoreSpot, target: str) -> None:
        raise CallError("io_error", "This store has no links")

    def sweep(self, spot: StoreSpot, temporary: str) -> None:
        """A store writes one object at a time and leaves no temporary."""

    # ------------------------------------------------------------------- inside

    def _key(self, path: str) -> str:
        return self.root if path == paths.ROOT else f"{self.root}/{path}"

    def _info(self, path: str) -> Stat | None:
        if path == paths.ROOT:
            return Stat(DIRECTORY, 0)
        with errors(path):
            try:
                return _stat(self._fs.info(self._key(path)))
            except FileNotFoundError:
                return None

    def _same(self, path: str, judged: Stat) -> None:
        now = self._info(path)
        if now is None or (now.kind, now.size, now.identity) != (judged.kind, judged.size, judged.identity):
            raise CallError("path_changed", f"'{path}' changed after it was judged", where=path)

    # What a store with conditions of its own does by them; here a look comes right before.

    def _create(self, path: str, data: bytes) -> None:
        """Put an object where none is. Raises FileExistsError."""
        self._fs.pipe_file(self._key(path), data, mode="create")

    def _replace(self, path: str, data: bytes, judged: Stat) -> None:
        self._same(path, judged)
        self._fs.pipe_file(self._key(path), data)

    def _remove(self, path: str, judged: Stat) -> None:
        self._same(path, judged)
        self._fs.rm_file(self._key(path))

    def _copy(self, source: str, judged: Stat, target: str, over: Stat | None) -> Stat:
        """Copy what was judged to where nothing is, or `over` the file judged there; what is there then."""
        self._same(source, judged)
        with errors(target):
            data = bytes(self._fs.cat_file(self._key(source)))
            if over is None:
                self._create(target, data)
            else:
                self._replace(target, data, over)
            copied = self._info(target)
            if copied is None or sha256(bytes(self._fs.cat_file(self._key(target)))) != sha256(data):
                raise CallError("io_error", f"'{target}' was not copied whole", where=target)
        return copied


def in_parts(store: Tree, spot: Spot, part: Callable[[int, int], bytes]) -> Iterator[bytes]:
    """The content of a file by as many requests as it takes; `part` asks for the bytes of one range."""
    found = store.stat(spot)
    if found is None or found.size is None or found.size <= CHUNK:
        yield store.read(spot)
        return
    for start in range(0, found.size, CHUNK):
        with errors(spot.path):
            data = part(start, min(start + CHUNK, found.size))
        yield data


def open_store(url: str, options: dict[str, Any]) -> tuple[Any, str]:
    """The file system of an fsspec URL, without a cache of listings, and the path on it.

    Raises CallError `io_error`, whatever the library raises.
    """
    import fsspec

    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(
            url, use_listings_cache=False, skip_instance_cache=True, **options
        )
    except ImportError as error:
        extra = {"s3": "s3", "s3a": "s3", "sftp": "sftp", "ssh": "sftp", "az": "azure", "abfs": "azure"}.get(
            url.partition("://")[0]
        )
        hint = f"pip install 'ringfence[{extra}]'" if extra else str(error)
        raise CallError("io_error", "What this kind of root needs is not installed", hint=hint) from None
    except Exception as error:
        raise CallError("io_error", f"The store cannot be opened: {_reason(error)}") from None
    return found


def _reason(error: Exception) -> str:
    """Why a store cannot be opened: a library's own words may hold a password, or a path of this machine."""
    unknown = re.fullmatch(r"Protocol not known: [A-Za-z0-9+.-]+", str(error))
    if unknown is not None:
        return unknown[0]
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


def store_on(fs: Any, root: str) -> WritableTree:
    """The backend for a path on an fsspec file system, by the protocol it has.

    Raises CallError `not_confined` for one that reaches the local disk.
    """
    refuse_local(fs)
    protocols = (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
    if "s3" in protocols and hasattr(fs, "call_s3"):
        from toolkit.s3 import S3

        return S3(fs, root)
    if "sftp" in protocols and hasattr(fs, "ftp"):
        from toolkit.sftp import sftp_on

        return sftp_on(fs, root)
    if "az" in protocols and hasattr(fs, "service_client"):
        from toolkit.azure import Azure

        return Azure(fs, root)
    return Store(fs, root)


def private_memory() -> Any:
    """A memory file system of its own: fsspec's shares one store among all of a process."""
    from fsspec.implementations.memory import MemoryFileSystem

    class PrivateMemory(MemoryFileSystem):  # type: ignore[misc]
        cachable = False

        def __init__(self) -> None:
            super().__init__()
            self.store: dict[str, Any] = {}
            self.pseudo_dirs = [""]

    return PrivateMemory()


def _below(directory: str, key: str) -> str:
    """A key relative to the directory it was listed in: empty for the directory itself and its marker."""
    if key in (directory, f"{directory}/"):
        return ""
    if directory and not key.startswith(f"{directory}/"):
        return key.rstrip("/").rpartition("/")[2]  # a store that lists by names of its own
    return key[len(directory) + 1 :] if directory else key


_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")


def _stat(row: dict[str, Any]) -> Stat:
    kind = {"file": FILE, "directory": DIRECTORY}.get(str(row.get("type")), OTHER)
    marks = [
        row.get(key)
        for key in ("ETag", "etag", "VersionId", "generation", "ino", "mtime", "LastModified", "created")
    ]
    modified = next((_seconds(row[key]) for key in _TIMES if key in row), None)
    return Stat(
        kind=kind,
        size=row.get("size"),
        modified=modified,
        identity="" if kind == DIRECTORY else ":".join(_mark(mark) for mark in marks if mark is not None),
    )


def _mark(value: Any) -> str:
    # The same moment comes as a datetime from one method and as a number from another.
    return repr(value.timestamp()) if isinstance(value, datetime) else str(value)


def _seconds(value: Any) -> float | None:
    if isinstance(value, datetime):
        return value.timestamp()
    return float(value) if isinstance(value, int | float) else None


@contextmanager
def changing(path: str) -> Iterator[None]:
    """As `errors`, for a request that changes something: without a reply it may be carried out still."""
    with errors(path):
        try:
            yield
        except (ConnectionError, TimeoutError) as error:
            raise no_reply(path) from error


@contextmanager
def errors(path: str) -> Iterator[None]:
    try:
        yield
    except CallError:
        raise
    except FileNotFoundError:
        raise CallError("not_found", f"'{path}' does not exist", where=path) from None
    except FileExistsError:
        raise CallError("already_exists", f"'{path}' already exists", where=path) from None
    except IsADirectoryError:
        raise CallError("is_directory", f"'{path}' is a directory", where=path) from None
    except NotADirectoryError:
        raise CallError("not_a_directory", f"'{path}' is not a directory", where=path) from None
    except PermissionError:
        # A store that will not say is not a store where nothing is.
        raise CallError("io_error", f"The store does not permit it: '{path}'", where=path) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise CallError("io_error", f"The store failed on '{path}': {reason}", where=path) from None
    except Exception as error:
        # The libraries of stores raise what they like; here that is the store's failure and not ours.
        reason = type(error).__name__
        raise CallError("io_error", f"The store failed on '{path}': {reason}", where=path) from error
