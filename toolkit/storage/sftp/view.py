"""SFTP server as a read-only tree; links are resolved here, name by name, never by the server.

An opened file is compared with the entry that was judged.
"""

from __future__ import annotations

import errno
import stat as S
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any

from ringfence.policy.byte_names import from_disk, to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import StoragePlace
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, OTHER, Delete, Entry, Stat
from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.storage.backend import BACKENDS, is_link, path_changed
from ringfence.toolkit.storage.guarantees import MAX_FILE
from ringfence.toolkit.storage.read_ahead import FileRead
from ringfence.toolkit.storage.sftp.connection import Connection, errors
from ringfence.toolkit.storage.sftp.metadata import fields_of
from ringfence.toolkit.storage.sftp.names import from_server, real_path, to_server
from ringfence.toolkit.storage.sftp.requests import (
    Request,
    attributes,
    close,
    content,
    contents,
    entries,
    is_directory,
    is_link_row,
    lstats,
    open_to_read,
    together,
    value,
)
from ringfence.toolkit.storage.sftp.spots import Seen, SftpSpot, is_name, is_same, link_names
from ringfence.toolkit.storage.store_base import StoreBase

_KINDS = {S.S_IFREG: FILE, S.S_IFDIR: DIRECTORY, S.S_IFLNK: LINK}


@dataclass(frozen=True, slots=True)
class SftpFolder:
    """A directory of the server; after a scan `left_out` holds names that no path can contain."""

    tree: SftpView
    path: str
    left_out: list[str] = field(default_factory=list)
    seen: dict[str, Seen] = field(default_factory=dict)

    def scan(self) -> list[tuple[str, Stat]]:
        found, self.left_out[:] = self.tree.children(self.path)
        self.seen.clear()
        self.seen.update(found)
        return [(name, seen.stat) for name, seen in found if seen.stat is not None]

    def spot(self, name: str) -> SftpSpot:
        return SftpSpot(paths.child(self.path, name), seen=self.seen.get(name))


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
        ahead: dict[str, Any] = {}  # replies about names that come next, unless a link leads elsewhere
        while left:
            name = left.pop(0)
            if name == "..":
                if not reached:
                    raise paths.outside()
                reached.pop()
                continue
            path = paths.join([*reached, name])
            if path not in ahead:
                ahead = self._look_ahead(reached, [name, *left])
            seen = self._seen(path, ahead[path])
            found = seen.stat
            if found is not None and found.kind == LINK and (left or follow):
                links += 1
                left = [*link_names(found, names, links), *left]
                ahead = {}  # of names below a link, the server has answered about what it leads to
                continue
            reached.append(name)
            if left and (found is None or found.kind != DIRECTORY):
                if ".." in left:
                    raise CallError("not_found", "A directory in the path does not exist")
                return SftpSpot(paths.join([*reached, *left]), len(left), found is not None)
            if not left:
                return SftpSpot(path, seen=seen)
        return SftpSpot(paths.join(reached))

    def _look_ahead(self, reached: list[str], left: list[str]) -> dict[str, Any]:
        """Return the replies about all names that a path leads through, from one round trip."""
        above, found = list(reached), []
        for name in left:
            if name != "..":
                above.append(name)
                found.append(paths.join(above))
            elif above:
                above.pop()
        with errors(paths.join(above)):
            replies = self._ask(lstats([*map(self._absolute, found)]))
        return dict(zip(found, replies, strict=True))

    def is_link(self, names: tuple[str, ...]) -> bool:
        return is_link(self, names)

    def release(self, spot: SftpSpot) -> None:
        """Do nothing: no handle is open."""

    def stat(self, spot: SftpSpot) -> Stat | None:
        if spot.rest:
            return None
        seen = None if spot.was_asked else self._fresh(spot)
        spot.was_asked = True
        return (seen or self._look(spot)).stat

    def read(self, spot: SftpSpot, limit: int | None = None, judged: Stat | None = None) -> bytes:
        """Return the content of a file that was looked at before it is opened, and that is still the same."""
        if judged is not None or self._fresh(spot) is None:
            return self._read(spot, limit, judged)
        try:
            return self._read(spot, limit, None)
        except CallError as error:
            if error.code != "path_changed":
                raise
            spot.seen = None  # it is another file by now, and nothing was judged by what it was
            return self._read(spot, limit, None)

    def _read(self, spot: SftpSpot, limit: int | None, judged: Stat | None) -> bytes:
        path = spot.path
        found = (self._fresh(spot) or self._look(spot)).stat
        if found is None:
            raise CallError("not_found", f"'{path}' does not exist", where=path)
        if found.kind == DIRECTORY:
            raise CallError("is_directory", f"'{path}' is a directory", where=path)
        if found.kind != FILE:
            raise CallError("not_regular_file", f"'{path}' is not a regular file", where=path)
        if judged is not None and not is_same(judged, found):
            raise path_changed(path)
        max_bytes, data = MAX_FILE if limit is None else limit, b""
        if (found.size or 0) <= max_bytes:
            with errors(path):
                data = self._connection.read(lambda client: self._content(client, path, found, max_bytes))
        if (found.size or 0) > max_bytes or len(data) > max_bytes:
            raise CallError("too_large", f"'{path}' is larger than {max_bytes} bytes", where=path)
        return data

    def _content(self, client: Any, path: str, found: Stat, max_bytes: int) -> bytes:
        [opened] = together(client, [open_to_read(self._absolute(path))])
        handle = value(opened, bytes)
        try:
            row, data, _ = content(client, handle, found.size, max_bytes)
        finally:
            close(client, handle)
        # The name may lead to another file by now, so the open file is compared with the one looked at.
        now = self._seen(path, row).stat
        if now is None or not is_same(found, now):
            raise path_changed(path)
        if len(data) < min(found.size or 0, max_bytes):
            raise OSError(errno.EIO, "the server did not send all of the file")
        return data

    def _fresh(self, spot: SftpSpot) -> Seen | None:
        """Return what was seen at the spot a moment ago, if this session has changed nothing since."""
        seen = spot.seen
        return seen if seen is not None and seen.is_fresh(self._connection.changes) else None

    def _look(self, spot: SftpSpot) -> Seen:
        """Look at an entry now."""
        if spot.rest:
            return self._seen(spot.path, FileNotFoundError())
        with errors(spot.path):
            [reply] = self._ask(lstats([self._absolute(spot.path)]))
        spot.seen = self._seen(spot.path, reply)
        return spot.seen

    def read_together(self, entries: Sequence[Entry], limit: int) -> list[FileRead | None]:
        """Return files in their judged versions, with three round trips for all; None for each other one."""
        with errors(entries[0].path):
            return self._connection.read(lambda client: self._read_files(client, entries, limit))

    def _read_files(self, client: Any, entries: Sequence[Entry], limit: int) -> list[FileRead | None]:
        ways = {entry.path: self._way_to(entry.path) for entry in entries}
        looks = dict.fromkeys(chain(*ways.values(), lstats([self._absolute(e.path) for e in entries])))
        seen = dict(zip(looks, together(client, list(looks)), strict=True))
        usual = [
            entry
            for entry in entries
            if entry.stat.kind == FILE
            and (entry.stat.size or 0) <= limit
            and all(is_directory(seen[look]) for look in ways[entry.path])
            and self._is_judged(entry, seen[lstats([self._absolute(entry.path)])[0]])
        ]
        opened = together(client, [open_to_read(self._absolute(entry.path)) for entry in usual])
        files = [(e, handle) for e, handle in zip(usual, opened, strict=True) if isinstance(handle, bytes)]
        try:
            read = contents(client, [(handle, entry.stat.size or 0) for entry, handle in files])
        finally:
            for _, handle in files:
                close(client, handle)
        found = {
            entry.path: FileRead(data, fields_of(row))
            for (entry, _), (row, data) in zip(files, read, strict=True)
            if data is not None and self._is_judged(entry, row)
        }
        return [found.get(entry.path) for entry in entries]

    def _is_judged(self, entry: Entry, reply: Any) -> bool:
        row = None if isinstance(reply, Exception) else attributes(reply)
        return row is not None and not is_link_row(row) and is_same(entry.stat, self._stat(entry.path, row))

    def metadata(self, spot: SftpSpot, stat: Stat, *, copied: bool = False) -> Metadata | None:
        """Return owner, group and times; a copy takes none of them along."""
        if copied:
            return None
        seen = self._fresh(spot) or self._look(spot)
        if seen.stat is None or not is_same(stat, seen.stat):
            raise path_changed(spot.path)
        return fields_of(seen.row)

    def chunks(self, spot: SftpSpot, judged: Stat | None = None) -> Iterator[bytes]:
        yield self.read(spot)

    @contextmanager
    def folder(self, spot: SftpSpot) -> Iterator[SftpFolder]:
        yield SftpFolder(self, spot.path)

    def children(self, path: str) -> tuple[list[tuple[str, Seen]], list[str]]:
        """Return the entries of a directory by name, and names that occur twice or that no path can have."""
        found: dict[str, Seen] = {}
        left_out: list[str] = []
        with errors(path):
            for row in self._connection.read(lambda client: entries(client, self._absolute(path))):
                if row.filename in found or not is_name(row.filename):
                    left_out.append(row.filename)
                    continue
                below = paths.child(path, row.filename)
                reply = row if row.st_mode is not None else self._lstat(below)
                found[row.filename] = self._seen(below, reply)
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
        """Do nothing: every change looks at the parents itself, in the round trip before it."""

    # ------------------------------------------------------------------- inside

    def _absolute(self, path: str) -> bytes:
        return to_server((self.root or "/") if path == paths.ROOT else f"{self.root}/{to_disk(path)}")

    def _ask(self, requests: Sequence[Request]) -> list[Any]:
        """Return the replies to requests that change nothing, from one round trip."""
        return self._connection.read(lambda client: together(client, requests))

    def _seen(self, path: str, reply: Any) -> Seen:
        with errors(path):
            row = attributes(reply)
            found = None if row is None else self._stat(path, row)
        return Seen(found, row, self._connection.changes)

    def _lookup(self, path: str) -> Stat | None:
        [found] = self._look_at(path)
        return found

    def _lstat(self, path: str) -> Any:
        [reply] = self._ask(lstats([self._absolute(path)]))
        return value(reply, object)

    def _way_to(self, path: str) -> list[Request]:
        """Return the requests about the directories above a path."""
        names = paths.parts(path)
        return lstats([self._absolute(paths.join(names[:n])) for n in range(1, len(names))])

    def _check_way(self, path: str, replies: Sequence[Any]) -> None:
        """Raise CallError `path_changed` if a directory above is a link now; it can become one after this."""
        for reply in replies:
            row = attributes(reply) if not isinstance(reply, OSError) else None
            if row is not None and is_link_row(row):
                raise path_changed(path)

    def _look_at(self, *looked_at: str, above: Sequence[str] = ()) -> list[Stat | None]:
        """Look at entries, and at the directories above the paths `above`, in one round trip.

        CallError `path_changed` where one of these directories is a link now.
        """
        ways = [(path, self._way_to(path)) for path in above]
        with errors(looked_at[0]):
            requests = [*chain(*(way for _, way in ways)), *lstats([*map(self._absolute, looked_at)])]
            replies = iter(self._ask(requests))
        for path, way in ways:
            self._check_way(path, [*islice(replies, len(way))])
        return [self._seen(path, reply).stat for path, reply in zip(looked_at, replies, strict=True)]

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

    def _check_same(self, path: str, judged: Stat) -> None:
        """Raise CallError `path_changed` unless the judged entry is there, not reached through a new link."""
        [now] = self._look_at(path, above=(path,))
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
        for name, seen in self.children(path)[0]:
            if (stat := seen.stat) is None:
                continue
            yield f"{prefix}/{name}", stat
            if stat.kind == DIRECTORY:
                yield from self._walk(paths.child(path, name), f"{prefix}/{name}")
