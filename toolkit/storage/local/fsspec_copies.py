"""Files that a copy on the confined disk would write, by fsspec's own rules, and whether each can be written.

Reads only: the calling file system copies, or refuses the whole copy.
"""

from __future__ import annotations

from typing import Any

import fsspec

from ringfence.toolkit import paths
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, Stat
from ringfence.toolkit.storage.local.backend import Local


def copies(
    fs: Any, path1: Any, path2: Any, *, recursive: bool, maxdepth: int | None
) -> list[tuple[str, str]]:
    """Return source and target of each entry that copying `path1` to `path2` would copy, parents first."""
    rules = _Rules(fs)
    rules.copy(path1, path2, recursive=recursive, maxdepth=maxdepth)
    return rules.pairs


def check_source(disk: Local, spot: Any) -> Stat:
    """Return the stat of the source. OSError where it cannot be read."""
    found = disk.stat(spot)
    if found is None:
        raise FileNotFoundError(spot.path)
    if found.kind not in (FILE, DIRECTORY):
        raise OSError(f"{spot.path}: neither a file nor a directory")
    if not disk.rights(spot, found)[0]:
        raise PermissionError(spot.path)
    return found


def check_target(disk: Local, spot: Any, source: Stat, made: set[str]) -> None:
    """Raise the OSError that writing `source` there would raise; `made` are directories created before."""
    there = disk.stat(spot)
    if there is None:
        _check_parents(disk, spot, made)
    elif (there.kind == DIRECTORY) != (source.kind == DIRECTORY):
        raise (IsADirectoryError if there.kind == DIRECTORY else NotADirectoryError)(spot.path)
    elif there.kind != DIRECTORY and not disk.rights(spot, there)[1]:
        raise PermissionError(spot.path)


def _check_parents(disk: Local, spot: Any, made: set[str]) -> None:
    missing = disk.missing(spot)
    if missing and missing[-1] not in made:
        raise FileNotFoundError(missing[-1])
    above = paths.parent(missing[0] if missing else spot.path)
    parent = disk.resolve(paths.parts(above), follow=True)
    try:
        found = disk.stat(parent)
        if found is not None and not disk.rights(parent, found)[1]:
            raise PermissionError(above)
    finally:
        disk.release(parent)


class _Rules(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Records what fsspec's own rules would copy where, and copies nothing."""

    cachable = False

    def __init__(self, fs: Any) -> None:
        super().__init__()
        self._fs = fs
        self.pairs: list[tuple[str, str]] = []

    def info(self, path: str, **options: Any) -> Any:
        return self._fs.info(path, **options)

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        return self._fs.ls(path, detail, **options)

    def expand_path(self, *given: Any, **options: Any) -> list[str]:
        # What the rules take for the last name of a path is what follows a slash.
        found = super().expand_path(*given, **options)
        return list(dict.fromkeys("/" + self._fs._strip_protocol(each) for each in found))  # noqa: SLF001  fsspec has no public method for a key

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        self.pairs.append((path1, path2))
