"""SFTP server as a confined tree that can be changed, by the same steps as on disk where possible.

The protocol has no directory descriptors, so a process on the server that swaps names can win the race:
`race_free` is not among its traits.
"""

from __future__ import annotations

import errno
import stat as S
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from ringfence.policy.byte_names import to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, Delete, Entry, Move, Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.storage.ambiguous_outcome import NO_REPLY
from ringfence.toolkit.storage.backend import FailedEntry, path_changed
from ringfence.toolkit.storage.sftp.connection import ConnectionLost, changing, errors
from ringfence.toolkit.storage.sftp.metadata import not_set_on_link, set_on
from ringfence.toolkit.storage.sftp.names import to_server
from ringfence.toolkit.storage.sftp.requests import accepted, entries, removal, together
from ringfence.toolkit.storage.sftp.spots import SftpSpot, is_same
from ringfence.toolkit.storage.sftp.temporary_files import Replaced, TemporaryFiles, temporary_name
from ringfence.toolkit.storage.store_base import NewContent

_REMOVED_AT_ONCE = 64


class Sftp(TemporaryFiles):
    """The tree below `root` on a server."""

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
            temporary = self._temporary_beside(spot.path, new.temporary)
            with self._cleanup(temporary):
                not_kept = self._write_temporary(temporary, spot.path, new)
                self._rename_new(temporary, spot.path, spot.path)
        return not_kept

    def _put_over(self, spot: SftpSpot, new: NewContent, stat: Stat, before: bytes | None) -> NotKept:
        with changing(spot.path):
            temporary = self._temporary_beside(spot.path, new.temporary)
            wanted = replace(new, mode=stat.mode if new.mode is None else new.mode)
            with self._cleanup(temporary):
                not_kept = self._write_temporary(temporary, spot.path, wanted, Replaced(stat, before))
                self._rename_over(temporary, spot.path, stat, checked=True)
        return not_kept

    def remove(self, spot: SftpSpot, change: Delete, temporary: str) -> Iterator[str | FailedEntry]:
        """Rename the entry, compare it with the listing, then delete exactly that."""
        quarantined = f"{OWN_DIRECTORY}/{temporary or temporary_name()}"
        with changing(spot.path):
            [quarantine] = self._look_at(OWN_DIRECTORY, above=(spot.path,))
            if quarantine is None:
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
        for step in self._remove_entries(quarantined, change):
            incomplete |= isinstance(step, FailedEntry)
            yield step
        if incomplete:
            with changing(spot.path):
                self._rename_new(quarantined, spot.path, spot.path)

    def move(self, source: SftpSpot, destination: SftpSpot, change: Move) -> NotKept:
        with errors(source.path):
            [now] = self._look_at(source.path, above=(source.path, destination.path))
            if now is None or not is_same(change.stat, now):
                raise path_changed(source.path)
        with changing(destination.path):
            if change.over is None:
                self._rename_new(source.path, destination.path, source.path)
            else:
                self._rename_over(source.path, destination.path, change.over)
        return ()

    def make_directory(self, spot: SftpSpot) -> None:
        with changing(spot.path):
            if self._look_at(spot.path, above=(spot.path,)) != [None]:
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
            self._look_at(spot.path, above=(spot.path,))
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

    def _rename_over(self, source: str, destination: str, judged: Stat, *, checked: bool = False) -> None:
        """Rename over the judged file, which may be `checked` already. CallError `path_changed`, OSError."""

        def rename(client: Any) -> None:
            # As late as possible: between this check and the rename nothing stops another writer.
            if not checked:
                self._check_same(destination, judged)
            client.posix_rename(self._absolute(source), self._absolute(destination))

        def again(client: Any) -> None:
            nonlocal checked
            if self._is_renamed(source, destination):
                raise FileNotFoundError
            checked = False
            rename(client)

        self._change(destination, rename, lambda: self._is_renamed(source, destination), again)

    def _is_renamed(self, source: str, destination: str) -> bool:
        there, arrived = self._look_at(source, destination)
        return there is None and arrived is not None

    def _remove(self, path: str, kind: str, reported: str) -> None:
        """Remove a file, link or empty directory of our own. OSError."""
        self._change(
            reported,
            lambda client: (client.rmdir if kind == DIRECTORY else client.remove)(self._absolute(path)),
            lambda: self._lookup(path) is None,
        )

    def _remove_entries(self, quarantined: str, change: Delete) -> Iterator[str | FailedEntry]:
        """Remove a quarantined entry and everything below it: files first, then directories from below."""
        entries = (*reversed(change.entries), Entry(change.path, change.stat))
        files = [entry for entry in entries if entry.stat.kind != DIRECTORY]
        levels = [files[at : at + _REMOVED_AT_ONCE] for at in range(0, len(files), _REMOVED_AT_ONCE)]
        depths = {entry.path: entry.path.count("/") for entry in entries if entry.stat.kind == DIRECTORY}
        levels += [
            [entry for entry in entries if depths.get(entry.path) == depth]
            for depth in sorted(set(depths.values()), reverse=True)
        ]
        for level in levels:
            places = {entry.path: quarantined + entry.path[len(change.path) :] for entry in level}
            yield from self._remove_level(level, places)

    def _remove_level(self, entries: list[Entry], places: dict[str, str]) -> Iterator[str | FailedEntry]:
        """Remove entries in one round trip; none of them is below another."""
        sent = 0

        def send(client: Any) -> list[Any]:
            nonlocal sent
            sent += 1
            return together(
                client,
                [
                    removal(self._absolute(places[entry.path]), entry.stat.kind == DIRECTORY)
                    for entry in entries
                ],
            )

        with changing(entries[0].path):
            replies = self._connection.change_alike(send)
        for entry, reply in zip(entries, replies, strict=True):
            try:
                with changing(entry.path):
                    if self._is_removed(reply, places[entry.path], again=sent > 1):
                        self.note_resolved(entry.path)
            except CallError as error:
                if error.code == NO_REPLY:  # the server would not reply to the rest either
                    raise
                yield FailedEntry(entry.path, error.message, error.code)
            else:
                yield entry.path

    def _is_removed(self, reply: Any, path: str, *, again: bool) -> bool:
        """Return whether an entry is known to be removed although the reply is an error. OSError."""
        if not isinstance(reply, OSError):
            accepted([reply])
            return False
        # The protocol has a single code for most failures, and a server may fail after the change.
        if (again and isinstance(reply, FileNotFoundError)) or (
            reply.errno is None and self._lookup(path) is None
        ):
            return True
        raise reply

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
        self._make(
            OWN_DIRECTORY, lambda client: client.mkdir(self._absolute(OWN_DIRECTORY), 0o700), Stat(DIRECTORY)
        )

        def ignore(client: Any) -> None:
            with client.open(self._absolute(f"{OWN_DIRECTORY}/.gitignore"), "w") as file:
                file.write(b"*\n")

        self._set(ignore)
