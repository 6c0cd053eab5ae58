"""Temporary files of writes, in few round trips: what a write replaces is checked while content is sent."""

from __future__ import annotations

import errno
import secrets
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import StoragePlace
from ringfence.toolkit.plan.changes import Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.sftp.connection import Connection
from ringfence.toolkit.storage.sftp.metadata import OWNER, fields_of, needs_only_mode, set_on
from ringfence.toolkit.storage.sftp.requests import (
    accepted,
    attributes,
    chmod,
    close,
    closing,
    content,
    is_refused,
    lstats,
    open_new,
    open_to_read,
    sync,
    together,
    value,
    writes,
)
from ringfence.toolkit.storage.sftp.spots import is_same
from ringfence.toolkit.storage.sftp.view import SftpView
from ringfence.toolkit.storage.store_base import NewContent


@dataclass(frozen=True, slots=True)
class Replaced:
    """The file that is replaced: the judged version, and its content where that is known."""

    stat: Stat
    before: bytes | None


class TemporaryFiles(SftpView):
    """Temporary files beside the files that they become, by a rename."""

    def __init__(self, connection: Connection, root: str, server: StoragePlace) -> None:
        super().__init__(connection, root, server)
        self._late_temporaries: set[str] = set()  # that a request over a lost connection may still create

    def close(self) -> None:
        self._sweep_late()
        super().close()

    def _temporary_beside(self, path: str, name: str) -> str:
        self._sweep_late()
        return paths.child(paths.parent(path), name or temporary_name())

    def _write_temporary(
        self, temporary: str, target: str, new: NewContent, over: Replaced | None = None
    ) -> NotKept:
        """Write a temporary file that is to become `target`; return the fields that were not kept.

        CallError `path_changed` where a directory above is a link now, or `over` is not there any more.
        """
        not_kept: NotKept = ()

        def write(client: Any) -> None:
            nonlocal not_kept
            not_kept = self._write(client, temporary, target, new, over)

        def again(client: Any) -> None:
            self._late_temporaries.add(temporary)
            with suppress(FileNotFoundError):
                client.remove(self._absolute(temporary))
            write(client)

        self._connection.change(write, again=again, made=lambda: False)
        return not_kept

    def _write(
        self, client: Any, temporary: str, target: str, new: NewContent, over: Replaced | None
    ) -> NotKept:
        path, at_target = self._absolute(temporary), self._absolute(target)
        handle, row, fields = self._create(client, path, target, new.metadata, over)
        only_mode = needs_only_mode(row, fields, new.mode)
        mode = [chmod(handle, new.mode)] if only_mode and new.mode is not None else []
        # The round trip before has shown that it is neither a pipe nor a link.
        reading = [] if over is None or over.before is None else [open_to_read(at_target)]
        ending = [sync(handle), closing(handle), *lstats([path]), *reading]
        replies = together(client, [*writes(handle, new.data), *mode, *ending])
        opened = replies.pop() if reading else None
        try:
            *written, synced, closed, there = replies
            accepted([*written, None if is_refused(synced) else synced, closed])
            self._check_size(client, path, attributes(there), len(new.data))
            not_kept = () if only_mode else set_on(client, path, row, fields, new.mode)
            if over is not None:
                self._check_replaced(client, target, over, opened)
        finally:
            if isinstance(opened, bytes):
                close(client, opened)
        return not_kept

    def _create(
        self, client: Any, path: bytes, target: str, metadata: Metadata, over: Replaced | None
    ) -> tuple[bytes, Any, Metadata]:
        """Create the file; returns its handle and attributes, and the fields that are to be set."""
        way = self._way_to(target)
        looks = [] if over is None else lstats([self._absolute(target)])
        *rows, opened, made = together(client, [*way, *looks, open_new(path), *lstats([path])])
        try:
            self._check_way(target, rows[: len(way)])
            if over is not None:
                metadata = {**self._owner(target, over.stat, rows[-1]), **metadata}
            handle, row = value(opened, bytes), attributes(made)
        except BaseException:
            if isinstance(opened, bytes):
                close(client, opened)
            raise
        return handle, client.lstat(path) if row is None else row, metadata

    def _owner(self, path: str, judged: Stat, reply: Any) -> Metadata:
        """Return owner and group of the judged file. CallError `path_changed`."""
        row = self._row_of(path, judged, reply)
        return {name: owner for name, owner in fields_of(row).items() if name == OWNER}

    def _row_of(self, path: str, judged: Stat, reply: Any) -> Any:
        """Return the attributes of the judged file. CallError `path_changed`."""
        row = attributes(reply)
        if row is None or not is_same(judged, self._stat(path, row)):
            raise path_changed(path)
        return row

    def _check_size(self, client: Any, path: bytes, row: Any, size: int) -> None:
        if row is None or row.st_size != size:
            row = client.lstat(path)  # a server may have looked before it wrote
        if row.st_size != size:
            raise OSError(errno.EIO, "the server did not keep what was written")

    def _check_replaced(self, client: Any, path: str, over: Replaced, opened: Any) -> None:
        """Raise CallError `path_changed` unless the file and its content are still the judged ones.

        As late as possible: between this check and the rename nothing stops another writer.
        """
        looks = [*self._way_to(path), *lstats([self._absolute(path)])]
        if over.before is None:
            replies = together(client, looks)
        else:
            limit = len(over.before)
            row, data, replies = content(client, value(opened, bytes), limit, limit, looks)
            self._row_of(path, over.stat, row)
            if data != over.before:
                raise CallError("path_changed", f"'{path}' changed after it was read", where=path)
        self._check_way(path, replies[:-1])
        self._row_of(path, over.stat, replies[-1])

    def _sweep_late(self) -> None:
        """Remove the temporary files that a late request has created by now."""
        while self._late_temporaries:
            path = self._absolute(self._late_temporaries.pop())
            with suppress(CallError, OSError):
                self._connection.change(lambda client: client.remove(path), made=lambda: True)  # noqa: B023


def temporary_name() -> str:
    """Return the name of a temporary file that no intent names."""
    return f".ringfence-{secrets.token_hex(8)}"
