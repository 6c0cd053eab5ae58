"""A tree on an SFTP server, by the same steps as on disk as far as the protocol has them.

Links are resolved here, name by name, and never left to the server. The protocol has no descriptors of
directories, so a process on the server that swaps names can win: `race_free` is not among its traits.
"""

from __future__ import annotations

import errno
import secrets
import stat as S
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from toolkit import paths
from toolkit.ambiguous_outcome import NO_REPLY
from toolkit.backends import BACKENDS, Missed, StoreBase, check_content, is_link, path_changed
from toolkit.errors import CallError
from toolkit.loss import MAX_FILE
from toolkit.metadata import Metadata, NotKept
from toolkit.places import StoragePlace
from toolkit.plan import DIRECTORY, FILE, LINK, OTHER, Delete, Entry, Held, Move, Stat, whole
from toolkit.sftp.attributes import OWNER, attached, lost_on_link, put_on
from toolkit.sftp.connection import Connection, ConnectionLost, changing, errors

MAX_LINKS = 8
STATE = ".ringfence"
_ONE_REQUEST = 32 << 10  # bytes that one READ gives
_KINDS = {S.S_IFREG: FILE, S.S_IFDIR: DIRECTORY, S.S_IFLNK: LINK}


@dataclass(frozen=True, slots=True)
class SftpSpot:
    """A canonical path; `rest` counts the names below one that is not there, or (`blocked`) no directory."""

    path: str
    rest: int = 0
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class SftpFolder:
    """A directory of the server; `left_out` are the names in it that are none, once it was scanned."""

    tree: Sftp
    path: str
    left_out: list[str] = field(default_factory=list)

    def scan(self) -> list[tuple[str, Stat]]:
        found, self.left_out[:] = self.tree.level(self.path)
        return found

    def spot(self, name: str) -> SftpSpot:
        return SftpSpot(paths.child(self.path, name))


class Sftp(StoreBase):
    """What lies below `root` on a server."""

    traits = BACKENDS["sftp"]
    fold = False

    def __init__(self, connection: Connection, root: str, server: StoragePlace) -> None:
        self._connection = connection
        try:
            self.root = str(connection.ask(lambda client: client.normalize(root))).rstrip("/")
            found = S.S_ISDIR(connection.ask(lambda client: client.stat(self.root or "/")).st_mode)
        except OSError:
            connection.close()
            raise CallError("not_found", "The project root does not exist on the server") from None
        if not found:
            connection.close()
            raise CallError("not_a_directory", "The project root is not a directory on the server")
        former = f"{server.former}{self.root}" if server.former else ""
        self.place = replace(server, path=self.root, former=former)

    def close(self) -> None:
        self._connection.close()

    def beside(self, suffix: str) -> Sftp:
        """The directory with this one's name and a suffix, made where there is none. Closed with this one."""
        path = self.root + suffix

        def is_there() -> bool:
            with suppress(FileNotFoundError):
                self._connection.ask(lambda client: client.lstat(path))
                return True
            return False

        with errors(suffix):
            if not is_there():
                self._connection.change(lambda client: client.mkdir(path, 0o700), made=is_there)
        return Sftp(self._connection, path, replace(self.place, former=""))

    # ------------------------------------------------------------------ looking

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> SftpSpot:
        done: list[str] = []
        todo = list(names)
        links = 0
        while todo:
            name = todo.pop(0)
            if name == "..":
                if not done:
                    raise paths.outside()
                done.pop()
                continue
            path = paths.join([*done, name])
            found = self._look(path) if todo or follow else None
            if found is not None and found.kind == LINK:
                links += 1
                todo = [*_spliced(found, names, links), *todo]
                continue
            done.append(name)
            if todo and (found is None or found.kind != DIRECTORY):
                if ".." in todo:
                    raise CallError("not_found", "A directory in the path does not exist")
                return SftpSpot(paths.join([*done, *todo]), len(todo), found is not None)
        return SftpSpot(paths.join(done))

    def is_link(self, names: tuple[str, ...]) -> bool:
        return is_link(self, names)

    def release(self, spot: SftpSpot) -> None:
        """Nothing is held open."""

    def stat(self, spot: SftpSpot) -> Stat | None:
        return None if spot.rest else self._look(spot.path)

    def read(self, spot: SftpSpot, limit: int | None = None, known: Stat | None = None) -> bytes:
        found = self.stat(spot)
        if found is None:
            raise CallError("not_found", f"'{spot.path}' does not exist", where=spot.path)
        if found.kind == DIRECTORY:
            raise CallError("is_directory", f"'{spot.path}' is a directory", where=spot.path)
        if found.kind != FILE:
            raise CallError("not_regular_file", f"'{spot.path}' is not a regular file", where=spot.path)
        if known is not None and not alike(known, found):
            raise path_changed(spot.path)
        most, data = MAX_FILE if limit is None else limit, b""
        if (found.size or 0) <= most:
            with errors(spot.path):
                data = self._connection.ask(lambda client: self._content(client, spot.path, found, most))
        if (found.size or 0) > most or len(data) > most:
            raise CallError("too_large", f"'{spot.path}' is larger than {most} bytes", where=spot.path)
        return data

    def _content(self, client: Any, path: str, found: Stat, most: int) -> bytes:
        with client.open(self._at(path), "rb") as file:
            # A name may lead elsewhere since the look: what is open now says whether it is what was seen.
            if not alike(found, self._stat(path, file.stat())):
                raise path_changed(path)
            if (found.size or 0) > _ONE_REQUEST:
                file.prefetch(found.size)
            return bytes(file.read(most + 1))  # a server may send more than it says

    def metadata(self, spot: SftpSpot, stat: Stat, *, copied: bool = False) -> Metadata | None:
        """Owner, group and times, of which a copy takes nothing along."""
        return None if copied else self._attached(spot.path, stat)

    def chunks(self, spot: SftpSpot, known: Stat | None = None) -> Iterator[bytes]:
        yield self.read(spot)

    @contextmanager
    def folder(self, spot: SftpSpot) -> Iterator[SftpFolder]:
        yield SftpFolder(self, spot.path)

    def level(self, path: str) -> tuple[list[tuple[str, Stat]], list[str]]:
        """The entries of a directory by name, and the names that are none, or another's in this directory."""
        found: dict[str, Stat] = {}
        left_out: list[str] = []
        with errors(path):
            for row in self._connection.ask(lambda client: client.listdir_attr(self._at(path))):
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
        return True  # only trying tells

    def missing(self, spot: SftpSpot) -> tuple[str, ...]:
        names = paths.parts(spot.path)
        first = len(names) - spot.rest
        if spot.blocked:
            path = paths.join(names[:first])
            raise CallError("not_a_directory", f"'{path}' is not a directory", where=path)
        return tuple(paths.join(names[:n]) for n in range(first, len(names)))

    # ----------------------------------------------------------------- changing

    def check(self, spot: SftpSpot) -> None:
        """Refuse when a directory on the way is a link by now; right after this it still can become one."""
        names = paths.parts(spot.path)[:-1]
        if self.resolve(names, follow=True).path != paths.join(names):
            raise path_changed(spot.path)

    def create(
        self,
        spot: SftpSpot,
        data: bytes | Held,
        mode: int | None,
        temporary: str,
        metadata: Metadata | None = None,
    ) -> NotKept:
        """Whole or not at all: SFTP's rename, unlike POSIX's, fails where the new name is taken."""
        content = whole(data)
        with changing(spot.path):
            beside, lost = self._temporary(spot, content, mode, metadata or {}, temporary)
            with self._or_without(beside):
                self._rename_new(beside, spot.path, spot.path)
        return lost

    def replace(
        self,
        spot: SftpSpot,
        data: bytes | Held,
        stat: Stat,
        mode: int | None,
        temporary: str,
        before: bytes | None = None,
        metadata: Metadata | None = None,
    ) -> NotKept:
        content = whole(data)
        with changing(spot.path):
            fields = {OWNER: self._attached(spot.path, stat).get(OWNER), **(metadata or {})}
            fields = {name: value for name, value in fields.items() if value is not None}
            wanted = stat.mode if mode is None else mode
            beside, lost = self._temporary(spot, content, wanted, fields, temporary)
            with self._or_without(beside):
                # As late as can be: between this look and the rename nothing stops another writer.
                check_content(self, spot, before)
                self._rename_over(beside, spot.path, stat)
        return lost

    def remove(self, spot: SftpSpot, change: Delete, temporary: str) -> Iterator[str | Missed]:
        """Rename out of the way, make sure it is what was listed, then remove exactly that."""
        caught = f"{STATE}/{temporary or _own_name()}"
        with changing(spot.path):
            self._make_state()
            self._rename_new(spot.path, caught, spot.path)
            if self._differs(caught, change):
                self._rename_new(caught, spot.path, spot.path)
                raise path_changed(spot.path)
        kept = False
        for entry in (*reversed(change.entries), Entry(change.path, change.stat)):
            try:
                with changing(entry.path):
                    self._remove(caught + entry.path[len(change.path) :], entry.stat.kind, entry.path)
            except CallError as error:
                if error.code == NO_REPLY:  # nor would there be one to the rest
                    raise
                kept = True
                yield Missed(entry.path, error.message, error.code)
            else:
                yield entry.path
        if kept:
            with changing(spot.path):
                self._rename_new(caught, spot.path, spot.path)

    def move(self, source: SftpSpot, destination: SftpSpot, change: Move) -> NotKept:
        with errors(source.path):
            self._same(source.path, change.stat)
        with changing(destination.path):
            if change.over is None:
                self._rename_new(source.path, destination.path, source.path)
            else:
                self._rename_over(source.path, destination.path, change.over)
        return ()

    def make_directory(self, spot: SftpSpot) -> None:
        with changing(spot.path):
            if self._look(spot.path) is not None:
                raise FileExistsError
            self._make(spot.path, lambda client: client.mkdir(self._at(spot.path)), Stat(DIRECTORY))

    def remove_directory(self, spot: SftpSpot) -> None:
        with changing(spot.path):
            if self._connection.ask(lambda client: client.listdir(self._at(spot.path))):
                message = f"'{spot.path}' is not empty"
                raise CallError("directory_not_empty", message, where=spot.path)
            self._remove(spot.path, DIRECTORY, spot.path)

    def make_link(self, spot: SftpSpot, target: str) -> None:
        with changing(spot.path):
            made = Stat(LINK, target=target)
            self._make(spot.path, lambda client: client.symlink(target, self._at(spot.path)), made)

    def set_metadata(self, spot: SftpSpot, mode: int | None, metadata: Metadata | None) -> NotKept:
        with changing(spot.path):
            row = self._lstat(spot.path)
            if row.st_mode is None or S.S_ISLNK(row.st_mode):
                return lost_on_link(row, metadata or {})
            path = self._at(spot.path)
            lost: list[str] = []
            self._set(lambda client: lost.extend(put_on(client, path, metadata or {}, mode)))
        return tuple(dict.fromkeys(lost))

    def sweep(self, spot: SftpSpot, temporary: str) -> None:
        """Remove a temporary that a dead process left beside `spot`."""
        with errors(spot.path), suppress(FileNotFoundError):
            self._remove(paths.child(paths.parent(spot.path), temporary), FILE, spot.path)

    # ------------------------------------------------------------------- inside

    def _at(self, path: str) -> str:
        return (self.root or "/") if path == paths.ROOT else f"{self.root}/{path}"

    def _look(self, path: str) -> Stat | None:
        with errors(path):
            try:
                return self._stat(path, self._lstat(path))
            except FileNotFoundError:
                return None

    def _lstat(self, path: str) -> Any:
        return self._connection.ask(lambda client: client.lstat(self._at(path)))

    def _stat(self, path: str, row: Any) -> Stat:
        # Of what a server does not say what it is, nothing is opened.
        kind = OTHER if row.st_mode is None else _KINDS.get(S.S_IFMT(row.st_mode), OTHER)
        readlink = lambda client: client.readlink(self._at(path))  # noqa: E731
        return Stat(
            kind=kind,
            size=row.st_size,
            modified=row.st_mtime,
            accessed=row.st_atime,
            mode=None if row.st_mode is None else S.S_IMODE(row.st_mode),
            target=self._connection.ask(readlink) if kind == LINK else None,
            identity=f"{row.st_mtime}:{row.st_size}:{row.st_mode}",
        )

    def _attached(self, path: str, judged: Stat) -> Metadata:
        """The metadata of the entry that was judged."""
        with errors(path):
            row = self._lstat(path)
            if not alike(judged, self._stat(path, row)):
                raise path_changed(path)
        return attached(row)

    def _same(self, path: str, judged: Stat) -> None:
        now = self._look(path)
        if now is None or not alike(judged, now):
            raise path_changed(path)

    # Each change below says what it looks like once it is made, for when its reply is lost.

    def _temporary(
        self, spot: SftpSpot, data: bytes, mode: int | None, fields: Metadata, name: str
    ) -> tuple[str, NotKept]:
        """A new file beside a place, with what is to be there, and which of the fields it has not."""
        path = paths.child(paths.parent(spot.path), name or _own_name())
        lost: NotKept = ()

        def write(client: Any) -> None:
            nonlocal lost
            with client.open(self._at(path), "wx") as file:
                file.set_pipelined(True)
                file.write(data)
            lost = put_on(client, self._at(path), fields, mode)

        def again(client: Any) -> None:
            with suppress(FileNotFoundError):
                client.remove(self._at(path))
            write(client)

        self._connection.change(write, again=again, made=lambda: False)
        return path, lost

    @contextmanager
    def _or_without(self, temporary: str) -> Iterator[None]:
        """Takes a temporary away where what it is for fails; where it cannot, settling does."""
        try:
            yield
        except BaseException:
            with suppress(CallError, OSError):
                self._remove(temporary, FILE, temporary)
            raise

    def _rename_new(self, source: str, destination: str, shown: str) -> None:
        """Rename to where nothing is. Raises FileExistsError and OSError."""
        rename = lambda client: client.rename(self._at(source), self._at(destination))  # noqa: E731
        try:
            self._change(shown, rename, lambda: self._is_renamed(source, destination))
        except ConnectionLost:
            raise
        except OSError:
            # The protocol has one word for every failure.
            if self._look(destination) is not None:
                raise FileExistsError(errno.EEXIST, "already there") from None
            raise

    def _rename_over(self, source: str, destination: str, judged: Stat) -> None:
        """Rename over the file that was judged. Raises CallError `path_changed`, and OSError."""

        def rename(client: Any) -> None:
            self._same(destination, judged)
            client.posix_rename(self._at(source), self._at(destination))

        def again(client: Any) -> None:
            if self._is_renamed(source, destination):
                raise FileNotFoundError
            rename(client)

        self._change(destination, rename, lambda: self._is_renamed(source, destination), again)

    def _is_renamed(self, source: str, destination: str) -> bool:
        return self._look(source) is None and self._look(destination) is not None

    def _remove(self, path: str, kind: str, shown: str) -> None:
        """Remove a file, link or empty directory of our own. Raises OSError."""
        self._change(
            shown,
            lambda client: (client.rmdir if kind == DIRECTORY else client.remove)(self._at(path)),
            lambda: self._look(path) is None,
        )

    def _make(self, path: str, send: Callable[[Any], object], wanted: Stat) -> None:
        def made() -> bool:
            now = self._look(path)
            return now is not None and (now.kind, now.target) == (wanted.kind, wanted.target)

        self._change(path, send, made)

    def _change(
        self,
        shown: str,
        send: Callable[[Any], object],
        made: Callable[[], bool],
        again: Callable[[Any], object] | None = None,
    ) -> None:
        if self._connection.change(send, made=made, again=again):
            self.note_resolved(shown)

    def _set(self, send: Callable[[Any], object]) -> None:
        """Set what may be set twice."""
        self._connection.change(send, made=lambda: False)

    def _make_state(self) -> None:
        if self._look(STATE) is not None:
            return
        self._make(STATE, lambda client: client.mkdir(self._at(STATE), 0o700), Stat(DIRECTORY))

        def ignore(client: Any) -> None:
            with client.open(self._at(f"{STATE}/.gitignore"), "w") as note:
                note.write(b"*\n")

        self._set(ignore)

    def _differs(self, caught: str, change: Delete) -> bool:
        now = self._look(caught)
        if now is None or not alike(change.stat, now):
            return True
        found = dict(self._walk(caught)) if now.kind == DIRECTORY else {}
        judged = {entry.path[len(change.path) :]: entry.stat for entry in change.entries}
        return found.keys() != judged.keys() or any(not alike(judged[key], found[key]) for key in found)

    def _walk(self, path: str, shown: str = "") -> Iterator[tuple[str, Stat]]:
        for name, stat in self.level(path)[0]:
            yield f"{shown}/{name}", stat
            if stat.kind == DIRECTORY:
                yield from self._walk(paths.child(path, name), f"{shown}/{name}")


def _spliced(link: Stat, names: tuple[str, ...], count: int) -> list[str]:
    if ".." in names:
        raise CallError("path_invalid", "The path goes up ('..') and through a link, which is ambiguous")
    if count > MAX_LINKS:
        raise CallError("path_invalid", "The path goes through too many links")
    target = link.target or ""
    if target.startswith("/"):
        raise paths.outside()
    return [part for part in target.split("/") if part not in ("", ".")]


def _is_name(name: str) -> bool:
    return name not in ("", ".", "..") and not set("/\0") & set(name)


def _own_name() -> str:
    return f".ringfence-{secrets.token_hex(8)}"


def alike(judged: Stat, now: Stat) -> bool:
    if judged.kind != now.kind:
        return False
    return judged.kind == DIRECTORY or (judged.target, judged.identity) == (now.target, now.identity)
