"""Read requests of the S3 backend, one for each answer.

Keys go to the store unchanged, past any rewriting by a client library.
"""

from __future__ import annotations

import errno
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Stat
from ringfence.toolkit.storage.fsspec_store.identity import identity_of
from ringfence.toolkit.storage.s3.keys import Rows, entries_of, errors, left_out_of, stat_of
from ringfence.toolkit.storage.s3.sends import count_sends_of

PAGE = 1000  # keys in one answer, and in one request to delete
_MAX_KEY = 1024
_STANDARD = "STANDARD"
_MAX_CLASSES = 100_000


class Requests:
    """Requests about the keys below `root` (`bucket` or `bucket/prefix`) of an s3fs file system."""

    def __init__(self, fs: Any, root: str) -> None:
        self._fs = fs
        self.root = root.strip("/")
        self._bucket, _, prefix = self.root.partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        # Storage classes other than STANDARD in the listings so far, by path and tag.
        self.classes: dict[tuple[str, str], str] = {}
        self._check_bucket()
        self.place = identity_of(fs, self.root)
        self.is_amazon = self.place.protocols == ("s3",)

    def _call(self, method: str, **arguments: Any) -> Any:
        from botocore.exceptions import BotoCoreError
        from fsspec.asyn import sync

        try:
            return sync(self._fs.loop, self._send, method, arguments)
        except BotoCoreError as error:
            # No credentials, no such host: errors of the client before any reply.
            raise ConnectionError(errno.EIO, f"{type(error).__name__}") from error

    async def _send(self, method: str, arguments: dict[str, Any]) -> Any:
        await self._fs.set_session()
        count_sends_of(await self._fs.get_s3(self._bucket))
        return await self._fs._call_s3(method, Bucket=self._bucket, **arguments)  # noqa: SLF001  s3fs has no public method for an unchanged request

    def _check_bucket(self) -> None:
        """Fail early where the bucket does not exist or cannot be reached."""
        try:
            self._page(paths.ROOT, "", limit=1)
        except CallError as error:
            why = "is not there" if error.code == "not_found" else f"cannot be opened: {error.message}"
            raise CallError(error.code, f"The bucket '{self._bucket}' {why}") from None

    def _key(self, path: str) -> str:
        try:
            key = self._prefix if path == paths.ROOT else self._prefix + path
            if len(key.encode("utf-8")) <= _MAX_KEY:
                return key
        except UnicodeEncodeError:
            raise CallError(
                "path_invalid", "The path is not Unicode text, as keys of the store must be"
            ) from None
        message = f"The path is longer than the {_MAX_KEY} bytes that a key of the store has"
        raise CallError("path_invalid", message)

    def _read_body(self, body: Any) -> bytes:
        from fsspec.asyn import sync

        async def whole() -> bytes:
            async with body as stream:
                return bytes(await stream.read())

        found: bytes = sync(self._fs.loop, whole)
        return found

    def _page(
        self, path: str, name: str, *, start: str = "", limit: int = PAGE, delimited: bool = False
    ) -> tuple[Rows, str]:
        """Return keys below a directory that begin with `name`, relative to it, and the next page's token."""
        directory = self._directory(path)
        more = {"ContinuationToken": start} if start else {}
        if delimited:
            more["Delimiter"] = "/"
        with errors(path):
            reply = self._call("list_objects_v2", Prefix=directory + name, MaxKeys=limit, **more)
        rows = {row["Key"][len(directory) :]: stat_of(row) for row in reply.get("Contents", ())}
        for row in reply.get("Contents", ()):
            if row.get("StorageClass") not in (None, _STANDARD) and len(self.classes) < _MAX_CLASSES:
                name = row["Key"][len(self._prefix) :]
                self.classes[name, str(row["ETag"])] = row["StorageClass"]
        rows |= {
            row["Prefix"][len(directory) :]: Stat(DIRECTORY, 0) for row in reply.get("CommonPrefixes", ())
        }
        return rows, str(reply["NextContinuationToken"]) if reply.get("IsTruncated") else ""

    def _directory(self, path: str) -> str:
        return self._prefix if path == paths.ROOT else self._key(path) + "/"

    def _exact(self, path: str) -> Stat | None:
        """Return the stat of exactly this path: the object, else a directory if keys are below.

        Else None.
        """
        parent, name = paths.parent(path), path.rpartition("/")[2]
        rows, more = self._page(parent, name, delimited=True)
        if name in rows:
            return rows[name]
        if name + "/" in rows or (more and self._page(path, "", limit=1)[0]):
            return self._confirmed(path, Stat(DIRECTORY, 0))
        return None

    def _confirmed(self, path: str, found: Stat | None) -> Stat | None:
        """Confirm a directory: servers other than Amazon's may list one for minutes after its last key."""
        if found is None or found.kind != DIRECTORY or self.is_amazon:
            return found
        return found if self._page(path, "", limit=1)[0] else None

    def _tree(self, path: str) -> tuple[Rows, Rows, list[str]]:
        """Return all entries below a directory by path, its markers, and the keys that no path names.

        A marker has the path of its directory; a key without a path is relative to `path`.
        """
        rows: Rows = {}
        start = ""
        while True:
            found, start = self._page(path, "", start=start)
            rows |= found
            if not start:
                break
        left_out = left_out_of(rows, below=True)
        markers = {
            f"{path}/{key}".rstrip("/"): stat
            for key, stat in rows.items()
            if (key == "" or key.endswith("/")) and key not in left_out
        }
        return {paths.child(path, name): stat for name, stat in entries_of(rows)}, markers, left_out
