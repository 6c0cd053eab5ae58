"""Bulk sync: many changes made durable by one flush of the file system, instead of two flushes per file.

Only for changes that can be repeated from the history, where their content is on disk already.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from ringfence.toolkit.storage.local import syscalls
from ringfence.toolkit.storage.local.entries import errors

if TYPE_CHECKING:
    from ringfence.toolkit.storage.local.spot import LocalSpot


class _Disk(Protocol):
    durable: bool

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> LocalSpot: ...

    def release(self, spot: LocalSpot) -> None: ...


@contextmanager
def sync_once(disk: _Disk) -> Iterator[None]:
    """Sync nothing during the block, and everything at its end, also after an error."""
    if not disk.durable:
        yield
        return
    disk.durable = False
    try:
        yield
    finally:
        disk.durable = True
        root = disk.resolve((), follow=False)
        with errors("."):
            if not syscalls.sync_file_system(root.fd):
                os.sync()
        disk.release(root)
