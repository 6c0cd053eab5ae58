"""Opening of stores: the file system of a URL, and the confined tree on it, by the kind of store."""

from __future__ import annotations

import re
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.extras import SCHEMES, install, is_installed
from ringfence.toolkit.storage.backend import WritableTree
from ringfence.toolkit.storage.fsspec_store.abilities import kind_of, unwrapped
from ringfence.toolkit.storage.fsspec_store.backend import Store
from ringfence.toolkit.storage.fsspec_store.options import refused_option, wrong_option
from ringfence.toolkit.storage.local_roots import refuse_local


def open_store(url: str, options: dict[str, Any]) -> tuple[Any, str]:
    """Return the file system of an fsspec URL, without a cache of listings, and the path on it.

    CallError `invalid_arguments` for an unknown option, else `io_error`, whatever the library raises.
    """
    fixed = {"use_listings_cache": False, "skip_instance_cache": True}
    for name in sorted(options.keys() & fixed.keys()):
        raise wrong_option(name, "it is set here, so that every answer comes from the store")
    try:
        try:
            found = _opened(url, {**fixed, **options})
        except TypeError as error:
            if "'use_listings_cache'" not in str(error):
                raise
            found = _opened(url, {"skip_instance_cache": True, **options})  # a file system without that cache
    except ImportError as error:
        extra = SCHEMES.get(url.partition("://")[0])
        raise _not_installed(install(extra) if extra else str(error)) from None
    except Exception as error:  # noqa: BLE001  a store's library raises anything; it becomes a CallError
        extra = SCHEMES.get(url.partition("://")[0])
        if isinstance(error, ValueError) and extra and not is_installed(extra):
            raise _not_installed(install(extra)) from None  # the extra registers the scheme
        refused = refused_option(error, options)
        if refused is not None:
            raise refused from None
        raise CallError("io_error", f"The store cannot be opened: {_reason(error)}") from None
    return found


def _not_installed(hint: str) -> CallError:
    return CallError("io_error", "What this kind of root needs is not installed", hint=hint)


def _opened(url: str, options: dict[str, Any]) -> tuple[Any, str]:
    import fsspec

    found: tuple[Any, str] = fsspec.core.url_to_fs(url, **options)
    if kind_of(found[0]) == "s3":
        found[0].connect()  # s3fs checks its options only here, and sends nothing
    return found


def _reason(error: Exception) -> str:
    """Return why a store cannot be opened; a library's message may contain a password or a local path."""
    unknown = re.fullmatch(r"Protocol not known: [A-Za-z0-9+.-]+", str(error))
    if unknown is not None:
        return unknown[0]
    return (isinstance(error, OSError) and error.strerror) or type(error).__name__


def store_on(fs: Any, root: str) -> WritableTree:
    """Return the backend for a path on an fsspec file system, by the file system's kind.

    CallError `not_confined` for a file system that reaches the local disk.
    """
    refuse_local(fs)
    fs, root = unwrapped(fs, root)
    kind = kind_of(fs)
    if kind == "s3":
        from ringfence.toolkit.storage.s3 import S3

        return S3(fs, root)
    if kind == "sftp":
        from ringfence.toolkit.storage.sftp import sftp_on

        return sftp_on(fs, root)
    if kind == "abfs":
        from ringfence.toolkit.storage.azure import Azure

        return Azure(fs, root)
    return Store(fs, root)


def private_memory() -> Any:
    """Return a separate memory file system: fsspec's own is shared by the whole process."""
    from fsspec.implementations.memory import MemoryFileSystem

    class PrivateMemory(MemoryFileSystem):  # type: ignore[misc]
        """A memory file system with a store of its own."""

        cachable = False

        def __init__(self) -> None:
            super().__init__()
            self.store: dict[str, Any] = {}
            self.pseudo_dirs = [""]

    return PrivateMemory()
