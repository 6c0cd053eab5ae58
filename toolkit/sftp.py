"""A tree on an SFTP server, by the same steps as on disk as far as the protocol has them.

Links are resolved here, name by name, and never left to the server. The protocol has no descriptors of
directories, so a process on the server that swaps names can win: `race_free` is not among its traits.
"""

from __future__ import annotations

import errno
import secrets
import stat as S
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

from toolkit import paths
from toolkit.backends import BACKENDS, Missed, StoreBase, check_content, is_link, path_changed
from toolkit.errors import CallError
from toolkit.loss import MAX_FILE
from toolkit.metadata import Metadata, NotKept
from toolkit.places import StoragePlace, shown, split_url
from toolkit.plan import DIRECTORY, FILE, LINK, OTHER, SET_ID, Delete, Entry, Held, Move, Stat, whole
from toolkit.store_identity import sftp_authority
from toolkit.stores import errors

MAX_LINKS = 8
STATE = ".ringfence"
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
    """What lies below `root` on the server that `client` (a paramiko.SFTPClient) is connected to."""

    traits = BACKENDS["sftp"]
    fold = False

    def __init__(
        self, client: Any, root: str, server: StoragePlace, closing: Callable[[], None] = lambda: None
    ) -> None:
        self._client = client
        self._closing = closing
        try:
            self.root = str(client.normalize(root)).rstrip("/")
            found = S.S_ISDIR(client.stat(self.root or "/").st_mode)
        except OSError:
            closing()
            raise CallError("not_found", "The project root does not exist on the server") from None
        if not found:
            closing()
            raise CallError("not_a_directory", "The project root is not a directory on the server")
        former = f"{server.former}{self.root}" if server.former else ""
        self.place = replace(server, path=self.root, former=former)

    def close(self) -> None:
        self._closing()

    def beside(self, suffix: str) -> Sftp:
        """The directory with this one's name and a suffix, made where there is none. Closed with this one."""
        path = self.root + suffix
        with _errors(suffix):
            try:
                self._client.lstat(path)
            except FileNotFoundError:
                self._client.mkdir(path, 0o700)
        return Sftp(self._client, path, replace(self.place, former=""))

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
        most, data = MAX_FILE if limit is None else limit, b""
        if (found.size or 0) <= most:
            with _errors(spot.path), self._client.open(self._at(spot.path), "rb") as file:
                if found.size:
                    file.prefetch(found.size)
                data = bytes(file.read(most + 1))  # a server may send more than it says
        if (found.size or 0) > most or len(data) > most:
            raise CallError("too_large", f"'{spot.path}' is larger than {most} bytes", where=spot.path)
        return data

    def chunks(self, spot: SftpSpot, known: Stat | None = None) -> Iterator[bytes]:
        yield self.read(spot)

    @contextmanager
    def folder(self, spot: SftpSpot) -> Iterator[SftpFolder]:
        yield SftpFolder(self, spot.path)

    def level(self, path: str) -> tuple[list[tuple[str, Stat]], list[str]]:
        """The entries of a directory by name, and the names that are none, or another's in this directory."""
        found: dict[str, Stat] = {}
        left_out: list[str] = []
        with _errors(path):
            for row in self._client.listdir_attr(self._at(path)):
                if row.filename in found or not _is_name(row.filename):
                    left_out.append(row.filename)
                    continue
                below = paths.child(path, row.filename)
                known = row if row.st_mode is not None else self._client.lstat(self._at(below))
                found[row.filename] = self._stat(below, known)
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
        with _errors(spot.path):
            beside = self._temporary(spot, content, mode, temporary)
            try:
                self._rename_new(beside, spot.path)
            except BaseException:
                self._client.remove(self._at(beside))
                raise
        return ()

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
        check_content(self, spot, before)
        self._same(spot.path, stat)
        with _errors(spot.path):
            beside = self._temporary(spot, content, stat.mode if mode is None else mode, temporary)
            self._client.posix_rename(self._at(beside), self._at(spot.path))
        return ()

    def remove(self, spot: SftpSpot, change: Delete, temporary: str) -> Iterator[str | Missed]:
        """Rename out of the way, make sure it is what was listed, then remove exactly that."""
        caught = f"{STATE}/{temporary or _own_name()}"
        with _errors(spot.path):
            self._make_state()
            self._rename_new(spot.path, caught)
        if self._differs(caught, change):
            self._rename_new(caught, spot.path)
            raise path_changed(spot.path)
        kept = False
        for entry in (*reversed(change.entries), Entry(change.path, change.stat)):
            at = self._at(caught + entry.path[len(change.path) :])
            try:
                with _errors(entry.path):
                    (self._client.rmdir if entry.stat.kind == DIRECTORY else self._client.remove)(at)
            except CallError as error:
                kept = True
                yield Missed(entry.path, error.message, error.code)
            else:
                yield entry.path
        if kept:
            self._rename_new(caught, spot.path)

    def move(self, source: SftpSpot, destination: SftpSpot, change: Move) -> NotKept:
        self._same(source.path, change.stat)
        with _errors(destination.path):
            if change.over is None:
                self._rename_new(source.path, destination.path)
                return ()
            self._same(destination.path, change.over)
            self._client.posix_rename(self._at(source.path), self._at(destination.path))
        return ()

    def make_directory(self, spot: SftpSpot) -> None:
        with _errors(spot.path):
            if self._look(spot.path) is not None:
                raise FileExistsError
            self._client.mkdir(self._at(spot.path))

    def remove_directory(self, spot: SftpSpot) -> None:
        with _errors(spot.path):
            if self._client.listdir(self._at(spot.path)):
                message = f"'{spot.path}' is not empty"
                raise CallError("directory_not_empty", message, where=spot.path)
            self._client.rmdir(self._at(spot.path))

    def make_link(self, spot: SftpSpot, target: str) -> None:
        with _errors(spot.path):
            self._client.symlink(target, self._at(spot.path))

    def set_metadata(self, spot: SftpSpot, mode: int | None, metadata: Metadata | None) -> NotKept:
        if mode is not None:
            with _errors(spot.path):
                self._client.chmod(self._at(spot.path), mode)
        return ()

    def sweep(self, spot: SftpSpot, temporary: str) -> None:
        """Remove a temporary that a dead process left beside `spot`."""
        with _errors(spot.path):
            try:
                self._client.remove(self._at(paths.child(paths.parent(spot.path), temporary)))
            except FileNotFoundError:
                pass

    # ------------------------------------------------------------------- inside

    def _at(self, path: str) -> str:
        return (self.root or "/") if path == paths.ROOT else f"{self.root}/{path}"

    def _look(self, path: str) -> Stat | None:
        with _errors(path):
            try:
                return self._stat(path, self._client.lstat(self._at(path)))
            except FileNotFoundError:
                return None

    def _stat(self, path: str, row: Any) -> Stat:
        # Of what a server does not say what it is, nothing is opened.
        kind = OTHER if row.st_mode is None else _KINDS.get(S.S_IFMT(row.st_mode), OTHER)
        return Stat(
            kind=kind,
            size=row.st_size,
            modified=row.st_mtime,
            accessed=row.st_atime,
            mode=None if row.st_mode is None else S.S_IMODE(row.st_mode),
            target=self._client.readlink(self._at(path)) if kind == LINK else None,
            identity=f"{row.st_mtime}:{row.st_size}:{row.st_mode}",
        )

    def _same(self, path: str, judged: Stat) -> None:
        now = self._look(path)
        if now is None or not _alike(judged, now):
            raise path_changed(path)

    def _temporary(self, spot: SftpSpot, data: bytes, mode: int | None, name: str) -> str:
        path = paths.child(paths.parent(spot.path), name or _own_name())
        with self._client.open(self._at(path), "wx") as file:
            file.set_pipelined(True)
            file.write(data)
        if mode is not None:
            # The new file is the account's own, whoever owned the old one.
            self._client.chmod(self._at(path), mode & ~SET_ID)
        return path

    def _rename_new(self, source: str, destination: str) -> None:
        try:
            self._client.rename(self._at(source), self._at(destination))
        except OSError:
            # The protocol has one word for every failure.
            if self._look(destination) is not None:
                raise FileExistsError(errno.EEXIST, "already there") from None
            raise

    def _make_state(self) -> None:
        if self._look(STATE) is None:
            self._client.mkdir(self._at(STATE), 0o700)
            with self._client.open(self._at(f"{STATE}/.gitignore"), "w") as note:
                note.write(b"*\n")

    def _differs(self, caught: str, change: Delete) -> bool:
        now = self._look(caught)
        if now is None or not _alike(change.stat, now):
            return True
        found = dict(self._walk(caught)) if now.kind == DIRECTORY else {}
        judged = {entry.path[len(change.path) :]: entry.stat for entry in change.entries}
        return found.keys() != judged.keys() or any(not _alike(judged[key], found[key]) for key in found)

    def _walk(self, path: str, shown: str = "") -> Iterator[tuple[str, Stat]]:
        for name, stat in self.level(path)[0]:
            yield f"{shown}/{name}", stat
            if stat.kind == DIRECTORY:
                yield from self._walk(paths.child(path, name), f"{shown}/{name}")


def open_sftp(url: str, options: dict[str, Any]) -> Sftp:
    """Connect to the server of an sftp:// URL; only to one whose key is known, as `ssh` does."""
    try:
        import paramiko
    except ImportError:
        hint = "pip install 'ringfence[sftp]'"
        raise CallError("io_error", "What an sftp:// root needs is not installed", hint=hint) from None
    split = split_url(url)
    if split.password is not None:
        raise CallError(
            "path_invalid",
            f"There is a password in the URL of {shown(url)}, where programs and logs show it",
            hint="use a key or the SSH agent, or options={'password': …} from Python",
        )
    client = paramiko.SSHClient()
    named = {"port": split.port, "username": unquote(split.username or ""), **options}
    try:
        client.load_system_host_keys()
        client.connect(split.hostname or "", **{key: value for key, value in named.items() if value})
        sftp = client.open_sftp()
    except Exception as error:
        client.close()
        told = isinstance(error, OSError | paramiko.SSHException)
        reason = str(error) if told else type(error).__name__
        raise CallError("io_error", f"'{split.hostname}' cannot be reached by SFTP: {reason}") from None
    account, port = sftp.get_channel().get_transport().get_username(), split.port or 22
    former = f"sftp://{split.username + '@' if split.username else ''}{split.hostname}:{port}"
    authority = sftp_authority(account, split.hostname or "", named["port"] or 22)
    server = StoragePlace(("sftp",), authority, "", former="" if former == f"sftp://{authority}" else former)
    return Sftp(sftp, unquote(split.path) or ".", server, client.close)


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


def _alike(judged: Stat, now: Stat) -> bool:
    if judged.kind != now.kind:
        return False
    return judged.kind == DIRECTORY or (judged.target, judged.identity) == (now.target, now.identity)


@contextmanager
def _errors(path: str) -> Iterator[None]:
    with errors(path):
        try:
            yield
        except PermissionError:
            raise CallError("permission_denied", f"Permission denied: '{path}'", where=path) from None
        except EOFError:
            raise OSError(errno.EIO, "the connection was lost") from None
