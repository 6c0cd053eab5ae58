"""Name folding of a directory: whether `A` and `a`, or the two Unicode forms of `é`, are the same name.

Asks the file system where it can answer, otherwise compares names that exist. Never writes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable

from ringfence.policy.patterns.syntax import Folding

_CASE_SENSITIVE = 11  # _PC_CASE_SENSITIVE of Apple's pathconf(2)
_GET_FLAGS = 0x80086601  # FS_IOC_GETFLAGS of Linux's ioctl_iflags(2)
_CASEFOLD = 0x40000000  # FS_CASEFOLD_FL
_MAX_NAMES = 16  # compared names with ASCII letters; where case makes no difference, the first one shows it


def folding_of(fd: int, path: str) -> Folding:
    """Return which differences between names the open directory `fd` ignores; its own name is `path`.

    A single name found in another case is enough for `CASE`, so nobody who may choose names can hide it.
    Where no name decides, the default of this kind of machine applies.
    """
    apple = sys.platform == "darwin"
    ignores_case = _reported_case(fd, apple)
    if ignores_case is None:
        ignores_case = _compared_case(fd, path)
    if ignores_case or (ignores_case is None and apple):
        return Folding.CASE
    # Apple's file systems never distinguish the two forms.
    return Folding.FORM if apple or _ignores_form(fd) else Folding.NONE


def _reported_case(fd: int, apple: bool) -> bool | None:
    from ringfence.toolkit.fake_fs import is_faked

    if is_faked():
        return None
    if apple:
        try:
            return os.fpathconf(fd, _CASE_SENSITIVE) == 0
        except (OSError, ValueError):
            return None
    return True if sys.platform == "linux" and _flags(fd) & _CASEFOLD else None


def _flags(fd: int) -> int:
    import fcntl

    try:
        found = fcntl.ioctl(fd, _GET_FLAGS, bytes(8))
    except OSError:
        return 0  # a file system without flags
    return int.from_bytes(found[:4], sys.byteorder)


def _compared_case(fd: int, path: str) -> bool | None:
    """Whether a name in the directory, or its own, exists in another case; None if none has letters."""
    letters = (name for name in sorted(os.listdir(fd)) if _has_case(name))
    ignores_case = _any(
        _is_same_entry(name, name.swapcase(), fd) for name, _ in zip(letters, range(_MAX_NAMES), strict=False)
    )
    head, tail = os.path.split(path)
    if ignores_case is None and _has_case(tail):
        ignores_case = _is_same_entry(path, os.path.join(head, tail.swapcase()), None)
    return ignores_case


def _ignores_form(fd: int) -> bool:
    """Whether a name in the directory that has two Unicode forms is found by the other form."""
    for name in os.listdir(fd):
        if name.isascii():
            continue
        import unicodedata  # with its large table, and most names need none of it

        for form in ("NFC", "NFD"):
            other = unicodedata.normalize(form, name)
            if other != name and _is_same_entry(name, other, fd):
                return True
    return False


def _has_case(name: str) -> bool:
    # ASCII alone: other letters, such as `ı` and `ß`, change into letters that do not change back.
    return name.isascii() and name.lower() != name.upper()


def _any(found: Iterable[bool | None]) -> bool | None:
    answers = [each for each in found if each is not None]
    return any(answers) if answers else None


def _is_same_entry(name: str, other: str, fd: int | None) -> bool | None:
    """Whether both names are the same entry; None if the first no longer exists."""
    try:
        first = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
    try:
        return os.path.samestat(first, os.stat(other, dir_fd=fd, follow_symlinks=False))
    except (OSError, UnicodeError):
        return False
