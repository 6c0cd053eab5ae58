"""Identity of this machine or container among those that share a state, and of its running kernel.

A host name is not enough: containers of the same image have the same name.
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
    """Return a name that stays after a restart, and that no container of the same image has. OSError."""
    return hashlib.sha256("\n".join(_parts()).encode()).hexdigest()[:32]


def kernel_identity() -> str:
    """Return the identity of the running kernel since its boot; only this kernel knows its locks.

    OSError.
    """
    boot = _read("/proc/sys/kernel/random/boot_id")
    return hashlib.sha256("\n".join((*_parts(), boot)).encode()).hexdigest()[:16]


def _parts() -> list[str]:
    found = next(filter(None, map(_read, _IDS)), "")
    parts = [socket.gethostname(), found]
    layer = container_layer(_read("/proc/self/mountinfo"))
    if layer is not None or not found:
        # Every container has the id of its image.
        parts += [layer or "", _own_id()]
    return parts


def container_layer(mounts: str) -> str | None:
    """Return the writable directory of a container's root: "" if unknown, None outside of a container.

    `mounts` is the text of /proc/self/mountinfo (proc(5)).
    """
    found = None
    for line in mounts.splitlines():
        place, _, kind = line.partition(" - ")
        if place.split(" ")[4:5] == ["/"]:  # the last mount covers the earlier ones
            upper = re.search(r"[ ,]upperdir=([^, ]*)", kind)
            overlay = "overlay" in kind.split(" ")[0]
            found = (upper[1] if upper else "") if overlay else None
    return found


def _own_id() -> str:
    """Return a random id stored in the user's state directory."""
    import platformdirs

    folder = Path(platformdirs.user_state_dir("ringfence"))
    folder.mkdir(0o700, parents=True, exist_ok=True)
    place = folder / "machine-id"
    if not place.exists():
        fresh = folder / f"machine-id.{secrets.token_hex(8)}"
        fresh.write_text(secrets.token_hex(16), encoding="ascii")
        try:
            os.link(fresh, place)  # atomic: of two processes that start at once, the first wins
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
