"""SFTP server as a read-only tree; links are resolved here, name by name, never by the server.

An opened file is compared with the entry that was judged.
"""

from __future__ import annotations

import stat as S
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from ringfence.policy.byte_names import from_disk, to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import StoragePlace
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, OTHER, Delete, Stat
from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.storage.backend import BACKENDS, is_link, path_changed
from ringfence.toolkit.storage.guarantees import MAX_FILE
from ringfence.toolkit.storage.sftp.connection import Connection, errors, read_ahead
from ringfence.toolkit.storage.sftp.metadata import fields_of
from ringfence.toolkit.storage.sftp.names import entries, from_server, real_path, to_server
from ringfence.toolkit.storage.store_base import StoreBase

_MAX_LINKS = 8
_MAX_READ = 32 << 10  # bytes in the reply to one READ
_KINDS = {S.S_IFREG: FILE, S.S_IFDIR: DIRECTORY, S.S_IFLNK: LINK}


@dataclass(frozen=True, slots=True)
class SftpSpot:
    """A canonical path; `rest` counts names below one that does not exist, or (`blocked`) is no directory."""

    path: str
    rest: int = 0
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class SftpFolder:
    """A directory of the server; after a scan `left_out` holds names that no path can contain."""

    tree: SftpView
    path: str
    left_out: list[str] = field(default_factory=list)

    def scan(self) -> list[tuple[str, Stat]]:
        found, self.left_out[:] = self.tree.children(self.path)
        return found

    def spot(self, name: str) -> SftpSpot:
        return SftpSpot(paths.child(self.path, name))


class SftpView(StoreBase):
    """The tree below `root` on a server, read-only."""

    traits = BACKENDS["sftp"]
    fold = False

    def __init__(self, connection: Connection, root: str, server: StoragePlace) -> None:
        self._connection = connection
        try:
            self.root = connection.read(lambda client: real_path(client, root)).rstrip("/")
            found = S.S_ISDIR(connection.read(lambda client: client.stat(self._absolute(paths.ROOT))).st_mode)
        except OSError:
            connection.close()
            raise CallError("not_found", "The project root does not exist on the server") from None
        if not found:
            connection.close()
            raise CallError("not_a_directory", "The project root is not a directory on the server")
        text = from_disk(self.root)
        former = f"{server.former}{text}" if server.former else ""
        self.place = replace(server, path=text, former=former)

    def close(self) -> None:
        self._connection.close()

    # ------------------------------------------------------------------ reading

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> SftpSpot:
        reached: list[str] = []
        left = list(names)
        links = 0
        while left:
            name = left.pop(0)
            if name == "..":
                if not reached:
                    raise paths.outside()
                reached.pop()
                continue
            path = paths.join([*reached, name])
            found = self._lookup(path) if left or follow else None
            if found is not None and found.kind == LINK:
                links += 1
                left = [*_link_names(found, names, links), *left]
                continue
            reached.append(name)
            if left and (found is None or found.kind != DIRECTORY):
                if ".." in left:
                    raise CallError("not_found", "A directory in the path does not exist")
                return SftpSpot(paths.join([*reached, *left]), len(left), found is not None)
        return SftpSpot(paths.join(reached))

    def is_link(self, names: tuple[str, ...]) -> bool:
        return is_link(self, names)

    def release(self, spot: SftpSpot) -> None:
        """Do nothing: no handle is open."""

    def stat(self, spot: SftpSpot) -> Stat | None:
        return None if spot.rest else self._lookup(spot.path)

    def read(self, spot: SftpSpot, limit: int | None = None, judged: Stat | None = None) -> bytes:
        found = self.stat(spot)
        if found is None:
            raise CallError("not_found", f"'{spot.path}' does not exist", where=spot.path)
        if found.kind == DIRECTORY:
            raise CallError("is_directory", f"'{spot.path}' is a directory", where=spot.path)
        if found.kind != FILE:
            raise CallError("not_regular_file", f"'{spot.path}' is not a regular file", where=spot.path)
        if judged is not None and not is_same(judged, found):
            raise path_changed(spot.path)
        max_bytes, data = MAX_FILE if limit is None else limit, b""
        if (found.size or 0) <= max_bytes:
            with errors(spot.path):
                data = self._connection.read(
                    lambda client: self._content(client, spot.path, found, max_bytes)
                )
        if (found.size or 0) > max_bytes or len(data) > max_bytes:
            raise CallError("too_large", f"'{spot.path}' is larger than {max_bytes} bytes", where=spot.path)
        return data

    def _content(self, client: Any, path: str, found: Stat, max_bytes: int) -> bytes:
        with client.open(self._absolute(path), "rb") as file:
            # The name may lead to another file by now, so the open file is compared with the judged entry.
            if not is_same(found, self._stat(path, file.stat())):
                raise path_changed(path)
            if found.size is not None and found.size > _MAX_READ:
                read_ahead(file, found.size)
            return bytes(file.read(max_bytes + 1))  # a server may send more bytes than the size it reported

    def metadata(self, spot: SftpSpot, stat: Stat, *, copied: bool = False) -> Metadata | None:
        """Return owner, group and times; a copy takes none of them along."""
        return None if copied else self._judged_fields(spot.path, stat)

    def chunks(self, spot: SftpSpot, judged: Stat | None = None) -> Iterator[bytes]:
        yield self.read(spot)

    @contextmanager
    def folder(self, spot: SftpSpot) -> Iterator[SftpFolder]:
        yield SftpFolder(self, spot.path)

    def children(self, path: str) -> tuple[list[tuple[str, Stat]], list[str]]:
        """Return the entries of a directory by name, and names that occur twice or that no path can have."""
        found: dict[str, Stat] = {}
        left_out: list[str] = []
        with errors(path):
            for row in self._connection.read(lambda client: entries(client, self._absolute(path))):
                if row.filename in found or not _is_name(row.filename):
                    left_out.append(row.filename)
                    continue
                below = paths.child(path, row.filename)
                found[row.filename] = self._stat(
                    below, row if row.st_mode is not None else self._lstat(below)
                )
        return sorted(found.items(), key=lambda row: row[0]), left_out

    def rights(self, spot: SftpSpot, stat: Stat) -> tuple[bool, bool]:
        mode = stat.mode or 0
        return bool(mode & 0o444), bool(mode & 0o222)

    def changeable(self, spot: SftpSpot, *, leaves: bool) -> bool:
        return True  # only an attempt shows it

    def missing(self, spot: SftpSpot) -> tuple[str, ...]:
        names = paths.parts(spot.path)
        first = len(names) - spot.rest
        if spot.blocked:
            path = paths.join(names[:first])
            raise CallError("not_a_directory", f"'{path}' is not a directory", where=path)
        return tuple(paths.join(names[:n]) for n in range(first, len(names)))

    def check(self, spot: SftpSpot) -> None:
        """Raise CallError `path_changed` if a parent is a link now; it can still become one after this."""
        names = paths.parts(spot.path)[:-1]
        if self.resolve(names, follow=True).path != paths.join(names):
            raise path_changed(spot.path)

    # ------------------------------------------------------------------- inside

    def _absolute(self, path: str) -> bytes:
        return to_server((self.root or "/") if path == paths.ROOT else f"{self.root}/{to_disk(path)}")

    def _lookup(self, path: str) -> Stat | None:
        with errors(path):
            try:
                return self._stat(path, self._lstat(path))
            except FileNotFoundError:
                return None

    def _lstat(self, path: str) -> Any:
        return self._connection.read(lambda client: client.lstat(self._absolute(path)))

    def _stat(self, path: str, row: Any) -> Stat:
        # An entry whose kind the server does not report is never opened.
        kind = OTHER if row.st_mode is None else _KINDS.get(S.S_IFMT(row.st_mode), OTHER)
        return Stat(
            kind=kind,
            size=row.st_size,
            modified=row.st_mtime,
            accessed=row.st_atime,
            mode=None if row.st_mode is None else S.S_IMODE(row.st_mode),
            target=self._target(path) if kind == LINK else None,
            identity=f"{row.st_mtime}:{row.st_size}:{row.st_mode}",
        )

    def _target(self, path: str) -> str | None:
        found = self._connection.read(lambda client: client.readlink(self._absolute(path)))
        return None if found is None else from_server(found)

    def _judged_fields(self, path: str, judged: Stat) -> Metadata:
        """Return the metadata of the judged entry."""
        with errors(path):
            row = self._lstat(path)
            if not is_same(judged, self._stat(path, row)):
                raise path_changed(path)
        return fields_of(row)

    def _check_same(self, path: str, judged: Stat) -> None:
        now = self._lookup(path)
        if now is None or not is_same(judged, now):
            raise path_changed(path)

    def _differs(self, quarantined: str, change: Delete) -> bool:
        now = self._lookup(quarantined)
        if now is None or not is_same(change.stat, now):
            return True
        found = dict(self._walk(quarantined)) if now.kind == DIRECTORY else {}
        judged = {entry.path[len(change.path) :]: entry.stat for entry in change.entries}
        return found.keys() != judged.keys() or any(not is_same(judged[key], found[key]) for key in found)

    def _walk(self, path: str, prefix: str = "") -> Iterator[tuple[str, Stat]]:
        for name, stat in self.children(path)[0]:
            yield f"{prefix}/{name}", stat
            if stat.kind == DIRECTORY:
                yield from self._walk(paths.child(path, name), f"{prefix}/{name}")


def _link_names(link: Stat, names: tuple[str, ...], count: int) -> list[str]:
    if ".." in names:
        raise CallError("path_invalid", "The path goes up ('..') and through a link, which is ambiguous")
    if count > _MAX_LINKS:
        raise CallError("path_invalid", "The path goes through too many links")
    target = link.target or ""
    if target.startswith("/"):
        raise paths.outside()
    return [part for part in target.split("/") if part not in ("", ".")]


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and not set("/\0") & set(name)


def is_same(judged: Stat, now: Stat) -> bool:
    """Whether the entry is still the judged version."""
    if judged.kind != now.kind:
        return False
    return judged.kind == DIRECTORY or (judged.target, judged.identity) == (now.target, now.identity)
