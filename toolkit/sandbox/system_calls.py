"""System calls that Python has no function for, by ctypes: mounts, namespaces, prctl, seccomp, Landlock.

Numbers are those of x86-64 and aarch64. Each function raises OSError with the system's reason.
"""

from __future__ import annotations

import ctypes
import os
import platform
import select
import signal
import struct
import sys
from typing import Any

CLONE_NEWTIME, CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x80, 0x20000, 0x2000000, 0x4000000
CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x8000000, 0x10000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 4096, 16384, 1 << 18
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV = 1, 2, 4
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
_MOUNT_SETATTR, _CLOSE_RANGE, _CLOSE_ON_EXEC = 442, 436, 4  # the same on every architecture
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_CLONE = {"x86_64": 56, "aarch64": 220}
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SECCOMP_SET_MODE_FILTER = 1
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_SECUREBITS = 1, 4, 24, 28
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 36, 38, 47, 4
_SECURE_ALL_LOCKED = 0b11101111  # no root, no set-uid fix-up, no keeping, no raising: each set and locked
_CAPABILITY_VERSION_3 = 0x20080522

MACHINE = platform.machine()
_libc: Any = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
_python: Any = ctypes.PyDLL(None, use_errno=True) if sys.platform == "linux" else None
for _library in (_libc, _python):
    if _library is not None:
        _library.syscall.restype = ctypes.c_long
_zero = ctypes.c_ulong(0)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def fork_into(flags: int) -> int:
    """Fork; the child is the first process of the new namespaces that `flags` names. Only in one thread.

    Python's own fork does no more than this for a process with one thread: locks are free, and the C library
    asks the kernel for its process number. The interpreter's lock is kept over the call.
    """
    given = (ctypes.c_ulong(flags | signal.SIGCHLD), _zero, _zero, _zero, _zero)
    return _checked(_python.syscall(_CLONE[MACHINE], *given), "clone")


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """mount(2)."""
    given = ctypes.c_ulong(flags)
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, options)]
    _checked(_libc.mount(texts[0], texts[1], texts[2], given, texts[3]), f"mount {kind or 'bind'} {target}")


def mount_attributes(path: str, *, give: int = 0, take: int = 0, recursive: bool = False) -> None:
    """Set and clear ATTR_ flags of a mount, or of it and all below it."""
    attributes = struct.pack("QQQQ", give, take, 0, 0)
    flags = ctypes.c_uint(_AT_RECURSIVE if recursive else 0)
    size = ctypes.c_size_t(len(attributes))
    call = (_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), flags, attributes, size)
    _checked(_libc.syscall(*call), f"mount_setattr {path}")


def close_from(first: int, *, on_exec: bool = False) -> None:
    """Close every descriptor from `first` on, at once or when a program is started."""
    flags = ctypes.c_uint(_CLOSE_ON_EXEC if on_exec else 0)
    call = (_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(0xFFFFFFFF), flags)
    _checked(_libc.syscall(*call), "close_range")


def _prctl(option: int, value: int, more: int = 0) -> None:
    given = (ctypes.c_ulong(value), ctypes.c_ulong(more), _zero, _zero)
    _checked(_libc.prctl(ctypes.c_int(option), *given), f"prctl {option}")


def die_with_parent(parent: int) -> None:
    """Have this process killed once its parent is dead; ends it if it is already.

    `parent` is a descriptor of the parent, from `os.pidfd_open`: its number says nothing in a pid namespace.
    """
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([parent], [], [], 0)[0]:
        os._exit(1)


def not_dumpable() -> None:
    """Keep other processes of this user from reading this one through /proc."""
    _prctl(_PR_SET_DUMPABLE, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def no_new_privileges() -> None:
    """Make set-id bits and file capabilities without effect from now on."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Drop every capability from every set, for good."""
    _libc.prctl(_PR_CAP_AMBIENT, ctypes.c_ulong(_PR_CAP_AMBIENT_CLEAR_ALL), _zero, _zero, _zero)
    _libc.prctl(_PR_SET_SECUREBITS, ctypes.c_ulong(_SECURE_ALL_LOCKED), _zero, _zero, _zero)
    capability = 0
    # Refused for a number the kernel does not know, and without the right, when there is nothing to drop.
    while (
        capability < 64
        and _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), _zero, _zero, _zero) == 0
    ):
        capability += 1
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _checked(_libc.capset(header, bytes(24)), "capset")


def landlock_version() -> int:
    """Return the Landlock version of this kernel; 0 where it is missing or off."""
    found = _libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint(1))
    return max(0, int(found))


def landlock_create(attributes: bytes) -> int:
    """Return the descriptor of a new rule set."""
    size = ctypes.c_size_t(len(attributes))
    return _checked(_libc.syscall(_LANDLOCK_CREATE, attributes, size, ctypes.c_uint(0)), "landlock_create")


def landlock_allow(rules: int, rights: int, place: int) -> None:
    """Allow `rights` beneath the file or directory of descriptor `place`."""
    beneath = struct.pack("=Qi", rights, place)
    _checked(_libc.syscall(_LANDLOCK_ADD, rules, ctypes.c_int(1), beneath, ctypes.c_uint(0)), "landlock_add")


def landlock_restrict(rules: int) -> None:
    """Restrict this thread to a rule set, for good."""
    _checked(_libc.syscall(_LANDLOCK_RESTRICT, rules, ctypes.c_uint(0)), "landlock_restrict")


def seccomp(program: bytes) -> None:
    """Filter every later system call by a classic BPF program of 8-byte instructions, for good."""
    buffer = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    call = (_SECCOMP[MACHINE], ctypes.c_uint(_SECCOMP_SET_MODE_FILTER), ctypes.c_uint(0), described)
    _checked(_libc.syscall(*call), "seccomp")
