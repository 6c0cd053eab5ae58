"""Keys of an fsspec file system in its own form, from paths of the workspace.

Never returns a key that the store would read as another key: such a path is refused.
"""

from __future__ import annotations

import re
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.storage.fsspec_store.abilities import protocols_of

# Protocols with keys in URLs: a client or server would decode, cut or trim such a name into another one.
_URLS = {"http", "https", "webdav", "dav"}
_NOT_IN_URLS = re.compile(r"[?#]|%(2e|2f|5c|25)|^\s|\s$", re.IGNORECASE)
_NOT_IN_WEBDAV = re.compile(r"[?#]|%[0-9a-f]{2}|^\s|\s$", re.IGNORECASE)
# Protocols whose keys have no leading slash, which their classes do not report.
_WITHOUT_SLASH = {"reference"}


class Keys:
    """The keys below `root`, which is in the store's own form."""

    def __init__(self, fs: Any, root: str) -> None:
        self._strip = fs._strip_protocol  # noqa: SLF001  fsspec has no public method for a key
        protocols = set(protocols_of(fs))
        root = str(self._strip(root)).rstrip("/")
        self.root = root.lstrip("/") if protocols & _WITHOUT_SLASH else root
        self._top = self.root or str(getattr(fs, "root_marker", ""))
        slash = not self.root and str(self._strip("x")).startswith("/")
        self._base = "/" if slash else f"{self.root}/" if self.root else ""
        self._ambiguous = None
        if protocols & _URLS:
            self._ambiguous = _NOT_IN_WEBDAV if protocols & {"webdav", "dav"} else _NOT_IN_URLS

    def key(self, path: str) -> str:
        """Return the key of a path, or of a marker with the slash at its end. CallError `path_invalid`."""
        if path == paths.ROOT:
            return self._top
        key = self._base + path
        bare = key.removesuffix("/")
        if str(self._strip(bare)).strip("/") != bare.strip("/") or (
            self._ambiguous is not None and self._ambiguous.search(path) is not None
        ):
            message = f"'{path}' is a name that this store would read as another"
            raise CallError("path_invalid", message, where=path)
        return key
