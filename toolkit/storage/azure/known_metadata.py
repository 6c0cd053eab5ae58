"""Known metadata: what replies have shown of exact versions of blobs, put together by path and ETag.

No single request brings all of it: the reply to a GET lacks the access tier, which a listing has.
"""

from __future__ import annotations

from threading import Lock

from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.storage.azure.metadata import TIER

_MAX_BLOBS = 10_000

_Version = tuple[str, str]  # path and ETag


class KnownMetadata:
    """The known fields of blob versions; the oldest are dropped first. Threads may share it."""

    def __init__(self) -> None:
        self._fields: dict[_Version, Metadata] = {}
        self._lock = Lock()

    def get(self, path: str, tag: str) -> Metadata:
        """Return the fields that are known of a version; none if it is unknown."""
        return self._fields.get((path, tag), {})

    def put(self, path: str, tag: str, fields: Metadata) -> None:
        """Remember the fields in the reply to a GET or HEAD; only the tier stays of what was known before."""
        with self._lock:
            known = self._fields.pop((path, tag), {})
            tier = {TIER: known[TIER]} if TIER in known else {}
            self._keep(path, tag, {**tier, **fields})

    def add(self, path: str, tag: str, fields: Metadata) -> None:
        """Remember further fields of a version, such as its tier in a listing."""
        with self._lock:
            self._keep(path, tag, {**self._fields.pop((path, tag), {}), **fields})

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._fields.clear()

    def _keep(self, path: str, tag: str, fields: Metadata) -> None:
        self._fields[path, tag] = fields
        while len(self._fields) > _MAX_BLOBS:
            del self._fields[next(iter(self._fields))]
