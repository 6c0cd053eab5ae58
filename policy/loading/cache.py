"""Policy cache: stores loaded policies as plain data, so that a start need not parse their YAML again.

An entry is used only if every source has the same bytes as before, the same program wrote the entry, and
nobody else can have written it; otherwise the sources are loaded. The cache never makes a load fail.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ringfence.policy.loading.loaded import Loaded
from ringfence.policy.loading.serialize import MISTAKES, from_plain, to_plain

if TYPE_CHECKING:
    from hashlib import sha256
    from pathlib import Path
else:
    # The interpreter's built-in SHA-256: importing hashlib loads OpenSSL, which takes longer than the rest.
    for name in ("_sha2", "_sha256", "hashlib"):
        with suppress(ImportError, AttributeError):
            sha256 = import_module(name).sha256
            break

_JUDGE = os.path.dirname(os.path.dirname(__file__))
VARIABLE = "RINGFENCE_CACHE"  # "off", or a directory
_FORMAT = 6
_MAX_SOURCE = 1024 * 1024
_MAX_BYTES = 64 * 1024 * 1024
_MOST = 256  # entries; beyond that the oldest half is removed
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def folder() -> str | None:
    """Return the cache directory, or None without a cache: switched off, or no file owners to check."""
    named = os.environ.get(VARIABLE, "")
    if named == "off" or not hasattr(os, "geteuid"):
        return None
    if named:
        return named if os.path.isabs(named) else None
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        home = os.path.expanduser("~")
        base = (
            os.path.join(home, "Library", "Caches")
            if sys.platform == "darwin"
            else os.path.join(home, ".cache")
        )
    return os.path.join(base, "ringfence", "policies") if os.path.isabs(base) else None


def load(path: str | Path) -> Loaded:
    """Return the policy of a file, from its cache entry if the entry can be trusted."""
    place = folder()
    program = _program() if place else None
    name = sha256(
        f"{program}\n{os.path.join(os.getcwd(), path)}".encode("utf-8", "surrogateescape")
    ).hexdigest()
    if place is not None and program is not None:
        found = _read(place, name, program)
        if found is not None:
            return found
    from ringfence.policy.loading.loader import load as read

    loaded = read(path)
    if place is None or program is None:
        return loaded
    body = {
        "program": program,
        "revision": loaded.revision,
        "sources": [(source, os.path.realpath(source)) for source in loaded.sources],
        "files": loaded.files,
        "content": to_plain(loaded.content),
    }
    _write(place, name, json.dumps(body, separators=(",", ":")).encode())
    return loaded


def _program() -> str | None:
    """Return a digest of the names, sizes and times of this program's files; None if unreadable."""
    try:
        found = list(_files(_JUDGE))
    except OSError:
        return None
    files = sorted((name, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for name, each in found)
    return sha256(repr((_FORMAT, _JUDGE, files)).encode()).hexdigest()


def _files(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path, entry.stat()
            elif entry.is_dir(follow_symlinks=False) and entry.name != "__pycache__":
                yield from _files(entry.path)


def _read(place: str, name: str, program: str) -> Loaded | None:
    try:
        with _own(place) as at:
            data = _bytes(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at))
        digest, _, text = data.partition(b"\n")
        if sha256(text).hexdigest().encode() != digest:
            return None
        body: dict[str, Any] = json.loads(text)
        if body["program"] != program or _revision(body["sources"]) != body["revision"]:
            return None
        sources = tuple(source for source, _ in body["sources"])
        return Loaded(from_plain(body["content"]), body["revision"], tuple(body["files"]), sources)
    except (OSError, RecursionError, *MISTAKES):
        return None


def _revision(sources: list[tuple[str, str]]) -> str:
    """Return the current revision of the sources; ValueError if one of them is another file now."""
    digest = sha256()
    for path, real in sources:
        if os.path.realpath(path) != real:
            raise ValueError(path)
        with open(path, "rb") as file:
            data = file.read(_MAX_SOURCE + 1)
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


@contextmanager
def _own(place: str) -> Iterator[int]:
    """Open the cache directory; PermissionError if anybody else could have written to it."""
    at = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _check(os.fstat(at), stat.S_ISDIR)
        yield at
    finally:
        os.close(at)


def _check(found: os.stat_result, is_kind: Any) -> None:
    if not is_kind(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS_WRITE:
        raise PermissionError("others can write what is kept")


def _bytes(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        _check(os.fstat(descriptor), stat.S_ISREG)
        return file.read(_MAX_BYTES)


def _write(place: str, name: str, text: bytes) -> None:
    """Write a cache entry by atomic rename; two processes with the same policy write the same bytes."""
    temporary = f"{name}.{os.getpid()}-{os.urandom(4).hex()}"
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with _made(place) as at:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            try:
                with os.fdopen(os.open(temporary, flags, 0o600, dir_fd=at), "wb") as file:
                    file.write(sha256(text).hexdigest().encode() + b"\n" + text)
                os.replace(temporary, name, src_dir_fd=at, dst_dir_fd=at)
            except OSError:
                os.unlink(temporary, dir_fd=at)
            _prune(at)
    except OSError:
        return


@contextmanager
def _made(place: str) -> Iterator[int]:
    with suppress(FileExistsError):
        os.mkdir(place, 0o700)
    with _own(place) as at:
        yield at


def _prune(at: int) -> None:
    """Remove the oldest entries, and temporary files of killed processes."""
    names = os.listdir(at)
    if len(names) > _MOST:
        ages = sorted((os.stat(name, dir_fd=at, follow_symlinks=False).st_mtime_ns, name) for name in names)
        for _, name in ages[: len(ages) - _MOST // 2]:
            os.unlink(name, dir_fd=at)
