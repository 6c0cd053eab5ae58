"""Landlock, a second wall by the kernel: from then on this thread reaches only what was named.

It never replaces the confinement by descriptors: it cannot take `secrets/` out of a root, and it does not
cover looking at an entry or changing its mode. It does hold a directory that is moved out of the root.
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
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many rights each version knows; 16 from the fifth on
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
    """The version of Landlock this kernel has; 0 where there is none, it is off, or the disk is a fake."""
    if sys.platform != "linux" or is_faked():
        return 0
    return max(0, int(_libc().syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))))


def held() -> tuple[str, ...]:
    """What this kernel can hold a process to, in words."""
    known = version()
    return (
        *(["files"] if known else []),
        *(["TCP"] if known >= _NETWORK else []),
        *(["signals", "abstract sockets"] if known >= _SCOPES else []),
    )


def restrict(writable: Iterable[str], readable: Iterable[str], *, connects: bool = False) -> None:
    """Leave this thread, and those it starts, only these trees; there is no way back.

    As far as the kernel can, it takes no port either, signals no other process and reaches no abstract
    socket; it connects over TCP only if it `connects`. Names that do not exist are passed over. Raises
    CallError `io_error` where it cannot be done.
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
    """What is refused unless a rule allows it, and how many bytes of it the kernel knows."""
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
