"""Devices of a sandbox: a new `/dev` with nine harmless devices, and terminals of its own."""

from __future__ import annotations

import os

from ringfence.toolkit.sandbox.descriptors import path_of
from ringfence.toolkit.sandbox.system_calls import (
    ATTR_NODEV,
    MS_BIND,
    MS_NOEXEC,
    MS_NOSUID,
    mount,
    mount_attributes,
)

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}


def make_devices(terminal: int | None) -> tuple[str, ...]:
    """Mount a new `/dev`, and return the mounts on which devices have to work.

    `terminal` is shown as `/dev/console`, where programs look for the name of their terminal.
    """
    device_fds = {name: os.open(f"/dev/{name}", os.O_PATH | os.O_CLOEXEC) for name in _DEVICES}
    if terminal is not None:
        device_fds["console"] = os.open(os.ttyname(terminal), os.O_PATH | os.O_CLOEXEC)
    mount("devices", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,nr_inodes=64,mode=755")
    for name, device in device_fds.items():
        os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o666))
        mount(path_of(device), f"/dev/{name}", None, MS_BIND)
        os.close(device)
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/pts", 0o755)
    mount("terminals", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    os.mkdir("/dev/shm", 0o1777)
    return (*(f"/dev/{name}" for name in device_fds), "/dev/pts")


def allow_devices(places: tuple[str, ...]) -> None:
    """Let devices work on these mounts, once everything else is without devices."""
    for place in places:
        mount_attributes(place, take=ATTR_NODEV)
