"""Azure blobs, through adlfs, as a confined tree: listed by exact prefix, changed by conditional requests.

Never lists through adlfs, which hides the content of a directory that has an empty marker object. Never
changes anything through adlfs, which sends conditions only for new blobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Stat
from ringfence.toolkit.plan.entries import LooksFor
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.azure.metadata import fields_of
from ringfence.toolkit.storage.azure.requests import Requests, stat_of
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.first_look import MAX_CONTENT, Look
from ringfence.toolkit.storage.fsspec_store.backend import Store
from ringfence.toolkit.storage.fsspec_store.errors import changing, errors
from ringfence.toolkit.storage.fsspec_store.view import StoreFolder, StoreSpot
from ringfence.toolkit.storage.known_content import KnownContent
from ringfence.toolkit.storage.store_base import NewContent

_MAX_METADATA = 64  # blobs with metadata in the cache, between planning and the change


Listed = tuple[list[tuple[str, Stat]], bool]  # the names below a prefix, and whether any blob has it


@dataclass(slots=True)
class Seen:
    """What the first look at a path has shown; a listing serves the first scan of the directory."""

    exists: bool = False
    in_directory: bool = False
    listed: Listed | None = None


@dataclass(frozen=True, slots=True)
class AzureSpot(StoreSpot):
    """A path, with what the first look at it has shown."""

    seen: Seen = field(default_factory=Seen, compare=False)


class _Folder(StoreFolder):
    """A directory; its first scan takes the listing that looking at it has brought."""

    def __init__(self, store: Azure, spot: StoreSpot) -> None:
        super().__init__(store, spot.path)
        self._spot = spot

    def scan(self) -> list[tuple[str, Stat]]:
        seen = self._spot.seen if isinstance(self._spot, AzureSpot) else Seen()
        listed, seen.listed = seen.listed, None
        if listed is None:
            return super().scan()
        found, self.left_out = _names(listed[0])
        return found


class Azure(Store):
    """The blobs below `root` (`container` or `container/prefix`) of an adlfs file system."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root.strip("/"))
        container, _, prefix = self.root.partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._requests = Requests(fs.service_client, container, self._note_resolved)
        self._metadata: dict[tuple[str, str], Metadata] = {}
        self.known = KnownContent()

    # ------------------------------------------------------------------ reading

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> AzureSpot:
        return AzureSpot(paths.lexical(names))

    def look(self, spot: StoreSpot, wanted: LooksFor, beside: Sequence[StoreSpot]) -> Look:
        """Look at a path by the request that brings what the call needs next."""
        path = spot.path
        found = self._first_look(spot, wanted)
        if isinstance(spot, AzureSpot):
            spot.seen.exists = found.stat is not None
            # A file that is there shows that the directory is, too.
            near = [other for other in beside if isinstance(other, AzureSpot) and other.seen.exists]
            spot.seen.in_directory = any(paths.parent(other.path) == paths.parent(path) for other in near)
        return found

    def _first_look(self, spot: StoreSpot, wanted: LooksFor) -> Look:
        path = spot.path
        if wanted in ("names", "entries"):
            listed = self._list(path)
            if isinstance(spot, AzureSpot):
                spot.seen.listed = listed
            if listed[1] or path == paths.ROOT:
                return Look(Stat(DIRECTORY, 0))
        elif wanted == "content" and path != paths.ROOT:
            return Look(*(self._get(path, limit=MAX_CONTENT) or (self._directory(path), None)))
        return Look(self._info(path))

    def read(self, spot: StoreSpot, limit: int | None = None, judged: Stat | None = None) -> bytes:
        """Return the bytes of a blob: exactly the `judged` version, or the current one without it."""
        path = spot.path
        if judged is not None and judged.kind == DIRECTORY:
            raise CallError("is_directory", f"'{path}' is a directory", where=path)
        data = self.known.get(path, judged) if judged is not None else None
        if data is None:
            got = None if path == paths.ROOT else self._get(path, judged, limit)
            if got is None:
                raise path_changed(path) if judged is not None else self._no_file(path)
            found, data = got
            if found.kind == DIRECTORY:
                raise CallError("is_directory", f"'{path}' is a directory", where=path)
        if data is None or (limit is not None and len(data) > limit):
            raise CallError("too_large", f"'{path}' is larger than {limit} bytes", where=path)
        return data

    def _get(
        self, path: str, judged: Stat | None = None, limit: int | None = None
    ) -> tuple[Stat, bytes | None] | None:
        """Return stat and content of a blob, and remember that version."""
        with errors(path):
            got = self._run(self._requests.content, self._blob(path), judged and judged.identity, limit)
        if got is None:
            return None
        found, data = stat_of(got[0]), got[1]
        if data is not None:
            self.known.put(path, found, data)
        return found, data

    def _no_file(self, path: str) -> CallError:
        if self._directory(path) is not None:
            return CallError("is_directory", f"'{path}' is a directory", where=path)
        return CallError("not_found", f"'{path}' does not exist", where=path)

    def forget_content(self) -> None:
        """Drop content that an earlier call read."""
        self.known.clear()

    def begin_call(self, *, changes: bool) -> None:
        """Drop the metadata that earlier calls have read before a call that `changes` something: a blob's
        tags and its tier can be set without a new version.
        """
        if changes:
            self._metadata.clear()

    def metadata(self, spot: StoreSpot, stat: Stat, *, copied: bool = False) -> Metadata | None:
        """Return settings, metadata, tags and tier of a blob; a copy takes all of them along."""
        return self._fields(spot.path, stat) if stat.kind == FILE else None

    def children(self, path: str) -> tuple[list[tuple[str, Stat]], list[str]]:
        """Return the names directly below `path` with their stats, and the blobs that no path names.

        A file comes before a directory of the same name.
        """
        rows, exists = self._list(path)
        if not exists and self._info(path) is None:
            raise CallError("not_found", f"'{path}' does not exist", where=path)
        return _names(rows)

    @contextmanager
    def folder(self, spot: StoreSpot) -> Iterator[StoreFolder]:
        yield _Folder(self, spot)

    def _list(self, path: str) -> Listed:
        prefix = self._prefix if path == paths.ROOT else self._blob(path) + "/"
        with errors(path):
            found: Listed = self._run(self._requests.names_below, prefix)
        return found

    def _info(self, path: str) -> Stat | None:
        return (None if path == paths.ROOT else self._file(path)) or self._directory(path)

    def _file(self, path: str) -> Stat | None:
        with errors(path):
            found = self._run(self._requests.properties, self._blob(path))
        if found is None:
            return None
        stat = stat_of(found)
        if not found.tag_count:  # tags take a request of their own
            self._remember_fields(path, stat, fields_of(found, {}))
        return stat

    def _directory(self, path: str) -> Stat | None:
        """Return the stat of a directory: whether any blob is below it, its marker included."""
        if path == paths.ROOT:
            return Stat(DIRECTORY, 0)
        with errors(path):
            prefix = self._blob(path) + "/"
            exists: bool = self._run(self._requests.names_below, prefix, existence_only=True)[1]
        return Stat(DIRECTORY, 0) if exists else None

    def missing(self, spot: StoreSpot) -> tuple[str, ...]:
        """Return the parent directories below which is nothing. CallError `not_a_directory` for a file."""
        absent: list[str] = []
        path = paths.parent(spot.path)
        if isinstance(spot, AzureSpot) and spot.seen.in_directory:
            return ()
        while path != paths.ROOT and self._directory(path) is None:
            if self._file(path) is not None:
                raise CallError("not_a_directory", f"'{path}' is not a directory", where=path)
            absent.append(path)
            path = paths.parent(path)
        return tuple(reversed(absent))

    def _fields(self, path: str, stat: Stat) -> Metadata:
        """Return the metadata of exactly the blob that was `stat`."""
        known = self._metadata.get((path, stat.identity))  # another thread may drop it at any time
        if known is not None:
            return known
        with errors(path):
            found: Metadata | None = self._run(self._requests.fields, self._blob(path), stat.identity)
        if found is None:
            raise path_changed(path)
        self._remember_fields(path, stat, found)
        return found

    def _remember_fields(self, path: str, stat: Stat, fields: Metadata) -> None:
        if len(self._metadata) >= _MAX_METADATA:
            self._metadata.clear()
        self._metadata[path, stat.identity] = fields

    # ----------------------------------------------------------------- changing

    def _put_new(self, spot: StoreSpot, new: NewContent) -> NotKept:
        with changing(spot.path):
            return self._put(spot.path, new.data, None, new.metadata)[1]

    def _put_over(self, spot: StoreSpot, new: NewContent, stat: Stat, before: bytes | None) -> NotKept:
        """Replace a blob. `before` was read after `stat`, so the tag in `stat` stands for the content too."""
        with changing(spot.path):
            fields = {**self._fields(spot.path, stat), **new.metadata}
            return self._put(spot.path, new.data, stat.identity, fields)[1]

    def make_directory(self, spot: StoreSpot) -> None:
        with changing(spot.path):
            if self._info(spot.path) is not None:
                raise FileExistsError
            self._create(spot.path + "/", b"")

    def remove_directory(self, spot: StoreSpot) -> None:
        found, left_out = self.children(spot.path)
        if found or left_out:
            raise CallError("directory_not_empty", f"'{spot.path}' is not empty", where=spot.path)
        with changing(spot.path):
            # The marker of a directory is a blob `name/`, in some accounts a blob `name` with a flag.
            for name in (spot.path + "/", spot.path):
                marker = self._run(self._requests.properties, self._blob(name))
                if marker is not None and not marker.size:
                    self._delete(name, str(marker.etag))

    def _keep_parent(self, path: str) -> None:
        parent = paths.parent(path)
        if parent != paths.ROOT and self._directory(parent) is None:
            self._create_marker(parent)

    def _check_free(self, path: str) -> None:
        """Do nothing: each blob is created on the condition that its name is free."""

    def _create(self, path: str, data: bytes) -> None:
        self._put(path, data, None, {})

    def _remove(self, path: str, judged: Stat) -> None:
        self._delete(path, judged.identity)

    def _copy(self, source: str, judged: Stat, target: str, over: Stat | None) -> Stat:
        fields, data = self._fields(source, judged), self.read(StoreSpot(source), judged=judged)
        with changing(target):
            tag, not_kept = self._put(target, data, over and over.identity, fields)
        if not_kept:
            self._not_kept[target] = not_kept
        return Stat(FILE, len(data), identity=tag)

    def _put(self, path: str, data: bytes, tag: str | None, fields: Metadata) -> tuple[str, NotKept]:
        found: tuple[str, NotKept] = self._run(self._requests.put, self._blob(path), path, data, tag, fields)
        return found

    def _delete(self, path: str, tag: str) -> None:
        self._run(self._requests.delete, self._blob(path), path, tag)

    # ------------------------------------------------------------------- inside

    def _key(self, path: str) -> str:
        if "?versionid=" in path:
            message = f"'{path}' is a name that this store's client would cut"
            raise CallError("path_invalid", message, where=path)
        return super()._key(path)

    def _blob(self, path: str) -> str:
        return self._key(path).partition("/")[2]

    def _note_resolved(self, path: str) -> None:
        self.note_resolved(path.rstrip("/"))

    def _run(self, request: Any, *arguments: Any, **options: Any) -> Any:
        from fsspec.asyn import sync

        return sync(self._fs.loop, request, *arguments, **options)


def _names(rows: list[tuple[str, Stat]]) -> tuple[list[tuple[str, Stat]], list[str]]:
    """Return the names in a listing that paths can have, a file before a directory, and the others."""
    found: dict[str, Stat] = {}
    left_out: list[str] = []
    for rest, stat in rows:
        name = rest.removesuffix("/")
        if not rest:
            if stat.size:  # a marker with content
                left_out.append(rest)
        elif name in ("", ".", ".."):
            left_out.append(rest)
        elif stat.kind == FILE or name not in found:
            found[name] = stat
    return sorted(found.items()), left_out
