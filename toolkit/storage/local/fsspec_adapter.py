"""Confined local disk as an fsspec file system: `fsspec.filesystem("ringfence", root="project")`.

For code that needs a directory which no path can leave; it applies no policy and keeps no history. Methods
that are not defined here are not supported: a forgotten method fails instead of opening a raw path.
"""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec

from ringfence.policy.byte_names import to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Delete, Entry, Move, Stat
from ringfence.toolkit.storage.backend import FailedEntry
from ringfence.toolkit.storage.local.backend import Local
from ringfence.toolkit.storage.local.fsspec_copies import check_source, check_target, copies
from ringfence.toolkit.storage.local.opening import open_local

_OS_ERRORS = {
    "not_found": FileNotFoundError,
    "already_exists": FileExistsError,
    "is_directory": IsADirectoryError,
    "not_a_directory": NotADirectoryError,
    "permission_denied": PermissionError,
    "outside_root": PermissionError,
    "root_protected": PermissionError,
    "path_invalid": ValueError,
}


class ConfinedFileSystem(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """A directory of this machine. Paths are relative to it, with or without a leading slash.

    `ringfence:///srv/project` is the URL of a directory. With `auto_mkdir`, writing creates missing parents.
    `rm`, `cp` and `mv` of a tree check all of it before they change anything. Reading and writing follow
    links inside the root; removing and moving act on the link itself. Raises OSError as fsspec's other
    classes do.
    """

    protocol = "ringfence"
    root_marker = ""
    cachable = False  # a cached instance could have a replaced directory open

    def __init__(
        self, root: str = ".", durable: bool = True, auto_mkdir: bool = False, **options: Any
    ) -> None:
        super().__init__(**options)
        self.auto_mkdir = auto_mkdir
        try:
            self._local = open_local(root, durable=durable)
        except CallError as error:
            raise _os_error(error) from None

    def close(self) -> None:
        """Close the directory; the file system cannot be used afterwards."""
        self._local.close()

    def real_path(self, path: str) -> str:
        """Return where a path leads on this machine. CallError `outside_root` or `path_invalid`."""
        spot = self._local.resolve(paths.split(self._strip_protocol(path) or ".", ""), follow=True)
        self._local.release(spot)
        return str(Path(self._local.root, *paths.parts(to_disk(spot.path))))

    # ------------------------------------------------------------------ reading

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """Return type, size in bytes, mode, link text and modification time. FileNotFoundError."""
        with self._at(path, follow=False) as spot:
            found = self._local.stat(spot)
            if found is None:
                raise FileNotFoundError(path)
            return _row_of(spot.path, found)

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        """List a directory, or one file: dicts as from `info`, or names alone without `detail`."""
        with self._at(path) as spot:
            found = self._local.stat(spot)
            if found is None:
                raise FileNotFoundError(path)
            rows = [_row_of(spot.path, found)]
            if found.kind == DIRECTORY:
                with self._local.folder(spot) as folder:
                    rows = [_row_of(paths.child(spot.path, name), stat) for name, stat in folder.scan()]
        return rows if detail else [row["name"] for row in rows]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        """Return the bytes of a file from `start` to `end`. FileNotFoundError or IsADirectoryError."""
        with self._at(path) as spot:
            return self._local.read(spot)[start:end]

    def modified(self, path: str) -> datetime:
        """Return the modification time, in UTC. FileNotFoundError."""
        return datetime.fromtimestamp(self.info(path)["mtime"], UTC)

    def _open(self, path: str, mode: str = "rb", autocommit: bool = True, **_: Any) -> Any:
        if mode == "rb":
            return io.BytesIO(self.cat_file(path))
        if mode == "xb" and self.lexists(path):
            raise FileExistsError(path)
        if mode in ("wb", "xb"):
            return _Writer(self, path, "create" if mode == "xb" else "overwrite", autocommit)
        raise NotImplementedError(f"mode {mode!r}: a file is read or replaced whole")

    def lexists(self, path: str, **_: Any) -> bool:
        """Whether there is an entry, without following a link."""
        with self._at(path, follow=False) as spot:
            return self._local.stat(spot) is not None

    # ----------------------------------------------------------------- changing

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        """Write a file, completely or not at all.

        With mode `create`, FileExistsError if the name is taken.
        """
        if self.auto_mkdir:
            self._make_parents(path)
        with self._at(path) as spot:
            found = self._local.stat(spot)
            if self._local.missing(spot):
                raise FileNotFoundError(path)
            if found is None or mode == "create":
                self._local.create(spot, value, None, _temporary())
            elif found.kind == DIRECTORY:
                raise IsADirectoryError(path)
            elif not self._local.rights(spot, found)[1]:
                raise PermissionError(path)
            else:
                self._local.replace(spot, value, found, None, _temporary())

    def _make_parents(self, path: str) -> None:
        with self._at(path) as spot:
            missing = self._local.missing(spot)
        for each in missing:
            with self._at(each) as spot:
                self._local.make_directory(spot)

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        """Create a directory, with its parents if `create_parents`. FileExistsError."""
        if create_parents:
            self._make_parents(path)
        with self._at(path) as spot:
            if self._local.missing(spot):
                raise FileNotFoundError(path)
            self._local.make_directory(spot)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Create a directory and its parents. FileExistsError unless `exist_ok`."""
        try:
            self.mkdir(path)
        except FileExistsError:
            if not (exist_ok and self.isdir(path)):
                raise

    def rmdir(self, path: str) -> None:
        """Remove an empty directory. OSError if it is not empty."""
        with self._at(path, follow=False) as spot:
            self._refuse_root(spot.path)
            self._local.remove_directory(spot)

    def rm_file(self, path: str) -> None:
        """Remove a file or a link. FileNotFoundError or IsADirectoryError."""
        if self._deletion_of(path).stat.kind == DIRECTORY:
            raise IsADirectoryError(path)
        self.rm(path)

    def rm(self, path: str | list[str], recursive: bool = False, maxdepth: int | None = None) -> None:
        """Remove entries by their exact names, without patterns; all are checked before the first is removed.

        A tree is removed by one rename, so it is gone completely or not at all. OSError names what could not
        be removed after that; it is back under its own name.
        """
        if maxdepth is not None:
            raise NotImplementedError("a tree is removed whole, or not at all")
        deletions = [self._deletion_of(each) for each in ([path] if isinstance(path, str) else path)]
        for change in deletions:
            if change.stat.kind == DIRECTORY and not recursive:
                raise IsADirectoryError(change.path)
        for change in _outermost(deletions):
            with self._at(change.path, follow=False) as spot:
                steps = list(self._local.remove(spot, change, _temporary()))
            missed = [step for step in steps if isinstance(step, FailedEntry)]
            if missed:
                raise OSError(f"{missed[0].path}: {missed[0].why}")

    def _deletion_of(self, path: str) -> Delete:
        """Return the deletion of a path with everything below it; OSError if a part cannot be removed."""
        with self._at(path, follow=False) as spot:
            self._refuse_root(spot.path)
            found = self._local.stat(spot)
            if found is None:
                raise FileNotFoundError(path)
            return Delete(spot.path, found, tuple(self._below(spot, found)))

    def _below(self, spot: Any, found: Stat) -> Iterator[Entry]:
        """Return all entries below a directory, parents first; PermissionError if one cannot be removed."""
        if found.kind != DIRECTORY:
            return
        with self._local.folder(spot) as folder:
            rows = folder.scan()
            if rows and self._local.rights(spot, found) != (True, True):
                raise PermissionError(spot.path)
            for name, stat in rows:
                inner = folder.spot(name)
                yield Entry(paths.child(spot.path, name), stat)
                yield from self._below(inner, stat)

    def mv(self, path1: str, path2: str, **_: Any) -> None:
        """Rename a file, link or tree, into `path2` if that is a directory; never over an entry."""
        if self.isdir(path2) and self._strip_protocol(path1) != self._strip_protocol(path2):
            path2 = f"{path2.rstrip('/')}/{self._strip_protocol(path1).rpartition('/')[2]}"
        if self.auto_mkdir:
            self._make_parents(path2)
        with self._at(path1, follow=False) as source, self._at(path2, follow=False) as destination:
            self._refuse_root(source.path)
            self._refuse_root(destination.path)
            found = self._local.stat(source)
            if found is None or self._local.missing(destination):
                raise FileNotFoundError(path1)
            if source.path == destination.path:
                return
            over = self._local.stat(destination)
            if over is not None and DIRECTORY in (over.kind, found.kind):
                raise FileExistsError(path2)
            self._local.move(source, destination, Move(source.path, destination.path, found, over))

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        """Copy one file. FileNotFoundError or IsADirectoryError."""
        if self.isdir(path1):
            self.makedirs(path2, exist_ok=True)
        else:
            self.pipe_file(path2, self.cat_file(path1))

    def copy(
        self,
        path1: str | list[str],
        path2: str | list[str],
        recursive: bool = False,
        maxdepth: int | None = None,
        on_error: str | None = None,
        **_: Any,
    ) -> None:
        """Copy files, trees and patterns by fsspec's rules; all are checked before the first is written.

        An OSError that happens half-way has a note with the number of copied entries.
        """
        pairs = copies(self, path1, path2, recursive=recursive, maxdepth=maxdepth)
        if on_error == "ignore" or (on_error is None and recursive):
            pairs = [pair for pair in pairs if self.exists(pair[0])]
        made = {self._strip_protocol(target).rstrip("/") for source, target in pairs if self.isdir(source)}
        for source, target in pairs:
            with self._at(source) as spot:
                found = check_source(self._local, spot)
            with self._at(target) as spot:
                above = paths.parent(spot.path)
                check_target(self._local, spot, found, made | ({above} if self.auto_mkdir else set()))
        for n, (source, target) in enumerate(pairs):
            try:
                self.cp_file(source, target)
            except OSError as error:
                error.add_note(f"'{target}' was not copied: {n} of {len(pairs)} were, and are there")
                raise

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def get_file(self, *_: Any, **__: Any) -> None:
        """Raise NotImplementedError, as `put_file`, `get` and `put` do."""
        raise NotImplementedError("it would reach a raw path of this machine")

    put_file = get = put = get_file

    # ------------------------------------------------------------------- inside

    def _at(self, path: str, *, follow: bool = True) -> _ResolvedSpot:
        return _ResolvedSpot(self._local, self._strip_protocol(path), follow)

    def _refuse_root(self, path: str) -> None:
        if path == paths.ROOT:
            raise PermissionError("the root itself is not changed")

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        # A URL with an absolute path is that of a root; all other paths are relative to one.
        return "" if cls._root_of(path) else super()._strip_protocol(path).lstrip("/")

    @classmethod
    def _get_kwargs_from_urls(cls, path: str) -> dict[str, Any]:
        root = cls._root_of(path)
        return {"root": root} if root else {}

    @classmethod
    def _root_of(cls, path: Any) -> str:
        """Return the root that a URL names: `ringfence:///srv/project` is the directory `/srv/project`."""
        text = os.fspath(path)
        return text.removeprefix("ringfence://") if text.startswith("ringfence:///") else ""


class _ResolvedSpot:
    """Context manager that resolves a path to a spot, and translates CallError into the errors of `os`."""

    def __init__(self, local: Local, path: str, follow: bool) -> None:
        self._local = local
        self._path = path
        self._follow = follow
        self._spot: Any = None

    def __enter__(self) -> Any:
        try:
            self._spot = self._local.resolve(paths.split(self._path or ".", ""), follow=self._follow)
        except CallError as error:
            raise _os_error(error) from None
        return self._spot

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._local.release(self._spot)
        if isinstance(error, CallError):
            raise _os_error(error) from None


class _Writer(io.BytesIO):
    """Collects written bytes; closing without an error creates the complete file."""

    def __init__(self, fs: ConfinedFileSystem, path: str, mode: str, autocommit: bool = True) -> None:
        super().__init__()
        self._fs = fs
        self._path = path
        self._mode = mode
        self._autocommit = autocommit
        self._data = b""

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is not None:
            self._mode = ""
        self.close()

    def close(self) -> None:
        if not self.closed:
            self._data = self.getvalue()
            super().close()
            if self._autocommit:
                self.commit()

    def commit(self) -> None:
        """Move the file to its place; in a transaction of fsspec, at its end."""
        if self._mode:
            self._fs.pipe_file(self._path, self._data, mode=self._mode)

    def discard(self) -> None:
        self._mode = ""


def _outermost(deletions: list[Delete]) -> list[Delete]:
    """Return the deletions, each once, without those of entries below another one."""
    found = {change.path: change for change in deletions}
    trees = [change.path for change in found.values() if change.stat.kind == DIRECTORY]
    return [change for path, change in found.items() if not any(paths.is_below(path, tree) for tree in trees)]


def _row_of(path: str, stat: Stat) -> dict[str, Any]:
    return {
        "name": "" if path == paths.ROOT else path,
        "type": stat.kind,
        "size": stat.size,
        "mtime": stat.modified,
        "mode": stat.mode,
        "nlink": stat.links,
        "islink": stat.target is not None,
        "destination": stat.target,
        "identity": stat.identity,
    }


def _os_error(error: CallError) -> Exception:
    return _OS_ERRORS.get(error.code, OSError)(error.message)


def _temporary() -> str:
    return f".ringfence-{secrets.token_hex(8)}"
