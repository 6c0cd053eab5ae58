"""Mounts of a sandbox: the workspace as an overlay, the machine read-only, private temporary directories.

Runs in new user and mount namespaces, before the pid namespace has its first process. Paths go to the kernel
as descriptors, so that `:` and `,` in them mean nothing and private directories may cover them.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from ringfence.toolkit.sandbox.descriptors import ANYTHING, open_beneath, path_of
from ringfence.toolkit.sandbox.devices import allow_devices, make_devices
from ringfence.toolkit.sandbox.errors import SandboxError
from ringfence.toolkit.sandbox.request import Home, Request
from ringfence.toolkit.sandbox.system_calls import (
    ATTR_NODEV,
    ATTR_NOSUID,
    ATTR_RDONLY,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    mount,
    mount_attributes,
)
from ringfence.toolkit.sandbox.whiteouts import hide_names

PRIVATE = ("/tmp", "/var/tmp", "/dev/shm", "/run")
_PLAIN = MS_NOSUID | MS_NODEV


@dataclass(frozen=True, slots=True)
class _HomeLayer:
    """What the overlay of a home is made of: its place, its upper and work directories, its layers."""

    place: str
    base: int
    lower: tuple[int, ...]


class Mounts:
    """The mounts of one request; `build` makes them in the one order that works."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._workspace = _opened(request.workspace)
        self._scratch = _opened(request.scratch)
        self._private = f"{path_of(self._scratch)}/private"
        self._unlocked: list[str] = []
        self._blanks: dict[bool, int] = {}

    def build(self) -> None:
        """Make the mounts; OSError or SandboxError where one is refused."""
        request = self._request
        mount("none", "/", None, MS_REC | MS_PRIVATE)
        through = [(name, open_beneath(self._workspace, name)) for name in request.through]
        shown = [(place, os.open(place, ANYTHING)) for place in request.read_only_places]
        homes = [(home, _opened(home.path)) for home in request.homes]
        hidden = [
            (place, os.open(place, ANYTHING)) for place in request.hidden_places if os.path.lexists(place)
        ]
        self._private_store()
        layers = [self._home_layer(index, home, descriptor) for index, (home, descriptor) in enumerate(homes)]
        layer = self._workspace_layer()
        terminal = request.terminals[0] if request.terminals else None
        devices = make_devices(terminal)
        self._private_directories()
        for home_layer in layers:
            self._home(home_layer)
        self._workspace_mount(layer)
        for place, descriptor in shown:
            _bind(descriptor, place)
        for place, descriptor in hidden:
            self._hide_place(place, descriptor)
        if os.path.isdir(request.scratch):
            mount(path_of(self._blank(True)), request.scratch, None, MS_BIND)
        mount_attributes("/", give=ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV, recursive=True)
        for place in (*self._unlocked, "/dev/pts"):
            mount_attributes(place, take=ATTR_RDONLY)
        allow_devices(devices)
        self._through(through)

    def _private_store(self) -> None:
        """Mount the one tmpfs that the private directories and the layers of whiteouts are parts of."""
        request = self._request
        bytes_of_memory = max(1 << 20, min(request.memory, request.scratch_bytes) // 2)
        names = (*request.hidden, *(name for home in request.homes for name in home.hidden))
        inodes = (1 << 20) + sum(2 + name.count("/") for name in names)
        os.mkdir(self._private, 0o700)
        mount(
            "private", self._private, "tmpfs", _PLAIN, f"size={bytes_of_memory},nr_inodes={inodes},mode=700"
        )

    def _home_layer(self, index: int, home: Home, descriptor: int) -> _HomeLayer:
        """The directories of an overlay of a home, before a private one covers the scratch directory."""
        # For level copy, the scratch directory may be where no upper directory can be.
        above = path_of(self._scratch) if self._request.level == "overlay" else self._private
        base = f"{above}/home{index}"
        for part in (base, f"{base}/upper", f"{base}/work"):
            os.mkdir(part, 0o700)
        os.chmod(f"{base}/upper", stat.S_IMODE(os.fstat(descriptor).st_mode))
        names = hide_names(f"{self._private}/layer{index}", descriptor, home.hidden) if home.hidden else None
        return _HomeLayer(home.path, _opened(base), (descriptor,) if names is None else (names, descriptor))

    def _workspace_layer(self) -> int | None:
        request, scratch = self._request, path_of(self._scratch)
        if request.level != "overlay":
            return None
        for part in ("upper", "work"):
            os.mkdir(f"{scratch}/{part}", 0o700)
        # The root of an overlay shows the mode of its upper directory.
        os.chmod(f"{scratch}/upper", stat.S_IMODE(os.fstat(self._workspace).st_mode))
        return (
            hide_names(f"{self._private}/layer", self._workspace, request.hidden) if request.hidden else None
        )

    def _private_directories(self) -> None:
        store = os.open(self._private, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for index, place in enumerate(PRIVATE):
            if os.path.isdir(place) and not os.path.islink(place) and not self._in_workspace(place):
                part = f"{path_of(store)}/{index}"
                os.mkdir(part)
                os.chmod(part, 0o755 if place == "/run" else 0o1777)
                mount(part, place, None, MS_BIND)
                self._unlocked.append(place)

    def _in_workspace(self, place: str) -> bool:
        return f"{place}/".startswith(f"{self._request.workspace}/")

    def _home(self, layer: _HomeLayer) -> None:
        os.makedirs(layer.place, exist_ok=True)
        _overlay(layer.place, layer.lower, path_of(layer.base))
        self._unlocked.append(layer.place)

    def _workspace_mount(self, layer: int | None) -> None:
        request = self._request
        os.makedirs(request.workspace, exist_ok=True)
        if request.level == "overlay":
            layers = (self._workspace,) if layer is None else (layer, self._workspace)
            _overlay(request.workspace, layers, path_of(self._scratch))
        else:
            _bind(open_beneath(self._scratch, "copy"), request.workspace)
        self._unlocked.append(request.workspace)

    def _hide_place(self, place: str, descriptor: int) -> None:
        """Cover a place of the machine: a directory by an empty one, a file by one that nobody may open."""
        if not os.path.lexists(place):
            return  # below a private directory, so it is gone already
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISLNK(mode):
            mount(path_of(self._blank(stat.S_ISDIR(mode))), place, None, MS_BIND)

    def _blank(self, directory: bool) -> int:
        """A file or a directory that nobody may open, for all places to hide: bind mounts are cheap."""
        if directory not in self._blanks:
            name = f"{path_of(self._scratch)}/blank-{'directory' if directory else 'file'}"
            if directory:
                os.mkdir(name, 0o000)
            else:
                os.close(os.open(name, os.O_CREAT | os.O_RDONLY | os.O_CLOEXEC, 0o000))
            self._blanks[directory] = os.open(name, ANYTHING)
        return self._blanks[directory]

    def _through(self, through: list[tuple[str, int]]) -> None:
        if not through:
            return
        shown = os.open(self._request.workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        for name, descriptor in through:
            target = open_beneath(shown, name)
            mount(path_of(descriptor), path_of(target), None, MS_BIND)
            mount_attributes(f"{self._request.workspace}/{name}", take=ATTR_RDONLY, give=_THROUGH)


_THROUGH = ATTR_NOSUID | ATTR_NODEV


def mount_proc() -> None:
    """Mount `/proc` of a new pid namespace, for reading: as root, files in it would change the machine."""
    try:
        mount("proc", "/proc", "proc", _PLAIN | MS_NOEXEC | MS_RDONLY)
    except PermissionError as error:
        raise SandboxError(
            "proc_masked", f"/proc cannot be mounted: {error.strerror}", place="/proc"
        ) from None


def _opened(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _overlay(place: str, layers: tuple[int, ...], base: str) -> None:
    lower = ":".join(path_of(layer) for layer in layers)
    options = f"lowerdir={lower},upperdir={base}/upper,workdir={base}/work,userxattr,volatile"
    mount("overlay", place, "overlay", _PLAIN, options)


def _bind(descriptor: int, place: str) -> None:
    """Show what `held` is open on at `place`, which is made where it is missing."""
    if not os.path.lexists(place):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.makedirs(place)
        else:
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    mount(path_of(descriptor), place, None, MS_BIND)
