"""Being root without root's way round permissions, so that modes stop the tests' own process, too."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager

_VERSION = 0x20080522
_DAC = 0b110  # CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH
_GET_SECUREBITS, _SET_SECUREBITS, _NO_SETUID_FIXUP = (
    27,
    28,
    1 << 2,
)  # else access(2) gives root its capabilities back


@contextmanager
def without_override() -> Iterator[None]:
    """Nothing to do for anybody but root."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_VERSION, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; the second half is for high numbers
    _checked(libc.capget(header, sets))
    all_of_them = sets[0]
    bits = libc.prctl(_GET_SECUREBITS, 0, 0, 0, 0)
    _checked(libc.prctl(_SET_SECUREBITS, bits | _NO_SETUID_FIXUP, 0, 0, 0))
    try:
        sets[0] = all_of_them & ~_DAC
        _checked(libc.capset(header, sets))
        yield
    finally:
        sets[0] = all_of_them
        _checked(libc.capset(header, sets))
        _checked(libc.prctl(_SET_SECUREBITS, bits, 0, 0, 0))


def _checked(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be set")
