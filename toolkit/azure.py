"""Azure blobs, by adlfs, as a confined tree; listed by exact prefixes, changed by conditional requests.

Never asks adlfs to list: beside an empty object that marks a directory it does not see what is in it. Never
has it change anything: it sends no conditions but for a new blob.
"""

from __future__ import annotations

from typing import Any

from toolkit import paths
from toolkit.backends import path_changed
from toolkit.errors import CallError
from toolkit.plan import DIRECTORY, FILE, Stat
from toolkit.stores import Store, StoreSpot, errors


class Azure(Store):
    """The blobs below `root` (`container` or `container/prefix`) of an adlfs file system."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root.strip("/"))
        self._container, _, prefix = self.root.partition("/")
        self._prefix = f"{prefix}/" if prefix else ""

    def level(self, path: str) -> tuple[list[tuple[str, Stat]], list[str]]:
        """The names directly below `path` with what they are, and blobs that no path names.

        A file comes before a directory of its name.
        """
        start = self._prefix if path == paths.ROOT else self._blob(path) + "/"
        with errors(path):
            rows, there = self._ask(self._below, start, False)
        if not there and self._info(path) is None:
            raise CallError("not_found", f"'{path}' does not exist", where=path)
        found: dict[str, Stat] = {}
        left_out: list[str] = []
        for below, stat in rows:
            name = below.removesuffix("/")
            if not below:
                if stat.size:  # a marker that holds something
                    left_out.append(below)
            elif name in ("", ".", ".."):
                left_out.append(below)
            elif stat.kind == FILE or name not in found:
                found[name] = stat
        return sorted(found.items()), left_out

    def make_directory(self, spot: StoreSpot) -> None:
        with errors(spot.path):
            if self._info(spot.path) is not None:
                raise FileExistsError
            self._create(spot.path + "/", b"")

    def remove_directory(self, spot: StoreSpot) -> None:
        found, left_out = self.level(spot.path)
        if found or left_out:
            raise CallError("directory_not_empty", f"'{spot.path}' is not empty", where=spot.path)
        with errors(spot.path):
            # A directory is marked by a blob `name/`, and in some accounts by one `name` that says so.
            for name in (spot.path + "/", spot.path):
                marker = self._ask(self._marker, self._blob(name))
                if marker is not None:
                    self._ask(self._delete, name, marker)

    def _key(self, path: str) -> str:
        if "?versionid=" in path:
            message = f"'{path}' is a name that this store's client would cut"
            raise CallError("path_invalid", message, where=path)
        return super()._key(path)

    def _blob(self, path: str) -> str:
        return self._key(path).partition("/")[2]

    def _info(self, path: str) -> Stat | None:
        if path == paths.ROOT:
            return Stat(DIRECTORY, 0)
        with errors(path):
            found: Stat | None = self._ask(self._properties, self._blob(path))
            if found is not None:
                return found
            there: bool = self._ask(self._below, self._blob(path) + "/", True)[1]
        return Stat(DIRECTORY, 0) if there else None

    def _ask(self, what: Any, *arguments: Any) -> Any:
        from fsspec.asyn import sync

        return sync(self._fs.loop, what, *arguments)

    def _client(self, path: str) -> Any:
        return self._fs.service_client.get_blob_client(self._container, self._blob(path))

    # ----------------------------------------------------------------- changing

    def _create(self, path: str, data: bytes) -> None:
        self._ask(self._upload, path, data, None)

    def _replace(self, path: str, data: bytes, judged: Stat) -> None:
        self._ask(self._upload, path, data, judged.identity)

    def _remove(self, path: str, judged: Stat) -> None:
        self._ask(self._delete, path, judged.identity)

    def _copy(self, source: str, judged: Stat, target: str, over: Stat | None) -> Stat:
        with errors(target):
            found: Stat = self._ask(self._carry, source, judged, target, over and over.identity)
        return found

    async def _upload(self, path: str, data: bytes, tag: str | None, **more: Any) -> str:
        """Put a blob where none is, or over the one with this tag. The tag it has then."""
        from azure.core.exceptions import ResourceExistsError, ResourceModifiedError

        try:
            async with self._client(path) as client:
                answer = await client.upload_blob(
                    data, overwrite=tag is not None, **({} if tag is None else _only(tag)), **more
                )
        except ResourceExistsError:
            raise FileExistsError from None
        except ResourceModifiedError:
            raise path_changed(path) from None
        return str(answer["etag"])

    async def _delete(self, path: str, tag: str) -> None:
        from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError

        try:
            async with self._client(path) as client:
                await client.delete_blob(**_only(tag))
        except ResourceModifiedError:
            raise path_changed(path) from None
        except ResourceNotFoundError:
            raise FileNotFoundError from None

    async def _carry(self, source: str, judged: Stat, target: str, tag: str | None) -> Stat:
        from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError

        try:
            async with self._client(source) as client:
                blob = await client.download_blob(**_only(judged.identity))
                data = await blob.readall()
        except (ResourceModifiedError, ResourceNotFoundError):
            raise path_changed(source) from None
        # A marker of its kind, and whatever else its owner wrote down, goes along.
        more = {"metadata": blob.properties.metadata, "content_settings": _settings(blob.properties)}
        made = await self._upload(target, data, tag, **more)
        return Stat(FILE, len(data), identity=made.strip('"'))

    # ------------------------------------------------------------------ looking

    async def _properties(self, blob: str) -> Stat | None:
        from azure.core.exceptions import ResourceNotFoundError

        async with self._fs.service_client.get_blob_client(self._container, blob) as client:
            try:
                return _stat(await client.get_blob_properties())
            except ResourceNotFoundError:
                return None

    async def _marker(self, blob: str) -> str | None:
        """The tag of a blob that holds nothing; None where there is none, or one that holds something."""
        from azure.core.exceptions import ResourceNotFoundError

        async with self._fs.service_client.get_blob_client(self._container, blob) as client:
            try:
                found = await client.get_blob_properties()
            except ResourceNotFoundError:
                return None
        return None if found.size else str(found.etag)

    async def _below(self, start: str, only_whether: bool) -> tuple[list[tuple[str, Stat]], bool]:
        """Names below a prefix, and whether anything begins with it, be it only its own marker.

        Those of directories end with a slash; an empty name is the marker's.
        """
        rows, there = [], False
        async with self._fs.service_client.get_container_client(self._container) as client:
            async for item in client.walk_blobs(name_starts_with=start, delimiter="/", include=["metadata"]):
                there = True
                if only_whether:
                    break
                name = item.name[len(start) :]
                rows.append((name, Stat(DIRECTORY, 0) if name.endswith("/") else _stat(item)))
        return rows, there


def _only(tag: str) -> dict[str, Any]:
    """The condition that a blob still has this tag."""
    from azure.core import MatchConditions

    return {"etag": f'"{tag.strip(chr(34))}"', "match_condition": MatchConditions.IfNotModified}


def _settings(properties: Any) -> Any:
    """Its settings but for the digest, which the service makes anew."""
    settings = properties.content_settings
    settings.content_md5 = None
    return settings


def _stat(blob: Any) -> Stat:
    # Where the account has real directories, they are blobs that say so. What has content is a file.
    marks = {key.lower(): value for key, value in (blob.metadata or {}).items()}
    if marks.get("hdi_isfolder") == "true" and not blob.size:
        return Stat(DIRECTORY, 0)
    return Stat(FILE, blob.size, blob.last_modified.timestamp(), identity=str(blob.etag).strip('"'))
