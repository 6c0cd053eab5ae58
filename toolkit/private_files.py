"""Private directories and files: created for one user alone, whatever the umask, and checked.

Modes that let others read are corrected; files that others own or can write to are refused.
"""

from __future__ import annotations

import os
import stat as S

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.file_ownership import ANOTHERS, doubt

_OTHERS = 0o077


def private_directory(place: str) -> None:
    """Make the directory `place` and its missing parents, or check that it and its files are private.

    Raises CallError `history_unavailable` if another user owns any of it or can write to it, and OSError.
    """
    try:
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        os.mkdir(place, 0o700)
    except FileExistsError:
        _hold_to_owner(place, os.stat(place), 0o700)
    else:
        os.chmod(place, 0o700)  # an unusual umask takes rights from the owner, too
        return
    with os.scandir(place) as entries:
        for entry in entries:
            try:
                info = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # another process has just removed it
            if not S.S_ISSOCK(info.st_mode):
                _hold_to_owner(entry.path, info, 0o700 if S.S_ISDIR(info.st_mode) else 0o600)


def private_file(place: str) -> None:
    """Make the empty file `place`, accessible to its owner alone, unless it exists. Raises OSError."""
    try:
        fd = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    try:
        os.fchmod(fd, 0o600)
    finally:
        os.close(fd)


def _hold_to_owner(place: str, info: os.stat_result, mode: int) -> None:
    name = os.path.basename(place)
    if S.S_ISLNK(info.st_mode):
        raise _refused(f"'{name}' in the state is a link", "remove it, or choose another --state")
    why = doubt(place, info, frozenset((os.geteuid(),)))
    if why is not None:
        hint = "make sure that nobody else put anything there, then run `chmod -R go-rwx` on it"
        if why == ANOTHERS:
            hint = "choose another --state, or run as the user who owns it"
        raise _refused(f"The state '{name}' {why}", hint)
    if info.st_mode & _OTHERS:
        os.chmod(place, mode)


def _refused(message: str, hint: str) -> CallError:
    return CallError("history_unavailable", f"{message}, so it is not used", hint=hint)
