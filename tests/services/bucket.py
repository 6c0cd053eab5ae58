"""A bucket as a workspace under test, filled and read without Ringfence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ringfence.toolkit.testing.backend_contract import Remote, content
from tests.services.servers import BUCKET


@dataclass(frozen=True)
class Bucket(Remote):
    """A prefix of a bucket, filled and read by plain requests."""

    @property
    def prefix(self) -> str:
        return self.root.partition("/")[2] + "/"

    def put_key(self, key: str, data: bytes) -> None:
        self.fs.call_s3("put_object", Bucket=BUCKET, Key=self.prefix + key, Body=data)

    def put(self, path: str, what: Any) -> None:
        if isinstance(what, dict) and "dir" in what:
            self.put_key(path.rstrip("/") + "/", b"")
        else:
            self.put_key(path, content(what))

    def tags(self) -> dict[str, str]:
        """Return the tag of each key below the prefix, but for Ringfence's own keys."""
        answer = self.fs.call_s3("list_objects_v2", Bucket=BUCKET, Prefix=self.prefix)
        found = {row["Key"][len(self.prefix) :]: row["ETag"] for row in answer.get("Contents", ())}
        return {key: tag for key, tag in found.items() if not key.startswith(".ringfence")}

    def get_key(self, key: str) -> bytes:
        async def whole() -> bytes:
            answer = await self.fs._call_s3("get_object", Bucket=BUCKET, Key=self.prefix + key)
            async with answer["Body"] as body:
                return bytes(await body.read())

        from fsspec.asyn import sync

        found: bytes = sync(self.fs.loop, whole)
        return found

    def task_names(self) -> list[str]:
        store = Bucket(self.fs, self.store)
        return sorted({key.partition("/")[0] for key in store.tags()})

    def tree(self) -> dict[str, Any]:
        keys = self.tags()
        found: dict[str, Any] = {key: self.get_key(key) for key in keys if not key.endswith("/")}
        for key in keys:
            if key.endswith("/") and not any(other != key and other.startswith(key) for other in keys):
                found[key.rstrip("/")] = {"dir": True}
        return found
