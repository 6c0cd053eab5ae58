"""Identity of this machine or container, among those that share a state, and of the kernel it runs on.

A host name alone tells nothing: containers of one image have the same.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import socket
from pathlib import Path

_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")


def machine_identity() -> str:
    """What names this machine after every restart, and no container with the same image. Raises OSError."""
    return hashlib.sha256("\n".join(_parts()).encode()).hexdigest()[:32]


def kernel_identity() -> str:
    """What names this start of this machine's kernel, which alone knows its locks. Raises OSError."""
    boot = _read("/proc/sys/kernel/random/boot_id")
    return hashlib.sha256("\n".join((*_parts(), boot)).encode()).hexdigest()[:16]


def _parts() -> list[str]:
    found = next(filter(None, map(_read, _IDS)), "")
    parts = [socket.gethostname(), found]
    layer = container_layer(_read("/proc/self/mountinfo"))
    if layer is not None or not found:
        # An image brings its id to every container made of it.
        parts += [layer or "", _own_id()]
    return parts


def container_layer(mounts: str) -> str | None:
    """The directory that a container's root is written to, "" where it is not told; None outside of one.

    `mounts` is the text of /proc/self/mountinfo.
    """
    found = None
    for line in mounts.splitlines():
        place, _, kind = line.partition(" - ")
        if place.split(" ")[4:5] == ["/"]:  # the last one lies on top of those before
            upper = re.search(r"[ ,]upperdir=([^, ]*)", kind)
            overlay = "overlay" in kind.split(" ")[0]
            found = (upper[1] if upper else "") if overlay else None
    return found


def _own_id() -> str:
    """A random id that the user's state directory keeps."""
    import platformdirs

    folder = Path(platformdirs.user_state_dir("ringfence"))
    folder.mkdir(0o700, parents=True, exist_ok=True)
    place = folder / "machine-id"
    if not place.exists():
        fresh = folder / f"machine-id.{secrets.token_hex(8)}"
        fresh.write_text(secrets.token_hex(16), encoding="ascii")
        try:
            os.link(fresh, place)  # whole, and the first of two that start at once
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return place.read_text(encoding="ascii").strip()


def _read(place: str) -> str:
    try:
        return Path(place).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
