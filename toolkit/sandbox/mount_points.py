"""Mount points of this process: those below a directory keep an overlay of it from being made."""

from __future__ import annotations

import os
from collections.abc import Iterator


def mount_points_below(place: str) -> tuple[str, ...]:
    """Return the mount points below a directory, relative to it."""
    above = f"{place}/"
    return tuple(found.removeprefix(above) for found in _mount_points() if found.startswith(above))


def _mount_points() -> Iterator[str]:
    with open("/proc/self/mountinfo", "rb") as lines:
        for line in lines:
            name = line.split(b" ")[4]
            if b"\\" in name:
                for code in (b"040", b"011", b"012", b"134"):
                    name = name.replace(b"\\" + code, bytes([int(code, 8)]))
            yield os.fsdecode(name)
