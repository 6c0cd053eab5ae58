"""Abilities of an fsspec file system as far as its class tells: its kind, its traits, the one below it.

Looks at the object alone and asks the store nothing. Promises nothing for a class that is not known.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.storage.backend import BACKENDS, CONSERVATIVE, Traits

_REMOVING = ("rm", "rm_file", "_rm", "_rm_file")
# These have methods that change, and are no workspace to change things in: what is put into references is
# forgotten with the process, and GitHub's files can be removed and not written.
_ONLY_READ = {"reference", "github"}
_BELOW = ("fs", "sync_fs")  # what wrappers call the file system that they pass calls on to


def kind_of(fs: Any) -> str:
    """The row of BACKENDS whose promises hold for a file system; empty where none does.

    By more than the protocol's name, which classes of others take as well.
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
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)


def traits_of(fs: Any) -> Traits:
    """What a file system promises."""
    return replace(BACKENDS.get(kind_of(fs), CONSERVATIVE), read_only=is_read_only(fs))


def is_read_only(fs: Any) -> bool:
    """Whether nothing in a file system can be changed: opened so, or of a class that cannot remove a file."""
    inner = _inner(fs)
    if inner is not None:
        return is_read_only(inner)
    told = any(getattr(fs, name, False) is True for name in ("read_only", "readonly"))
    if told or getattr(fs, "access", None) == "read_only" or _ONLY_READ & set(protocols_of(fs)):
        return True
    return not any(_has_own(type(fs), name) for name in _REMOVING)


def takes_create(fs: Any) -> bool:
    """Whether `pipe_file` knows `mode="create"`; one that takes whatever it is given may not look at it."""
    inner = _inner(fs)
    if inner is not None:
        return takes_create(inner)
    return "mode" in inspect.signature(fs.pipe_file).parameters


def unwrapped(fs: Any, root: str) -> tuple[Any, str]:
    """The store below caches and directories of fsspec, and the path on it.

    A cache answers with what was there before, and takes a write for made that the store did not keep.
    Raises CallError `outside_root` for a path that leaves its directory, `io_error` for an archive that is
    open for writing, which cannot be read meanwhile.
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


def _inner(fs: Any) -> Any:
    from fsspec import AbstractFileSystem

    found = (getattr(fs, name, None) for name in _BELOW)
    return next((one for one in found if isinstance(one, AbstractFileSystem)), None)


def _has_own(kind: type, method: str) -> bool:
    """Whether a class has a method that is more than fsspec's own, which only fails or passes calls on."""
    from fsspec import AbstractFileSystem
    from fsspec.asyn import AsyncFileSystem

    owner = next((base for base in kind.__mro__ if method in vars(base)), None)
    return owner not in (None, AbstractFileSystem, AsyncFileSystem)
