"""Path resolution: from names to a spot, in one call of the kernel where possible, else name by name.

Both follow a symbolic link only inside the root, and neither lets the kernel resolve `..`.
"""

from __future__ import annotations

import errno
import os
import stat as S

from ringfence.policy.byte_names import from_disk, to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.local.directory import KEPT_OPEN
from ringfence.toolkit.storage.local.entries import errors, lstat, translated
from ringfence.toolkit.storage.local.spot import LocalSpot
from ringfence.toolkit.storage.local.syscalls import Kernel, descend

_MAX_LINKS = 8
_MAX_STEPS = 255
_PASS = os.O_CLOEXEC | sum(getattr(os, flag, 0) for flag in ("O_DIRECTORY", "O_NOFOLLOW", "O_PATH"))


def resolve(kernel: Kernel, root: int, names: tuple[str, ...], *, follow: bool) -> LocalSpot:
    """Return the spot that `names` lead to below the directory open as `root`; the caller releases it.

    CallError as in `Local.resolve`, `path_changed` for a link in a very deep path.
    """
    if len(names) > _MAX_STEPS and ".." not in names:
        return _resolve_deep(kernel, root, names)
    # Without the kernel's help a walk needs a descriptor for each name.
    direct = kernel.beneath or len(names) > KEPT_OPEN
    spot = _resolve_directly(kernel, root, names, follow) if direct else None
    return spot or _walk(root, names, follow)


def _walk(root: int, names: tuple[str, ...], follow: bool) -> LocalSpot:
    steps = _Walk(root, names, follow)
    try:
        return steps.run()
    except OSError as error:
        raise translated(error, paths.join(tuple(steps.reached))) from None
    finally:
        steps.close()


# ------------------------------------------------------------------- in one call


def _resolve_directly(kernel: Kernel, root: int, names: tuple[str, ...], follow: bool) -> LocalSpot | None:
    """Open the parent directory in one call; None where a walk is needed, for a link or an error."""
    if not names or ".." in names:
        return None
    fd = root
    if len(names) > 1:
        try:
            fd = descend(kernel, root, _on_disk(names[:-1]))
        except OSError:
            return None
    spot = LocalSpot(fd, names, owned=fd != root)
    if follow and _may_be_link(spot):
        if spot.owned:
            os.close(fd)
        return None
    return spot


def _may_be_link(spot: LocalSpot) -> bool:
    """Whether the entry is a link or cannot be examined; the spot keeps the status of any other entry."""
    try:
        found = lstat(spot)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    if S.S_ISLNK(found.st_mode):
        return True
    spot.seen = found
    return False


# ------------------------------------------------------------------ very deep paths


def _resolve_deep(kernel: Kernel, root: int, names: tuple[str, ...]) -> LocalSpot:
    """Open the parent directory of a path with too many names for a walk, through no link."""
    on_disk = _on_disk(names[:-1])
    with errors(paths.join(names)):
        try:
            return LocalSpot(descend(kernel, root, on_disk), names, owned=True)
        except (FileNotFoundError, NotADirectoryError):
            depth = _existing_depth(kernel, root, on_disk)
        return _missing_spot(descend(kernel, root, on_disk[:depth]), names, depth)


def _existing_depth(kernel: Kernel, root: int, on_disk: list[str]) -> int:
    """Return how many of the names, from the first, are directories."""
    low, high = 0, len(on_disk)
    while low < high:
        middle = (low + high + 1) // 2
        try:
            os.close(descend(kernel, root, on_disk[:middle]))
        except (FileNotFoundError, NotADirectoryError):
            high = middle - 1
        else:
            low = middle
    return low


def _missing_spot(fd: int, names: tuple[str, ...], depth: int) -> LocalSpot:
    """Return the spot of names of which only the first `depth` are directories, the last open as `fd`."""
    spot = LocalSpot(fd, names, rest=len(names) - 1 - depth, owned=True)
    try:
        found = os.stat(spot.name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return spot
    if S.S_ISLNK(found.st_mode) or S.S_ISDIR(found.st_mode):
        os.close(fd)
        raise path_changed(spot.path)
    spot.blocked = True
    return spot


def _on_disk(names: tuple[str, ...]) -> list[str]:
    return to_disk("/".join(names)).split("/")


# --------------------------------------------------------------------- name by name


class _Walk:
    """Resolves name by name on a stack of descriptors, so that the kernel never resolves `..`."""

    def __init__(self, root: int, names: tuple[str, ...], follow: bool) -> None:
        self._stack = [root]
        self._left = list(reversed(names))
        self._follow = follow
        self._links = 0
        self._has_up = ".." in names
        self.reached: list[str] = []

    def close(self) -> None:
        """Close every descriptor on the stack."""
        for fd in self._stack[1:]:
            os.close(fd)

    def run(self) -> LocalSpot:
        """Return the spot, which takes over one descriptor. CallError as in `Local.resolve`, OSError."""
        for _ in range(_MAX_STEPS):
            if not self._left:
                return self._finish_directory()
            name = self._left.pop()
            if name == "..":
                self._up()
            elif self._left or self._follow:
                spot = self._enter(name)
                if spot is not None:
                    return spot
            else:
                return self._finish(name)
        raise CallError("path_invalid", "The path has too many components")

    def _up(self) -> None:
        if len(self._stack) == 1:
            raise paths.outside()
        os.close(self._stack.pop())
        self.reached.pop()

    def _enter(self, name: str) -> LocalSpot | None:
        """Open the directory `name`, or insert a link's names; a last name that is neither ends the walk."""
        try:
            if not self._left and not self._is_link(name):
                return self._finish(name)
            fd = os.open(to_disk(name), _PASS, dir_fd=self._stack[-1])
        except FileNotFoundError:
            return self._finish_missing(name)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                raise
            return self._insert_link(name, error)
        self._stack.append(fd)
        self.reached.append(name)
        return None

    def _is_link(self, name: str) -> bool:
        try:
            return S.S_ISLNK(self._mode(name))
        except FileNotFoundError:
            return False

    def _insert_link(self, name: str, error: OSError) -> LocalSpot | None:
        """Continue with the names in a link's text; `error` is that of opening the link as a directory."""
        try:
            target = from_disk(os.readlink(to_disk(name), dir_fd=self._stack[-1]))
        except OSError:
            if self._was_swapped(name):
                self._left.append(name)
                return None
            if error.errno == errno.ENOTDIR and self._left:
                spot = self._finish_missing(name)
                spot.blocked = True
                return spot
            raise error from None
        if self._has_up:
            raise CallError("path_invalid", "The path goes up ('..') and through a link, which is ambiguous")
        self._links += 1
        if self._links > _MAX_LINKS:
            raise CallError("path_invalid", "The path goes through too many links")
        if target.startswith("/"):
            raise paths.outside()
        self._left.extend(part for part in reversed(target.split("/")) if part not in ("", "."))
        return None

    def _was_swapped(self, name: str) -> bool:
        """Whether the name became a directory or a link after it was opened, so that another try helps."""
        try:
            mode = self._mode(name)
        except OSError:
            return False
        return S.S_ISDIR(mode) or S.S_ISLNK(mode)

    def _mode(self, name: str) -> int:
        return os.stat(to_disk(name), dir_fd=self._stack[-1], follow_symlinks=False).st_mode

    def _finish_missing(self, name: str) -> LocalSpot:
        rest = list(reversed(self._left))
        if ".." in rest:
            raise CallError("not_found", "A directory in the path does not exist")
        return self._finish(name, rest)

    def _finish_directory(self) -> LocalSpot:
        """Return the spot of a directory that was entered already: its name in its parent."""
        if len(self._stack) == 1:
            return LocalSpot(self._stack[0], ())
        os.close(self._stack.pop())
        return self._finish(self.reached.pop())

    def _finish(self, name: str, rest: list[str] | None = None) -> LocalSpot:
        names = (*self.reached, name, *(rest or []))
        owned = len(self._stack) > 1
        fd = self._stack.pop() if owned else self._stack[0]
        return LocalSpot(fd, names, len(rest or []), owned)
