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
from ringfence.toolkit.storage.ambiguous_outcome import NO_REPLY
from ringfence.toolkit.storage.backend import Missed, check_content, path_changed
from ringfence.toolkit.storage.sftp.attributes import OWNER, lost_on_link, put_on
from ringfence.toolkit.storage.sftp.connection import Connection, ConnectionLost, changing, errors, write_all
from ringfence.toolkit.storage.sftp.names import entries, to_server
from ringfence.toolkit.storage.sftp.view import SftpSpot, SftpView
from ringfence.toolkit.storage.store_base import NewContent

STATE = ".ringfence"


class Sftp(SftpView):
    """The tree below `root` on a server."""

    def __init__(self, connection: Connection, root: str, server: StoragePlace) -> None:
        super().__init__(connection, root, server)
        self._late: set[str] = set()  # temporaries that a request over a lost connection may still make

    def close(self) -> None:
        self._sweep_late()
        super().close()

    def beside(self, suffix: str) -> Sftp:
        """Return the directory with this one's name and a suffix.

        It is created if missing, and closed with this one.
        """
        path = self.root + suffix

        def is_there() -> bool:
            with suppress(FileNotFoundError):
                self._connection.ask(lambda client: client.lstat(to_server(path)))
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
            beside, lost = self._temporary(spot, new.data, new.mode, new.metadata, new.temporary)
            with self._or_without(beside):
                self._rename_new(beside, spot.path, spot.path)
        return lost

    def _put_over(self, spot: SftpSpot, new: NewContent, stat: Stat, before: bytes | None) -> NotKept:
        with changing(spot.path):
            fields = {OWNER: self._attached(spot.path, stat).get(OWNER), **new.metadata}
            fields = {name: value for name, value in fields.items() if value is not None}
            wanted = stat.mode if new.mode is None else new.mode
            beside, lost = self._temporary(spot, new.data, wanted, fields, new.temporary)
            with self._or_without(beside):
                # As late as possible: between this check and the rename nothing stops another writer.
                check_content(self, spot, before)
                self._rename_over(beside, spot.path, stat)
        return lost

    def remove(self, spot: SftpSpot, change: Delete, temporary: str) -> Iterator[str | Missed]:
        """Rename the entry, compare it with the listing, then delete exactly that."""
        caught = f"{STATE}/{temporary or _own_name()}"
        with changing(spot.path):
            self._make_state()
            self._rename_new(spot.path, caught, spot.path)
            try:
                differs = self._differs(caught, change)
            except (CallError, OSError):
                with suppress(CallError, OSError):  # recovery puts back an entry that is still quarantined
                    self._rename_new(caught, spot.path, spot.path)
                raise
            if differs:
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
            if self._connection.ask(lambda client: entries(client, self._at(spot.path))):
                message = f"'{spot.path}' is not empty"
                raise CallError("directory_not_empty", message, where=spot.path)
            self._remove(spot.path, DIRECTORY, spot.path)

    def make_link(self, spot: SftpSpot, target: str) -> None:
        with changing(spot.path):
            made = Stat(LINK, target=target)
            text = to_server(to_disk(target))
            self._make(spot.path, lambda client: client.symlink(text, self._at(spot.path)), made)

    def set_metadata(self, spot: SftpSpot, mode: int | None, metadata: Metadata | None) -> NotKept:
        with changing(spot.path):
            row = self._lstat(spot.path)
            if row.st_mode is None or S.S_ISLNK(row.st_mode):
                return lost_on_link(row, metadata or {})
            path = self._at(spot.path)
            lost: list[str] = []
            self._set(lambda client: lost.extend(put_on(client, path, row, metadata or {}, mode)))
        return tuple(dict.fromkeys(lost))

    def set_mode(self, spot: SftpSpot, stat: Stat, mode: int) -> None:
        def send(client: Any) -> None:
            # As late as possible: between this check and the change nothing stops another writer.
            self._same(spot.path, stat)
            client.chmod(self._at(spot.path), mode)

        with changing(spot.path):
            self._set(send)

    def sweep(self, spot: SftpSpot, temporary: str) -> None:
        """Remove a temporary file that a dead process left beside `spot`."""
        with errors(spot.path), suppress(FileNotFoundError):
            self._remove(paths.child(paths.parent(spot.path), temporary), FILE, spot.path)

    # ------------------------------------------------------------------- inside

    # Each change below has a check for its result, in case its reply is lost.

    def _temporary(
        self, spot: SftpSpot, data: bytes, mode: int | None, fields: Metadata, name: str
    ) -> tuple[str, NotKept]:
        """Create a file beside a place; returns it with the fields that were not kept."""
        self._sweep_late()
        path = paths.child(paths.parent(spot.path), name or _own_name())
        lost: NotKept = ()

        def write(client: Any) -> None:
            nonlocal lost
            with client.open(self._at(path), "wx") as file:
                write_all(file, data)
            row = client.lstat(self._at(path))
            if row.st_size != len(data):  # paramiko passes over what a server says when it closes a file
                raise OSError(errno.EIO, "the server did not keep what was written")
            lost = put_on(client, self._at(path), row, fields, mode)

        def again(client: Any) -> None:
            self._late.add(path)
            with suppress(FileNotFoundError):
                client.remove(self._at(path))
            write(client)

        self._connection.change(write, again=again, made=lambda: False)
        return path, lost

    def _sweep_late(self) -> None:
        """Remove temporary files that a late request created, as far as they exist by now."""
        while self._late:
            path = self._at(self._late.pop())
            with suppress(CallError, OSError):
                self._connection.change(lambda client: client.remove(path), made=lambda: True)  # noqa: B023

    @contextmanager
    def _or_without(self, temporary: str) -> Iterator[None]:
        """Remove a temporary file when the block fails; recovery does so where this fails too."""
        try:
            yield
        except BaseException:
            with suppress(CallError, OSError):
                self._remove(temporary, FILE, temporary)
            raise

    def _rename_new(self, source: str, destination: str, shown: str) -> None:
        """Rename to a free name. FileExistsError and OSError."""
        rename = lambda client: client.rename(self._at(source), self._at(destination))  # noqa: E731
        try:
            self._change(shown, rename, lambda: self._is_renamed(source, destination))
        except ConnectionLost:
            raise
        except OSError:
            if self._look(destination) is not None:
                raise FileExistsError(errno.EEXIST, "already there") from None
            raise

    def _rename_over(self, source: str, destination: str, judged: Stat) -> None:
        """Rename over the judged file. CallError `path_changed`, and OSError."""

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
        """Remove a file, link or empty directory of our own. OSError."""
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
        try:
            resolved = self._connection.change(send, made=made, again=again)
        except OSError as error:
            # The protocol has a single code for most failures, and a server may fail after the change.
            if isinstance(error, ConnectionLost) or error.errno is not None or not made():
                raise
            resolved = True
        if resolved:
            self.note_resolved(shown)

    def _set(self, send: Callable[[Any], object]) -> None:
        """Set attributes, which may be repeated."""
        self._connection.change(send, made=lambda: False)

    def _make_state(self) -> None:
        if self._look(STATE) is not None:
            return
        self._make(STATE, lambda client: client.mkdir(self._at(STATE), 0o700), Stat(DIRECTORY))

        def ignore(client: Any) -> None:
            with client.open(self._at(f"{STATE}/.gitignore"), "w") as note:
                note.write(b"*\n")

        self._set(ignore)


def _own_name() -> str:
    return f".ringfence-{secrets.token_hex(8)}"
