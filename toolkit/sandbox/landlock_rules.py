"""Landlock rules: signals and abstract sockets stay inside; without namespaces, files are confined as well.

Landlock covers neither mode, owner nor times of a file: levels without namespaces leave those open.
"""

from __future__ import annotations

import os
import stat
import struct

from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.system_calls import (
    landlock_allow,
    landlock_create,
    landlock_restrict,
    landlock_version,
)

_EXECUTE, _WRITE, _READ, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL, _MAKE_CHAR, _MAKE_BLOCK = 1 << 13, 1 << 14, 1 << 15, 1 << 6, 1 << 11
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many file rights each version knows; 16 from the fifth on
_SCOPED, _ABSTRACT_AND_SIGNALS = 6, 3  # the version that came with it, and both of its bits


def restrict_writing(writable: tuple[str, ...]) -> None:
    """Allow writing to files below `writable` alone, and keep signals and abstract sockets inside.

    In namespaces: a read-only mount lets a pipe with a name be written to, and Landlock does not. Does
    nothing where the kernel has no Landlock.
    """
    version = landlock_version()
    if not version:
        return
    rights = (_WRITE | _REFER | _TRUNCATE) & ((1 << _RIGHTS.get(version, 16)) - 1)
    rules = landlock_create(_attributes(version, rights))
    for place in writable:
        _allow(rules, place, rights)
    landlock_restrict(rules)
    os.close(rules)


def _attributes(version: int, rights: int) -> bytes:
    """The rights to refuse unless a rule allows them, and the scopes where the kernel has them."""
    if version >= _SCOPED:
        return struct.pack("QQQ", rights, 0, _ABSTRACT_AND_SIGNALS)
    return struct.pack("Q", rights)


def restrict_files(readable: tuple[str, ...], writable: tuple[str, ...]) -> None:
    """Allow reading and starting below `readable`, everything but devices below `writable`, nothing else."""
    version = landlock_version()
    if not version:
        raise SandboxError("landlock_missing", "this kernel has no Landlock, or it is off", place="landlock")
    every = (1 << _RIGHTS.get(version, 16)) - 1
    rules = landlock_create(_attributes(version, every))
    reading = (_EXECUTE | _READ | _READ_DIR | _IOCTL) & every
    for places, rights in ((readable, reading), (writable, every & ~(_MAKE_CHAR | _MAKE_BLOCK))):
        for place in places:
            _allow(rules, place, rights)
    landlock_restrict(rules)
    os.close(rules)


def _allow(rules: int, place: str, rights: int) -> None:
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # it is gone since the list was made, and nothing can be read there
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_FILES
        landlock_allow(rules, rights, descriptor)
    finally:
        os.close(descriptor)
