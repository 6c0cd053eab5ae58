"""Quarantine directory for deletions: beside the state, or `.ringfence/` in the workspace.

Beside the state where one rename reaches it, because `git clean` and people who tidy up do not reach it
there. Never a directory in the workspace that git would commit.
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
from ringfence.toolkit.storage.local import syscalls
from ringfence.toolkit.storage.local.entries import LIST, NEW, READ, unlink_quietly

QUARANTINE = "quarantine"  # the name of the directory beside the state
_GITIGNORE = b"*\n"
_TEMPORARY_PREFIX = ".gitignore-"


def open_beside_state(state: str, root: int, kernel: syscalls.Kernel, *, make: bool) -> int | None:
    """Return a descriptor of the quarantine in the state's directory; the caller closes it.

    None where that is on another mount than the directory open as `root`, or where the quarantine does not
    exist and `make` is false. OSError.
    """
    folder = os.open(state, LIST)
    try:
        if syscalls.mount_of(folder, kernel) != syscalls.mount_of(root, kernel):
            return None
        if make:
            try:
                os.mkdir(QUARANTINE, 0o700, dir_fd=folder)
                os.fsync(folder)
            except FileExistsError:
                pass
        return os.open(QUARANTINE, LIST, dir_fd=folder)
    except FileNotFoundError:
        return None
    finally:
        os.close(folder)


@contextmanager
def open_in_workspace(root: int) -> Iterator[int]:
    """Yield a descriptor of the quarantine in the workspace that is open as `root`.

    The directory is created, and ignored by git, when it is first needed. CallError `history_unavailable`
    where that fails, and OSError.
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
            _require_private(fd)
        _write_gitignore(fd)
        yield fd
    finally:
        os.close(fd)


def _require_private(fd: int) -> None:
    """Refuse a directory that others own or may write to, because they could replace its entries."""
    info = os.fstat(fd)
    reason = doubt(OWN_DIRECTORY, info)
    if reason is not None:
        raise CallError(
            "history_unavailable",
            f"'{OWN_DIRECTORY}' in the workspace {reason}, so nothing can be deleted",
            hint=f"a person has to check it, then chown it or run `chmod go-rwx {OWN_DIRECTORY}`",
        )
    if info.st_mode & 0o077 and info.st_uid == os.geteuid():
        os.fchmod(fd, 0o700)


def _write_gitignore(folder: int) -> None:
    """Write the directory's .gitignore whole: with a part of it, `git add` would add deleted files."""
    try:
        found = os.stat(".gitignore", dir_fd=folder, follow_symlinks=False)
        if (
            S.S_ISREG(found.st_mode)
            and found.st_size == len(_GITIGNORE)
            and _read_gitignore(folder) == _GITIGNORE
        ):
            return
    except FileNotFoundError:
        pass
    temporary = f"{_TEMPORARY_PREFIX}{secrets.token_hex(8)}"
    try:
        fd = os.open(temporary, NEW, 0o600, dir_fd=folder)
        try:
            os.write(fd, _GITIGNORE)
        finally:
            os.close(fd)
        os.rename(temporary, ".gitignore", src_dir_fd=folder, dst_dir_fd=folder)
        for name in os.listdir(folder):
            if name.startswith(_TEMPORARY_PREFIX):  # left by a killed process
                unlink_quietly(name, folder)
    except FileNotFoundError:
        pass  # removed by a process that has just written its own
    except OSError as error:
        unlink_quietly(temporary, folder)
        message = f"'{OWN_DIRECTORY}/.gitignore' cannot be written ({error.strerror}), so nothing was deleted"
        raise CallError("history_unavailable", message, hint="free space, or correct its rights") from None


def _read_gitignore(folder: int) -> bytes:
    try:
        fd = os.open(".gitignore", READ, dir_fd=folder)
    except PermissionError:
        return _GITIGNORE  # of another account, whose process wrote it whole
    try:
        return os.read(fd, len(_GITIGNORE) + 1)
    finally:
        os.close(fd)
