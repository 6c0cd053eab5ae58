"""SFTP server as a confined tree that can be changed, by the same steps as on disk where possible.

The protocol has no directory descriptors, so a process on the server that swaps names can win the race:
`race_free` is not among its traits.
"""

from __future__ import annotations

import errno
import secrets
import stat as S
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from ringfence.policy.byte_names import to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import StoragePlace
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, Delete, Entry, Move, Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.storage.ambiguous_outcome import NO_REPLY
from ringfence.toolkit.storage.backend import FailedEntry, check_content, path_changed
from ringfence.toolkit.storage.sftp.connection import Connection, ConnectionLost, changing, errors, write_all
from ringfence.toolkit.storage.sftp.metadata import OWNER, not_set_on_link, set_on
from ringfence.toolkit.storage.sftp.names import entries, to_server
from ringfence.toolkit.storage.sftp.view import SftpSpot, SftpView
from ringfence.toolkit.storage.store_base import NewContent


class Sftp(SftpView):
    """The tree below `root` on a server."""

    def __init__(self, connection: Connection, root: str, server: StoragePlace) -> None:
        super().__init__(connection, root, server)
        self._late_temporaries: set[str] = set()  # that a request over a lost connection may still create

    def close(self) -> None:
        self._sweep_late()
        super().close()

    def sibling(self, suffix: str) -> Sftp:
        """Return the tree of the directory with this one's path and a suffix; CallError.

        The directory is created if missing. Both trees use one connection; closing either closes it.
        """
        path = self.root + suffix

        def is_there() -> bool:
            with suppress(FileNotFoundError):
                self._connection.read(lambda client: client.lstat(to_server(path)))
                return True
            return False

        with errors(suffix):
            if not is_there():
                self._connection.change(lambda client: client.mkdir(to_server(path), 0o700), made=is_there)
        return Sftp(self._connection, path, replace(self.place, former=""))

    # ----------------------------------------------------------------- changing

    def _put_new(self, spot: SftpSpot, new: NewContent) -> NotKept:
        """Create a file completely or not at all; SFTP's rename, unlike POSIX's, fails for a taken name."""
        with changing(spot.path):
            temporary, not_kept = self._write_temporary(spot, new.data, new.mode, new.metadata, new.temporary)
            with self._cleanup(temporary):
                self._rename_new(temporary, spot.path, spot.path)
        return not_kept

    def _put_over(self, spot: SftpSpot, new: NewContent, stat: Stat, before: bytes | None) -> NotKept:
        with changing(spot.path):
            fields = {OWNER: self._judged_fields(spot.path, stat).get(OWNER), **new.metadata}
            fields = {name: value for name, value in fields.items() if value is not None}
            wanted = stat.mode if new.mode is None else new.mode
            temporary, not_kept = self._write_temporary(spot, new.data, wanted, fields, new.temporary)
            with self._cleanup(temporary):
                # As late as possible: between this check and the rename nothing stops another writer.
                check_content(self, spot, before)
                self._rename_over(temporary, spot.path, stat)
        return not_kept

    def remove(self, spot: SftpSpot, change: Delete, temporary: str) -> Iterator[str | FailedEntry]:
        """Rename the entry, compare it with the listing, then delete exactly that."""
        quarantined = f"{OWN_DIRECTORY}/{temporary or _temporary_name()}"
        with changing(spot.path):
            self._make_quarantine()
            self._rename_new(spot.path, quarantined, spot.path)
            try:
                differs = self._differs(quarantined, change)
            except (CallError, OSError):
                with suppress(CallError, OSError):  # recovery puts back an entry that is still quarantined
                    self._rename_new(quarantined, spot.path, spot.path)
                raise
            if differs:
                self._rename_new(quarantined, spot.path, spot.path)
                raise path_changed(spot.path)
        incomplete = False
        for entry in (*reversed(change.entries), Entry(change.path, change.stat)):
            try:
                with changing(entry.path):
                    self._remove(quarantined + entry.path[len(change.path) :], entry.stat.kind, entry.path)
            except CallError as error:
                if error.code == NO_REPLY:  # the server would not reply to the rest either
                    raise
                incomplete = True
                yield FailedEntry(entry.path, error.message, error.code)
            else:
                yield entry.path
        if incomplete:
            with changing(spot.path):
                self._rename_new(quarantined, spot.path, spot.path)

    def move(self, source: SftpSpot, destination: SftpSpot, change: Move) -> NotKept:
        with errors(source.path):
            self._check_same(source.path, change.stat)
        with changing(destination.path):
            if change.over is None:
                self._rename_new(source.path, destination.path, source.path)
            else:
                self._rename_over(source.path, destination.path, change.over)
        return ()

    def make_directory(self, spot: SftpSpot) -> None:
        with changing(spot.path):
            if self._lookup(spot.path) is not None:
                raise FileExistsError
            self._make(spot.path, lambda client: client.mkdir(self._absolute(spot.path)), Stat(DIRECTORY))

    def remove_directory(self, spot: SftpSpot) -> None:
        with changing(spot.path):
            if self._connection.read(lambda client: entries(client, self._absolute(spot.path))):
                message = f"'{spot.path}' is not empty"
                raise CallError("directory_not_empty", message, where=spot.path)
            self._remove(spot.path, DIRECTORY, spot.path)

    def make_link(self, spot: SftpSpot, target: str) -> None:
        with changing(spot.path):
            made = Stat(LINK, target=target)
            text = to_server(to_disk(target))
            self._make(spot.path, lambda client: client.symlink(text, self._absolute(spot.path)), made)

    def set_metadata(self, spot: SftpSpot, mode: int | None, metadata: Metadata | None) -> NotKept:
        with changing(spot.path):
            row = self._lstat(spot.path)
            if row.st_mode is None or S.S_ISLNK(row.st_mode):
                return not_set_on_link(row, metadata or {})
            path = self._absolute(spot.path)
            not_kept: list[str] = []
            self._set(lambda client: not_kept.extend(set_on(client, path, row, metadata or {}, mode)))
        return tuple(dict.fromkeys(not_kept))

    def set_mode(self, spot: SftpSpot, stat: Stat, mode: int) -> None:
        def send(client: Any) -> None:
            # As late as possible: between this check and the change nothing stops another writer.
            self._check_same(spot.path, stat)
            client.chmod(self._absolute(spot.path), mode)

        with changing(spot.path):
            self._set(send)

    def sweep(self, spot: SftpSpot, temporary: str) -> None:
        """Remove a temporary file that a dead process left beside `spot`."""
        with errors(spot.path), suppress(FileNotFoundError):
            self._remove(paths.child(paths.parent(spot.path), temporary), FILE, spot.path)

    # ------------------------------------------------------------------- inside

    # Each change below has a check of its result, in case its reply is lost.

    def _write_temporary(
        self, spot: SftpSpot, data: bytes, mode: int | None, fields: Metadata, name: str
    ) -> tuple[str, NotKept]:
        """Create a temporary file beside the spot; returns its path and the fields that were not kept."""
        self._sweep_late()
        path = paths.child(paths.parent(spot.path), name or _temporary_name())
        not_kept: NotKept = ()

        def write(client: Any) -> None:
            nonlocal not_kept
            with client.open(self._absolute(path), "wx") as file:
                write_all(file, data)
            row = client.lstat(self._absolute(path))
            if row.st_size != len(data):  # paramiko ignores the server's reply to closing a file
                raise OSError(errno.EIO, "the server did not keep what was written")
            not_kept = set_on(client, self._absolute(path), row, fields, mode)

        def again(client: Any) -> None:
            self._late_temporaries.add(path)
            with suppress(FileNotFoundError):
                client.remove(self._absolute(path))
            write(client)

        self._connection.change(write, again=again, made=lambda: False)
        return path, not_kept

    def _sweep_late(self) -> None:
        """Remove the temporary files that a late request has created by now."""
        while self._late_temporaries:
            path = self._absolute(self._late_temporaries.pop())
            with suppress(CallError, OSError):
                self._connection.change(lambda client: client.remove(path), made=lambda: True)  # noqa: B023

    @contextmanager
    def _cleanup(self, temporary: str) -> Iterator[None]:
        """Remove a temporary file if the block fails; where that fails too, recovery removes it."""
        try:
            yield
        except BaseException:
            with suppress(CallError, OSError):
                self._remove(temporary, FILE, temporary)
            raise

    def _rename_new(self, source: str, destination: str, reported: str) -> None:
        """Rename to a free name. FileExistsError and OSError."""
        rename = lambda client: client.rename(self._absolute(source), self._absolute(destination))  # noqa: E731
        try:
            self._change(reported, rename, lambda: self._is_renamed(source, destination))
        except ConnectionLost:
            raise
        except OSError:
            if self._lookup(destination) is not None:
                raise FileExistsError(errno.EEXIST, "already there") from None
            raise

    def _rename_over(self, source: str, destination: str, judged: Stat) -> None:
        """Rename over the judged file. CallError `path_changed`, and OSError."""

        def rename(client: Any) -> None:
            self._check_same(destination, judged)
            client.posix_rename(self._absolute(source), self._absolute(destination))

        def again(client: Any) -> None:
            if self._is_renamed(source, destination):
                raise FileNotFoundError
            rename(client)

        self._change(destination, rename, lambda: self._is_renamed(source, destination), again)

    def _is_renamed(self, source: str, destination: str) -> bool:
        return self._lookup(source) is None and self._lookup(destination) is not None

    def _remove(self, path: str, kind: str, reported: str) -> None:
        """Remove a file, link or empty directory of our own. OSError."""
        self._change(
            reported,
            lambda client: (client.rmdir if kind == DIRECTORY else client.remove)(self._absolute(path)),
            lambda: self._lookup(path) is None,
        )

    def _make(self, path: str, send: Callable[[Any], object], wanted: Stat) -> None:
        def made() -> bool:
            now = self._lookup(path)
            return now is not None and (now.kind, now.target) == (wanted.kind, wanted.target)

        self._change(path, send, made)

    def _change(
        self,
        reported: str,
        send: Callable[[Any], object],
        made: Callable[[], bool],
        again: Callable[[Any], object] | None = None,
    ) -> None:
        try:
            resolved = self._connection.change(send, made=made, again=again)
        except OSError as error:
            # The protocol has a single code for most failures, and a server may fail after the change.
            if isinstance(error, ConnectionLost) or error.errno is not None or not made():
                raise
            resolved = True
        if resolved:
            self.note_resolved(reported)

    def _set(self, send: Callable[[Any], object]) -> None:
        """Set attributes: sending the same request twice has the same result."""
        self._connection.change(send, made=lambda: False)

    def _make_quarantine(self) -> None:
        if self._lookup(OWN_DIRECTORY) is not None:
            return
        self._make(
            OWN_DIRECTORY, lambda client: client.mkdir(self._absolute(OWN_DIRECTORY), 0o700), Stat(DIRECTORY)
        )

        def ignore(client: Any) -> None:
            with client.open(self._absolute(f"{OWN_DIRECTORY}/.gitignore"), "w") as file:
                file.write(b"*\n")

        self._set(ignore)


def _temporary_name() -> str:
    return f".ringfence-{secrets.token_hex(8)}"
