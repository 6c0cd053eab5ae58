"""Metadata of an entry on an SFTP server: reads owner, group and times (in seconds), and sets them.

What the server refuses is reported. Set-id bits are set only with owner and group.
"""

from __future__ import annotations

import stat as S
from typing import Any

from ringfence.toolkit.plan.changes import SET_ID
from ringfence.toolkit.plan.metadata import Metadata, NotKept

OWNER, TIMES = "owner", "times"  # the fields


def fields_of(row: Any) -> Metadata:
    """Return the fields of an entry, as far as the server reports them."""
    found: dict[str, Any] = {}
    if row.st_uid is not None and row.st_gid is not None:
        found[OWNER] = [row.st_uid, row.st_gid]
    if row.st_mtime is not None:
        found[TIMES] = [row.st_mtime if row.st_atime is None else row.st_atime, row.st_mtime]
    return found


def needs_only_mode(row: Any, metadata: Metadata, mode: int | None) -> bool:
    """Whether a new file has all of its fields once its mode is set; `row` is its present state."""
    owner = metadata.get(OWNER)
    owned = owner == [row.st_uid, row.st_gid]
    return TIMES not in metadata and (owned or (owner is None and not (mode or 0) & SET_ID))


def set_on(client: Any, path: bytes, row: Any, metadata: Metadata, mode: int | None) -> NotKept:
    """Set fields and mode of a file or directory of our own; `row` is its present state.

    Returns the fields that could not be set. OSError only for the mode.
    """
    refused: list[str] = []
    # Before the mode: changing the owner takes set-id bits away.
    owned = _set_owner(client, path, row, metadata.get(OWNER), refused)
    if mode is not None:
        bits = 0 if row.st_mode is not None and S.S_ISDIR(row.st_mode) else mode & SET_ID
        if bits and not owned:
            refused.append("set-id bits")
            mode &= ~bits
        client.chmod(path, mode)
    if TIMES in metadata:
        try:
            client.utime(path, tuple(metadata[TIMES]))
        except OSError:
            refused.append("times")
    return tuple(refused)


def not_set_on_link(row: Any, metadata: Metadata) -> NotKept:
    """Return the fields that a new link lacks: the protocol changes only the entry that a link leads to."""
    owner = OWNER in metadata and metadata[OWNER] != [row.st_uid, row.st_gid]
    return (*(("owner",) if owner else ()), *(("times",) if TIMES in metadata else ()))


def _set_owner(client: Any, path: bytes, row: Any, wanted: list[int] | None, refused: list[str]) -> bool:
    """Whether owner and group are the wanted ones afterwards."""
    if wanted is None or wanted == [row.st_uid, row.st_gid]:
        return wanted is not None
    uid, gid = wanted
    for both in ((uid, gid), (row.st_uid, gid)):
        try:
            client.chown(path, *both)  # only root may give a file away, and others its group at most
        except OSError:
            continue
        break
    now = client.lstat(path)
    refused += [
        word for word, same in (("owner", now.st_uid == uid), ("group", now.st_gid == gid)) if not same
    ]
    return [now.st_uid, now.st_gid] == wanted
