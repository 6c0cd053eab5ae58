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

# Protocols of classes that are this machine's disk, or that open whatever their paths name.
_REACHING = {"file", "local", "asynclocal", "ringfence", "generic", "dask"}
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
    return None if "::" in root else _path_of_url(root, options or {})


def refuse_local(fs: Any) -> None:
    """Raise CallError `not_confined` for a file system that is, or delegates to, the local disk."""
    if any(_reaches(type(inner)) for inner in _within(fs, set())):
        raise _refused(type(fs))


def _path_of_url(url: str, options: dict[str, Any]) -> str | None:
    import fsspec
    from fsspec.implementations.local import LocalFileSystem

    from ringfence.toolkit.storage.local.fsspec_adapter import ConfinedFileSystem

    protocol, _, rest = url.partition("://")
    try:
        kind = ConfinedFileSystem if protocol == "ringfence" else fsspec.get_filesystem_class(protocol)
    except Exception:  # noqa: BLE001  opening the store reports an unknown or missing protocol
        return None  # one that is not known or not installed: whoever opens the store says so
    if kind is ConfinedFileSystem:
        return _path_of_confined(url, options)
    if kind is not LocalFileSystem:
        if _reaches(kind):
            raise _refused(kind)
        return None
    if not rest:
        raise CallError(
            "path_invalid", f"The root {shown(url)} names no directory", hint="write file:///path"
        )
    # The class knows no other scheme than its own two, and aliases of it are no different.
    return str(LocalFileSystem._strip_protocol(f"file://{rest}"))  # noqa: SLF001  fsspec's own way to a path


def _path_of_confined(url: str, options: dict[str, Any]) -> str:
    from ringfence.toolkit.storage.local.fsspec_adapter import ConfinedFileSystem

    named: dict[str, Any] = {"root": ".", **ConfinedFileSystem._get_kwargs_from_urls(url), **options}  # noqa: SLF001  fsspec's own reading of a URL
    base, inner = str(named["root"]), ConfinedFileSystem._strip_protocol(url)  # noqa: SLF001  fsspec's own way to a path
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
        return str(fs._strip_protocol(root))  # noqa: SLF001  fsspec's own way to a path
    if type(fs) is ConfinedFileSystem:
        return fs.real_path(root)
    if type(fs) is not DirFileSystem:
        return None
    names = [name for name in root.split("/") if name not in ("", ".")]
    inner = _path_on(fs.fs, "/".join([str(fs.path or "").rstrip("/"), *names]))
    if inner is not None and ".." in names:
        raise CallError("outside_root", "The root leaves the directory of its file system", hint=_HINT)
    return inner


def _within(fs: Any, seen: set[int]) -> Iterator[Any]:
    """Yield a file system and all that it delegates to; the file of an archive is not among them."""
    if id(fs) in seen:
        return
    seen.add(id(fs))
    yield fs
    try:
        # Not `vars`: a cache answers that with the attributes of what it caches.
        held = list(object.__getattribute__(fs, "__dict__").values())
    except AttributeError:
        held = [getattr(fs, name, None) for name in ("base_fs", "handler", "fs")]  # pyarrow's have none
    for value in held:
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        for one in values:
            if _is_file_system(type(one)):
                yield from _within(one, seen)


def _is_file_system(kind: type) -> bool:
    from fsspec import AbstractFileSystem

    return issubclass(kind, AbstractFileSystem) or kind.__module__ in ("pyarrow._fs", "pyarrow.fs")


def _reaches(kind: type) -> bool:
    from fsspec.implementations.local import LocalFileSystem

    named = getattr(kind, "protocol", ())
    protocols = (
        {named} if isinstance(named, str) else set(named) if isinstance(named, tuple | list) else set()
    )
    arrow = kind.__module__.startswith("pyarrow") and kind.__name__ == "LocalFileSystem"
    return arrow or issubclass(kind, LocalFileSystem) or bool(protocols & _REACHING)


def _refused(kind: type) -> CallError:
    message = f"The root reaches the local disk by {kind.__name__}, which cannot be confined"
    return CallError("not_confined", message, hint=_HINT)
