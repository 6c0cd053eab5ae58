"""Opens the task store as a second root, and refuses directories that can never be one.

Creates nothing. The trash beside the store is created when it is first needed.
"""

from __future__ import annotations

import os
import stat as S
from pathlib import Path
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_ownership import doubt, trusted_owners
from ringfence.toolkit.locations import FILE, StoragePlace
from ringfence.toolkit.storage.backend import WritableTree
from ringfence.toolkit.storage.local_roots import local_path
from ringfence.toolkit.storage.task_mount import TaskMount
from ringfence.toolkit.task_ids import IN_TRASH

_SYSTEM = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr",
    "/System", "/Library",
)  # fmt: skip
_TOP = ("/", "/home", "/media", "/mnt", "/opt", "/private", "/root", "/run", "/srv", "/tmp", "/var", "/Users")


def mount_tasks(main: WritableTree, place: str, fs: Any, durable: bool, options: dict[str, Any]) -> TaskMount:
    """Return `main` with the task store at `place` joined to it.

    CallError `protected_path` for a place where nothing may ever be deleted, `not_confined`. A directory of
    this machine is opened when it is first needed.
    """
    path = local_path(place, fs, options)
    if path is not None:
        return _local(main, path, durable)
    if fs is None and place.startswith(("sftp://", "ssh://")):
        # Options of another kind of root apply to that root alone.
        return _sftp(main, place, options if main.place.protocols in (FILE, ("sftp",)) else {})
    from ringfence.toolkit.storage.fsspec_store.errors import errors
    from ringfence.toolkit.storage.open import open_store, private_memory, store_on

    if fs is None and place.startswith("memory://"):
        fs, place = private_memory(), "/" + place.removeprefix("memory://").strip("/")
        fs.makedirs(place, exist_ok=True)
    elif fs is None:
        fs, place = open_store(place, options)
    place = place.rstrip("/")
    store = store_on(fs, place)
    _check_store(store.place, main)
    trash_path = f"{place}.trash"

    def make_trash() -> None:
        """Create the trash beside the store. CallError."""
        with errors(IN_TRASH):
            # Some stores create nothing below a prefix that does not exist.
            fs.makedirs(trash_path, exist_ok=True)

    if "sftp" in fs.protocol:
        make_trash()  # a directory on a server can only be opened once it exists
    trash = store_on(fs, trash_path)
    return TaskMount(main, store, lambda: trash, make_trash)


def _sftp(main: WritableTree, url: str, options: dict[str, Any]) -> TaskMount:
    from ringfence.toolkit.storage.sftp import open_sftp

    store = open_sftp(url, options)
    try:
        _check_store(store.place, main)
        trash = store.sibling(".trash")
    except BaseException:
        store.close()
        raise
    return TaskMount(main, store, lambda: trash, lambda: None)


def _check_store(place: StoragePlace, main: WritableTree) -> None:
    if not place.path.strip("/"):
        raise _refused("the top of a store")
    if place.holds(main.place):
        raise _refused("the workspace itself")


def _local(main: WritableTree, place: str, durable: bool) -> TaskMount:
    from ringfence.toolkit.storage.local.entries import errors
    from ringfence.toolkit.storage.local.opening import open_local, refuse_windows

    refuse_windows()
    real = os.path.realpath(place)
    _refuse_unsafe(real, main.root)
    trash_path = Path(f"{real}.trash")

    def store() -> WritableTree:
        _check_directory(real)
        return open_local(real, durable=durable)

    def make_trash() -> None:
        with errors(IN_TRASH):
            trash_path.mkdir(0o700, exist_ok=True)

    def trash() -> WritableTree | None:
        return open_local(str(trash_path), durable=durable) if is_trash(str(trash_path), real) else None

    # Opened when it is first needed, so that a missing folder only stops the task tools.
    return TaskMount(main, None, trash, make_trash, reopen=store, root=real)


def is_trash(trash_path: str, store: str) -> bool:
    """Whether the trash exists. CallError where it is a link, or somebody else may have created it.

    The owner of the store is trusted, because that account can read and change the tasks anyway.
    """
    trash = Path(trash_path)
    if trash.is_symlink():
        raise CallError("path_changed", "The trash of the task store is a link, which is not followed")
    if not trash.is_dir():
        return False
    why = doubt(trash_path, trash.stat(), trusted_owners() | {Path(store).stat().st_uid})
    if why is not None:
        message = f"The trash of the task store {why}, so it is not used"
        hint = "a person has to check its content, and remove it or make it private (chown, chmod go-w)"
        raise CallError("permission_denied", message, where="tasks", hint=hint)
    return True


def _check_directory(real: str) -> None:
    """Refuse a place that is no directory, cannot be read, or belongs to somebody else through a link."""
    code, hint = "not_found", "it does not exist; name the folder with --tasks"
    try:
        if os.path.realpath(real) != real:
            code, hint = "path_changed", "it was replaced by a link, which is not followed"
        elif not S.S_ISDIR(Path(real).stat().st_mode):
            code, hint = "not_a_directory", "it is not a directory; name the folder with --tasks"
        elif not os.access(real, os.R_OK | os.X_OK):
            code, hint = "permission_denied", "the user of Ringfence may not read it"
        else:
            return
    except PermissionError:
        code, hint = "permission_denied", "the user of Ringfence has no access to it"
    except OSError:
        pass
    raise CallError(code, "Cannot resolve storage directory", where="tasks", hint=hint)


def _refuse_unsafe(real: str, root: str) -> None:
    home = os.path.realpath(Path.home())
    if real in _TOP:
        raise _refused("a top directory of the system")
    if any(real == top or real.startswith(top + "/") for top in _SYSTEM):
        raise _refused("a system directory")
    if real == home or home.startswith(real + "/") or str(Path(real).parent) in ("/home", "/Users"):
        raise _refused("a home directory")
    if root == real or root.startswith(real + "/"):
        raise _refused("the workspace itself")


def _refused(what: str) -> CallError:
    message = f"The task folders cannot be in {what}"
    return CallError("protected_path", message, where="tasks", hint="give a folder that holds only tasks")
