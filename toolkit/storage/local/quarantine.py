"""Quarantine directory for deletions: beside the state, or `.ringfence/` in the workspace.

Beside the state where one rename reaches it, out of the way of `git clean` and of people who tidy up. Never a
directory in the workspace that git would commit.
"""

from __future__ import annotations

import os
import secrets
import stat as S
from collections.abc import Iterator
from contextlib import contextmanager

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_ownership import doubt
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.storage.local import syscalls as kernel
from ringfence.toolkit.storage.local.entries import LIST, NEW, READ, unlink_quietly

BESIDE = "quarantine"  # its name in the folder of the state
_IGNORED = b"*\n"
_PART = ".gitignore-"


def beside(state: str, root: int, able: kernel.Kernel, *, make: bool) -> int | None:
    """Open the quarantine in the state's directory.

    None on another mount, or if missing and not to be made.

    OSError.
    """
    folder = os.open(state, LIST)
    try:
        if kernel.mount_of(folder, able) != kernel.mount_of(root, able):
            return None
        if make:
            try:
                os.mkdir(BESIDE, 0o700, dir_fd=folder)
                os.fsync(folder)
            except FileExistsError:
                pass
        return os.open(BESIDE, LIST, dir_fd=folder)
    except FileNotFoundError:
        return None
    finally:
        os.close(folder)


@contextmanager
def hidden(root: int) -> Iterator[int]:
    """Open the quarantine in the workspace; it is created, and ignored by git, when it is first needed.

    CallError `history_unavailable` where that fails, and OSError.
    """
    try:
        os.mkdir(OWN_DIRECTORY, 0o700, dir_fd=root)
        made = True
    except FileExistsError:
        made = False
    try:
        fd = os.open(OWN_DIRECTORY, LIST, dir_fd=root)
    except NotADirectoryError:
        message = f"'{OWN_DIRECTORY}' in the workspace is not a directory, so nothing can be deleted"
        raise CallError(
            "history_unavailable", message, hint=f"a person has to move '{OWN_DIRECTORY}' away"
        ) from None
    try:
        if not made:
            _hold_to_owner(fd)
        _keep_from_git(fd)
        yield fd
    finally:
        os.close(fd)


def _hold_to_owner(fd: int) -> None:
    """Refuse a directory that others own or may write to, because they could replace what is in it."""
    info = os.fstat(fd)
    why = doubt(OWN_DIRECTORY, info)
    if why is not None:
        raise CallError(
            "history_unavailable",
            f"'{OWN_DIRECTORY}' in the workspace {why}, so nothing can be deleted",
            hint=f"a person has to check it, then chown it or run `chmod go-rwx {OWN_DIRECTORY}`",
        )
    if info.st_mode & 0o077 and info.st_uid == os.geteuid():
        os.fchmod(fd, 0o700)


def _keep_from_git(folder: int) -> None:
    """Write the directory's .gitignore completely: with less of it, `git add` would add deleted files."""
    try:
        found = os.stat(".gitignore", dir_fd=folder, follow_symlinks=False)
        if S.S_ISREG(found.st_mode) and found.st_size == len(_IGNORED) and _read(folder) == _IGNORED:
            return
    except FileNotFoundError:
        pass
    part = f"{_PART}{secrets.token_hex(8)}"
    try:
        note = os.open(part, NEW, 0o600, dir_fd=folder)
        try:
            os.write(note, _IGNORED)
        finally:
            os.close(note)
        os.rename(part, ".gitignore", src_dir_fd=folder, dst_dir_fd=folder)
        for name in os.listdir(folder):
            if name.startswith(_PART):  # left by a killed process
                unlink_quietly(name, folder)
    except FileNotFoundError:
        pass  # removed by a process that has just finished its own
    except OSError as error:
        unlink_quietly(part, folder)
        message = f"'{OWN_DIRECTORY}/.gitignore' cannot be written ({error.strerror}), so nothing was deleted"
        raise CallError("history_unavailable", message, hint="free space, or correct its rights") from None


def _read(folder: int) -> bytes:
    try:
        note = os.open(".gitignore", READ, dir_fd=folder)
    except PermissionError:
        return _IGNORED  # it belongs to another account, and is complete
    try:
        return os.read(note, len(_IGNORED) + 1)
    finally:
        os.close(note)
