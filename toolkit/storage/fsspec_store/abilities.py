"""Abilities of an fsspec file system by its class: its kind, its guarantees, and the file system it wraps.

Examines the object alone and sends no request. An unknown class gets no guarantees.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.storage.backend import BACKENDS, CONSERVATIVE, Traits

_REMOVE_METHODS = ("rm", "rm_file", "_rm", "_rm_file")
# Protocols that are read-only here although their classes have methods that change: written references are
# lost with the process, and GitHub's files can be removed but not written.
_READ_ONLY = {"reference", "github"}
_WRAPPED = ("fs", "sync_fs")  # attributes in which wrappers keep the wrapped file system


def kind_of(fs: Any) -> str:
    """Return the row of BACKENDS that applies to a file system; empty if none does.

    The protocol's name is not enough, because other libraries' classes use the same names.
    """
    from fsspec.implementations.memory import MemoryFileSystem

    protocols = protocols_of(fs)
    if "s3" in protocols and hasattr(fs, "call_s3"):
        return "s3"
    if "sftp" in protocols and hasattr(fs, "ftp"):
        return "sftp"
    if "az" in protocols and hasattr(fs, "service_client"):
        return "abfs"
    return "memory" if "memory" in protocols and isinstance(fs, MemoryFileSystem) else ""


def protocols_of(fs: Any) -> tuple[str, ...]:
    """Return the protocol names of a file system."""
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def traits_of(fs: Any) -> Traits:
    """Return the guarantees of a file system."""
    return replace(BACKENDS.get(kind_of(fs), CONSERVATIVE), read_only=is_read_only(fs))


def is_read_only(fs: Any) -> bool:
    """Whether nothing in a file system can be changed: opened read-only, or its class cannot remove files."""
    inner = _wrapped(fs)
    if inner is not None:
        return is_read_only(inner)
    flagged = any(getattr(fs, name, False) is True for name in ("read_only", "readonly"))
    if flagged or getattr(fs, "access", None) == "read_only" or _READ_ONLY & set(protocols_of(fs)):
        return True
    return not any(_overrides(type(fs), name) for name in _REMOVE_METHODS)


def supports_create_mode(fs: Any) -> bool:
    """Whether `pipe_file` supports `mode="create"`; a class that accepts any argument may ignore it."""
    inner = _wrapped(fs)
    if inner is not None:
        return supports_create_mode(inner)
    return "mode" in inspect.signature(fs.pipe_file).parameters


def unwrapped(fs: Any, root: str) -> tuple[Any, str]:
    """Return the store below fsspec's caches and directory wrappers, and the path on it.

    A cache returns old content, and reports a write as made that the store did not keep. CallError
    `outside_root` for a path that leaves its directory, `io_error` for an archive that is open for writing
    and cannot be read.
    """
    from fsspec.archive import AbstractArchiveFileSystem
    from fsspec.implementations.cached import CachingFileSystem
    from fsspec.implementations.dirfs import DirFileSystem

    while True:
        if isinstance(fs, CachingFileSystem):
            fs = fs.fs
        elif type(fs) is DirFileSystem:
            names = [name for name in root.split("/") if name not in ("", ".")]
            if ".." in names:
                raise CallError("outside_root", "The root leaves the directory of its file system")
            fs, root = fs.fs, "/".join([str(fs.path or "").rstrip("/"), *names])
        else:
            break
    if isinstance(fs, AbstractArchiveFileSystem) and getattr(fs, "mode", "r") != "r":
        message = "The archive is open for writing, and cannot be read meanwhile"
        raise CallError("io_error", message, hint="open it for reading; what is in it cannot be changed then")
    return fs, root


def _wrapped(fs: Any) -> Any:
    from fsspec import AbstractFileSystem

    found = (getattr(fs, name, None) for name in _WRAPPED)
    return next((one for one in found if isinstance(one, AbstractFileSystem)), None)


def _overrides(kind: type, method: str) -> bool:
    """Whether a class overrides fsspec's own method, which only fails or delegates."""
    from fsspec import AbstractFileSystem
    from fsspec.asyn import AsyncFileSystem

    owner = next((base for base in kind.__mro__ if method in vars(base)), None)
    return owner not in (None, AbstractFileSystem, AsyncFileSystem)
