"""Azure blobs, through adlfs, as a confined tree: listed by exact prefix, changed by conditional requests.

Never lists through adlfs, which hides the content of a directory that has an empty marker object. Never
changes anything through adlfs, which sends conditions only for new blobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Move, Stat
from ringfence.toolkit.plan.entries import LooksFor
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.azure.known_metadata import KnownMetadata
from ringfence.toolkit.storage.azure.metadata import SETTINGS, TAGS, TIER, fields_of, tier_of
from ringfence.toolkit.storage.azure.requests import Requests, stat_of
from ringfence.toolkit.storage.azure.seen import AzureFolder, AzureSpot, Listed, names_in, seen_at
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.first_look import MAX_CONTENT, Look
from ringfence.toolkit.storage.fsspec_store.backend import Store
from ringfence.toolkit.storage.fsspec_store.errors import changing, errors
from ringfence.toolkit.storage.fsspec_store.view import StoreFolder, StoreSpot
from ringfence.toolkit.storage.known_content import KnownContent
from ringfence.toolkit.storage.store_base import NewContent

_PAGE = 250  # names in the listing of a first look; a blob has about 1 kB there


class Azure(Store):
    """The blobs below `root` (`container` or `container/prefix`) of an adlfs file system."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root.strip("/"))
        container, _, prefix = self.root.partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._requests = Requests(fs.service_client, container, self._note_resolved)
        self._large_directories: set[str] = set()
        self._metadata = KnownMetadata()
        self.known = KnownContent()

    # ------------------------------------------------------------------ reading

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> AzureSpot:
        return AzureSpot(paths.lexical(names))

    def look(self, spot: StoreSpot, wanted: LooksFor, beside: Sequence[StoreSpot]) -> Look:
        """Look at a path by the request that brings what the call needs next."""
        path, seen = spot.path, seen_at(spot)
        # A file that is there shows that the directory is, too.
        near = [other for other in beside if paths.parent(other.path) == paths.parent(path)]
        if any(seen_at(other).exists for other in near):
            seen.in_directory = True
        found = self._first_look(spot, wanted, near)
        seen.exists = found.stat is not None
        return found

    def _first_look(self, spot: StoreSpot, wanted: LooksFor, near: Sequence[StoreSpot]) -> Look:
        path = spot.path
        if path == paths.ROOT and wanted not in ("names", "entries"):
            return Look(Stat(DIRECTORY, 0))
        if wanted in ("names", "entries"):
            listed = seen_at(spot).listed = self._list(path)
            if listed.exists or path == paths.ROOT:
                return Look(Stat(DIRECTORY, 0))
        elif wanted == "content" and (got := self._get(path, limit=MAX_CONTENT)) is not None:
            return Look(*got)
        siblings = next((seen_at(other).siblings for other in near if seen_at(other).siblings), None)
        return Look(self._listed_stat(spot, siblings or self._siblings(path)))

    def _siblings(self, path: str) -> Listed | None:
        """Return the first names in the directory of a path; None without the right to list them, and where
        they would not show the path.
        """
        parent = paths.parent(path)
        if parent in self._large_directories:
            return None
        with errors(path):
            try:
                return self._names_below(parent, at_most=_PAGE)
            except PermissionError:
                return None

    def _listed_stat(self, spot: StoreSpot, siblings: Listed | None) -> Stat | None:
        """Return the stat of a path in the listing of its directory, which also shows what is beside it."""
        path, seen = spot.path, seen_at(spot)
        if siblings is None:
            return self._info(path)
        seen.siblings = siblings
        name = path.rpartition("/")[2]
        seen.in_directory = siblings.exists or paths.parent(path) == paths.ROOT
        others = {rest.removesuffix("/") for rest, _ in siblings.rows} - {name}
        # One other entry may be deleted at the same time, as by another agent; then a later listing decides.
        seen.directory_stays = "" in others or len(others) > 1
        stat = dict(names_in(siblings.rows)[0]).get(name)
        if stat is None and not siblings.complete:
            self._large_directories.add(paths.parent(path))  # saves a listing; no answer comes from it
            return self._info(path)
        return stat

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
        self._metadata.put(path, found.identity, fields_of(got[0]))
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
        listed = self._list(path)
        if not listed.exists and self._info(path) is None:
            raise CallError("not_found", f"'{path}' does not exist", where=path)
        return names_in(listed.rows)

    @contextmanager
    def folder(self, spot: StoreSpot) -> Iterator[StoreFolder]:
        yield AzureFolder(self, spot)

    def _list(self, path: str) -> Listed:
        with errors(path):
            return self._names_below(path)

    def _names_below(self, path: str, at_most: int | None = None) -> Listed:
        prefix = self._prefix if path == paths.ROOT else self._blob(path) + "/"
        listed: Listed = self._run(self._requests.names_below, prefix, at_most=at_most)
        for name, stat in listed.rows:
            if stat.kind == FILE and name:
                self._metadata.add(paths.child(path, name), stat.identity, {TIER: listed.tiers[name]})
        return listed

    def _info(self, path: str) -> Stat | None:
        return (None if path == paths.ROOT else self._file(path)) or self._directory(path)

    def _file(self, path: str) -> Stat | None:
        with errors(path):
            found = self._run(self._requests.properties, self._blob(path))
        if found is None:
            return None
        stat = stat_of(found)
        self._metadata.put(path, stat.identity, {**fields_of(found), TIER: tier_of(found)})
        return stat

    def _directory(self, path: str) -> Stat | None:
        """Return the stat of a directory: whether any blob is below it, its marker included."""
        if path == paths.ROOT:
            return Stat(DIRECTORY, 0)
        with errors(path):
            exists = self._names_below(path, at_most=1).exists
        return Stat(DIRECTORY, 0) if exists else None

    def missing(self, spot: StoreSpot) -> tuple[str, ...]:
        """Return the parent directories below which is nothing. CallError `not_a_directory` for a file."""
        absent: list[str] = []
        path = paths.parent(spot.path)
        in_directory = seen_at(spot).in_directory
        if in_directory:
            return ()
        while path != paths.ROOT:
            if (absent or in_directory is None) and self._directory(path) is not None:
                break
            if self._file(path) is not None:
                raise CallError("not_a_directory", f"'{path}' is not a directory", where=path)
            absent.append(path)
            path = paths.parent(path)
        return tuple(reversed(absent))

    def _fields(self, path: str, stat: Stat) -> Metadata:
        """Return the metadata of exactly the blob that was `stat`."""
        found = self._metadata.get(path, stat.identity)
        with errors(path):
            if SETTINGS not in found or TIER not in found:
                properties = self._run(self._requests.properties, self._blob(path), stat.identity)
                if properties is None:
                    raise path_changed(path)
                found = {**fields_of(properties), TIER: tier_of(properties)}
                self._metadata.put(path, stat.identity, found)
            if TAGS not in found:
                tags = {TAGS: self._run(self._requests.tags, self._blob(path))}
                self._metadata.add(path, stat.identity, tags)
                found = {**found, **tags}
        return found

    # ----------------------------------------------------------------- changing

    def _put_new(self, spot: StoreSpot, new: NewContent) -> NotKept:
        with changing(spot.path):
            return self._put(spot.path, new.data, None, new.metadata)[1]

    def _put_over(self, spot: StoreSpot, new: NewContent, stat: Stat, before: bytes | None) -> NotKept:
        """Replace a blob. `before` was read after `stat`, so the tag in `stat` stands for the content too."""
        with changing(spot.path):
            fields = {**self._fields(spot.path, stat), **new.metadata}
            return self._put(spot.path, new.data, stat.identity, fields)[1]

    def move(self, source: StoreSpot, destination: StoreSpot, change: Move) -> NotKept:
        if paths.parent(source.path) == paths.parent(destination.path):
            seen_at(source).directory_stays = True  # the copy is in it
        return super().move(source, destination, change)

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

    def _keep_parent(self, spot: StoreSpot) -> None:
        parent = paths.parent(spot.path)
        if seen_at(spot).directory_stays:
            return
        if parent != paths.ROOT and self._directory(parent) is None and self._file(parent) is None:
            with errors(parent), suppress(FileExistsError):
                self._create(parent + "/", b"")

    def _check_free(self, path: str) -> None:
        """Do nothing: each blob is created on the condition that its name is free."""

    def _create(self, path: str, data: bytes) -> None:
        self._put(path, data, None, {})

    def _remove(self, path: str, judged: Stat) -> None:
        self._delete(path, judged.identity)

    def _copy(self, source: str, judged: Stat, target: str, over: Stat | None) -> Stat:
        data = self.read(StoreSpot(source), judged=judged)  # first, because its reply has most of the fields
        fields = self._fields(source, judged)
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
