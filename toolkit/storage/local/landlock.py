"""Landlock, a second confinement by the kernel: from then on this thread reaches only the named trees.

It does not replace confinement by descriptors: it cannot exclude `secrets/` from a root, and covers neither
stat nor chmod. It does cover a directory that is moved out of the root. Source: landlock(7).
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from typing import Any

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.fake_fs import is_faked

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same on every architecture that Python runs on
_NO_NEW_PRIVILEGES = 38
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_EXECUTE, _MAKE_CHAR, _MAKE_BLOCK = 1 << 0, 1 << 6, 1 << 11
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # number of access rights in each version; 16 from the fifth on
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | 1 << 15
_NETWORK, _SCOPES = 4, 6  # the versions that came with these
_BIND, _CONNECT = 1 << 0, 1 << 1  # a port over TCP
_ABSTRACT, _SIGNAL = 1 << 0, 1 << 1  # a socket or a process outside


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """Return the Landlock version of this kernel; 0 where it is missing, off, or the disk is a fake."""
    if sys.platform != "linux" or is_faked():
        return 0
    return max(0, int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def covered_kinds() -> tuple[str, ...]:
    """Return, in words, the kinds of access that this kernel can restrict."""
    known = version()
    return (
        *(["files"] if known else []),
        *(["TCP"] if known >= _NETWORK else []),
        *(["signals", "abstract sockets"] if known >= _SCOPES else []),
    )


def restrict(writable: Iterable[str], readable: Iterable[str], *, connects: bool = False) -> None:
    """Restrict this thread, and the threads it starts, to these trees. This cannot be undone.

    As far as the kernel can, no port can be opened, no other process signalled and no abstract socket
    reached; TCP connections only if `connects`. Names that do not exist are skipped. CallError `io_error` on
    failure.
    """
    known = version()
    if not known:
        raise CallError(
            "io_error", "This kernel has no Landlock, or it is off", hint="see `ringfence doctor`"
        )
    handled = (1 << _RIGHTS.get(known, 16)) - 1
    write = handled & ~(_EXECUTE | _MAKE_CHAR | _MAKE_BLOCK)
    ruleset, size = _ruleset(known, handled, connects)
    rules = _call(_CREATE, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for paths, rights in ((writable, write), (readable, _READ_FILE | _READ_DIR)):
            for path in paths:
                _allow(rules, path, rights & handled)
        if _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            raise _failed()
        _call(_RESTRICT, rules, ctypes.c_uint32(0))
    finally:
        os.close(rules)


def _ruleset(known: int, files: int, connects: bool) -> tuple[_Ruleset, int]:
    """Return the struct of what to refuse unless a rule allows it, and its size in bytes."""
    found = _Ruleset(files, _BIND if connects else _BIND | _CONNECT, _ABSTRACT | _SIGNAL)
    fields = 3 if known >= _SCOPES else 2 if known >= _NETWORK else 1
    return found, fields * ctypes.sizeof(ctypes.c_uint64)


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _FILE_RIGHTS
        beneath = _Beneath(rights, fd)
        _call(_ADD, rules, ctypes.c_int(1), ctypes.byref(beneath), ctypes.c_uint32(0))
    finally:
        os.close(fd)


def _call(number: int, *arguments: Any) -> int:
    found = int(_libc().syscall(number, *arguments))
    if found < 0:
        raise _failed()
    return found


def _failed() -> CallError:
    return CallError("io_error", f"Landlock was refused: {os.strerror(ctypes.get_errno())}")


def _libc() -> Any:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc
