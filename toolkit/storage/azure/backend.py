"""Azure blobs, through adlfs, as a confined tree: listed by exact prefix, changed by conditional requests.

Never lists through adlfs, which hides the content of a directory that has an empty marker object. Never
changes anything through adlfs, which sends conditions only for new blobs.
"""

from __future__ import annotations

from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.azure.requests import Requests, stat_of
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.fsspec_store.backend import Store
from ringfence.toolkit.storage.fsspec_store.errors import changing, errors
from ringfence.toolkit.storage.fsspec_store.view import StoreSpot
from ringfence.toolkit.storage.store_base import NewContent

_MAX_METADATA = 64  # blobs with metadata in the cache, between planning and the change


class Azure(Store):
    """The blobs below `root` (`container` or `container/prefix`) of an adlfs file system."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root.strip("/"))
        container, _, prefix = self.root.partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._requests = Requests(fs.service_client, container, self._note_resolved)
        self._metadata: dict[tuple[str, str], Metadata] = {}

    # ------------------------------------------------------------------ reading

    def read(self, spot: StoreSpot, limit: int | None = None, judged: Stat | None = None) -> bytes:
        """Return the bytes of a blob: exactly the `judged` version, or the current one without it."""
        path, found = spot.path, judged or self._info(spot.path)
        if found is None:
            raise CallError("not_found", f"'{path}' does not exist", where=path)
        if found.kind == DIRECTORY:
            raise CallError("is_directory", f"'{path}' is a directory", where=path)
        if limit is not None and (found.size or 0) > limit:
            raise CallError("too_large", f"'{path}' is larger than {limit} bytes", where=path)
        with errors(path):
            data: bytes | None = self._run(self._requests.content, self._blob(path), found.identity)
        if data is None:
            raise path_changed(path)
        return data

    def metadata(self, spot: StoreSpot, stat: Stat, *, copied: bool = False) -> Metadata | None:
        """Return settings, metadata, tags and tier of a blob; a copy takes all of them along."""
        return self._fields(spot.path, stat) if stat.kind == FILE else None

    def children(self, path: str) -> tuple[list[tuple[str, Stat]], list[str]]:
        """Return the names directly below `path` with their stats, and the blobs that no path names.

        A file comes before a directory of the same name.
        """
        prefix = self._prefix if path == paths.ROOT else self._blob(path) + "/"
        with errors(path):
            rows, exists = self._run(self._requests.names_below, prefix)
        if not exists and self._info(path) is None:
            raise CallError("not_found", f"'{path}' does not exist", where=path)
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

    def _info(self, path: str) -> Stat | None:
        if path == paths.ROOT:
            return Stat(DIRECTORY, 0)
        with errors(path):
            found = self._run(self._requests.properties, self._blob(path))
            if found is not None:
                return stat_of(found)
            prefix = self._blob(path) + "/"
            exists: bool = self._run(self._requests.names_below, prefix, existence_only=True)[1]
        return Stat(DIRECTORY, 0) if exists else None

    def _fields(self, path: str, stat: Stat) -> Metadata:
        """Return the metadata of exactly the blob that was `stat`."""
        key = path, stat.identity
        if key not in self._metadata:
            with errors(path):
                found: Metadata | None = self._run(self._requests.fields, self._blob(path), stat.identity)
            if found is None:
                raise path_changed(path)
            if len(self._metadata) >= _MAX_METADATA:
                self._metadata.clear()
            self._metadata[key] = found
        return self._metadata[key]

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
        if parent != paths.ROOT:
            self._create_marker(parent)

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
