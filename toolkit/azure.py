"""Azure blobs, by adlfs, as a confined tree; listed by exact prefixes.

Never asks adlfs to list: beside an empty object that marks a directory it does not see what is in it.
"""

from __future__ import annotations

from typing import Any

from toolkit import paths
from toolkit.errors import CallError
from toolkit.plan import DIRECTORY, FILE, Stat
from toolkit.stores import Store, errors


class Azure(Store):
    """The blobs below `root` (`container` or `container/prefix`) of an adlfs file system."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root.strip("/"))
        self._container, _, prefix = self.root.partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        account = str(getattr(fs, "account_name", None) or "")
        self.url = f"az://{account}/{self.root}"

    def listing(self, path: str) -> list[tuple[str, Stat]]:
        """The names directly below `path` with what they are; a file comes before a directory of its name."""
        start = self._prefix if path == paths.ROOT else self._blob(path) + "/"
        with errors(path):
            rows, there = self._ask(self._below, start, False)
        if not there and path != paths.ROOT:
            raise CallError("not_found", f"'{path}' does not exist", where=path)
        found: dict[str, Stat] = {}
        for name, stat in rows:
            if stat.kind == FILE or name not in found:
                found[name] = stat
        return sorted(found.items())

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

    async def _properties(self, blob: str) -> Stat | None:
        from azure.core.exceptions import ResourceNotFoundError

        async with self._fs.service_client.get_blob_client(self._container, blob) as client:
            try:
                return _stat(await client.get_blob_properties())
            except ResourceNotFoundError:
                return None

    async def _below(self, start: str, only_whether: bool) -> tuple[list[tuple[str, Stat]], bool]:
        """Names below a prefix, and whether anything begins with it, be it only its own marker."""
        rows, there = [], False
        async with self._fs.service_client.get_container_client(self._container) as client:
            async for item in client.walk_blobs(name_starts_with=start, delimiter="/", include=["metadata"]):
                there = True
                if only_whether:
                    break
                name = item.name[len(start) :]
                if name.endswith("/"):
                    rows.append((name[:-1], Stat(DIRECTORY, 0)))
                elif name:
                    rows.append((name, _stat(item)))
        return [row for row in rows if row[0] not in ("", ".", "..")], there


def _stat(blob: Any) -> Stat:
    # Where the account has real directories, they are blobs that say so.
    marks = {key.lower(): value for key, value in (blob.metadata or {}).items()}
    if marks.get("hdi_isfolder") == "true":
        return Stat(DIRECTORY, 0)
    return Stat(FILE, blob.size, blob.last_modified.timestamp(), identity=str(blob.etag).strip('"'))
