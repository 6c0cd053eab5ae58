"""Many changes made durable at once: one flush of the file system at the end instead of two for each file.

Only for what can be made again from the history, where it is on the disk already.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from ringfence.toolkit.storage.local import syscalls as kernel
from ringfence.toolkit.storage.local.entries import errors

if TYPE_CHECKING:
    from ringfence.toolkit.storage.local.resolver import LocalSpot


class _Disk(Protocol):
    durable: bool

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> LocalSpot: ...

    def release(self, spot: LocalSpot) -> None: ...


@contextmanager
def together(disk: _Disk) -> Iterator[None]:
    """Sync nothing inside, and everything at the end, also of what failed half-way."""
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
            if not kernel.sync_file_system(root.fd):
                os.sync()
        disk.release(root)
