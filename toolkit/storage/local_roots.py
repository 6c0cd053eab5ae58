"""Local roots: which paths, URLs and file system objects name a directory of this machine.

Returns the plain path of a root that names exactly one directory, and refuses (`not_confined`) any other way
to reach the local disk. Opens no store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import shown

# Protocols of classes that are the local disk, or that open any URL in a path.
_LOCAL_PROTOCOLS = {"file", "local", "asynclocal", "ringfence", "generic", "dask"}
_HINT = "give the directory by its path or as file:///path, without a chain or a wrapper"


def local_path(root: str, fs: Any = None, options: dict[str, Any] | None = None) -> str | None:
    """Return the path on this machine that a root names; None for a root elsewhere, or a chained URL.

    CallError `path_invalid` for an ambiguous spelling, `outside_root` for a path that leaves the directory of
    `fs`, `not_confined` for a local disk that is not fsspec's own.
    """
    if fs is not None:
        return _path_on(fs, root)
    if root.startswith(("file:", "local:")) and "://" not in root:
        raise CallError(
            "path_invalid",
            f"A root that begins with '{root.partition(':')[0]}:' needs '//' after it",
            hint="write file:///path, or ./file:name for a folder with that name",
        )
    if "://" not in root:
        return root
    return None if "::" in root else _url_path(root, options or {})


def refuse_local(fs: Any) -> None:
    """Raise CallError `not_confined` for a file system that is, or delegates to, the local disk."""
    if any(_reaches_disk(type(inner)) for inner in _delegates_of(fs, set())):
        raise _refused(type(fs))


def _url_path(url: str, options: dict[str, Any]) -> str | None:
    import fsspec
    from fsspec.implementations.local import LocalFileSystem

    from ringfence.toolkit.storage.local.fsspec_adapter import ConfinedFileSystem

    protocol, _, rest = url.partition("://")
    try:
        kind = ConfinedFileSystem if protocol == "ringfence" else fsspec.get_filesystem_class(protocol)
    except Exception:  # noqa: BLE001  opening the store reports an unknown or missing protocol
        return None  # unknown or not installed, which opening the store reports
    if kind is ConfinedFileSystem:
        return _confined_path(url, options)
    if kind is not LocalFileSystem:
        if _reaches_disk(kind):
            raise _refused(kind)
        return None
    if not rest:
        raise CallError(
            "path_invalid", f"The root {shown(url)} names no directory", hint="write file:///path"
        )
    # An alias of the class has another scheme, which the class itself does not remove.
    return str(LocalFileSystem._strip_protocol(f"file://{rest}"))  # noqa: SLF001  fsspec has no public method for a path


def _confined_path(url: str, options: dict[str, Any]) -> str:
    from ringfence.toolkit.storage.local.fsspec_adapter import ConfinedFileSystem

    arguments: dict[str, Any] = {"root": ".", **ConfinedFileSystem._get_kwargs_from_urls(url), **options}  # noqa: SLF001  fsspec has no public method for it
    base, inner = str(arguments["root"]), ConfinedFileSystem._strip_protocol(url)  # noqa: SLF001  fsspec has no public method for a path
    if not inner or not os.path.isdir(base):
        return base
    fs = ConfinedFileSystem(base)
    try:
        return fs.real_path(inner)
    finally:
        fs.close()


def _path_on(fs: Any, root: str) -> str | None:
    from fsspec.implementations.dirfs import DirFileSystem
    from fsspec.implementations.local import LocalFileSystem

    from ringfence.toolkit.storage.local.fsspec_adapter import ConfinedFileSystem

    if type(fs) is LocalFileSystem:
        return str(fs._strip_protocol(root))  # noqa: SLF001  fsspec has no public method for a path
    if type(fs) is ConfinedFileSystem:
        return fs.real_path(root)
    if type(fs) is not DirFileSystem:
        return None
    names = [name for name in root.split("/") if name not in ("", ".")]
    inner = _path_on(fs.fs, "/".join([str(fs.path or "").rstrip("/"), *names]))
    if inner is not None and ".." in names:
        raise CallError("outside_root", "The root leaves the directory of its file system", hint=_HINT)
    return inner


def _delegates_of(fs: Any, seen: set[int]) -> Iterator[Any]:
    """Yield a file system and all that it delegates to, but not the file of an archive."""
    if id(fs) in seen:
        return
    seen.add(id(fs))
    yield fs
    try:
        # Not `vars`, because a caching file system returns the attributes of the cached one.
        attributes = list(object.__getattribute__(fs, "__dict__").values())
    except AttributeError:
        # A file system of pyarrow has no `__dict__`.
        attributes = [getattr(fs, name, None) for name in ("base_fs", "handler", "fs")]
    for value in attributes:
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        for inner in values:
            if _is_file_system(type(inner)):
                yield from _delegates_of(inner, seen)


def _is_file_system(kind: type) -> bool:
    from fsspec import AbstractFileSystem

    return issubclass(kind, AbstractFileSystem) or kind.__module__ in ("pyarrow._fs", "pyarrow.fs")


def _reaches_disk(kind: type) -> bool:
    from fsspec.implementations.local import LocalFileSystem

    declared = getattr(kind, "protocol", ())
    protocols = (declared,) if isinstance(declared, str) else declared
    local = isinstance(protocols, tuple | list) and not _LOCAL_PROTOCOLS.isdisjoint(protocols)
    arrow = kind.__module__.startswith("pyarrow") and kind.__name__ == "LocalFileSystem"
    return arrow or issubclass(kind, LocalFileSystem) or local


def _refused(kind: type) -> CallError:
    message = f"The root reaches the local disk by {kind.__name__}, which cannot be confined"
    return CallError("not_confined", message, hint=_HINT)
