"""Path resolution: from names to a spot, which is an open directory, a name in it, and the real path.

Component by component on a stack of descriptors; the kernel never follows a link and never resolves `..`.
"""

from __future__ import annotations

import errno
import os
import stat as S
from dataclasses import dataclass, field

from ringfence.policy.byte_names import from_disk, to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError

MAX_LINKS = 8
MAX_STEPS = 255
PASS = os.O_CLOEXEC | sum(getattr(os, flag, 0) for flag in ("O_DIRECTORY", "O_NOFOLLOW", "O_PATH"))


@dataclass(slots=True)
class LocalSpot:
    """An open directory and one name in it.

    `rest` counts the further names below a name that does not exist, or (`blocked`) is not a directory.
    `names` are displayed; `name` is the disk's name of the entry. `seen` is the entry's status when the spot
    was found, for its first reader; `folder` is the open directory that the spot came from.
    """

    fd: int
    names: tuple[str, ...]
    rest: int = 0
    owned: bool = False
    blocked: bool = False
    folder: object = field(default=None, compare=False)
    path: str = field(init=False)
    name: str = field(init=False)
    seen: os.stat_result | None = field(default=None, init=False, compare=False)

    def __post_init__(self) -> None:
        self.path = paths.join(self.names)
        self.name = to_disk(self.names[len(self.names) - 1 - self.rest]) if self.names else "."


class Walk:
    """Resolves component by component on a stack of descriptors, so that the kernel never resolves `..`."""

    def __init__(self, root: int, names: tuple[str, ...], follow: bool) -> None:
        self._stack = [root]
        self._todo = list(reversed(names))
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
        for _ in range(MAX_STEPS):
            if not self._todo:
                return self._here()
            name = self._todo.pop()
            if name == "..":
                self._up()
            elif self._todo or self._follow:
                spot = self._into(name)
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

    def _into(self, name: str) -> LocalSpot | None:
        """Step into `name`, insert a link's text, or finish at a last name that is not a directory."""
        try:
            if not self._todo and not self._is_link(name):
                return self._finish(name)
            fd = os.open(to_disk(name), PASS, dir_fd=self._stack[-1])
        except FileNotFoundError:
            return self._missing(name)
        except OSError as error:
            if error.errno not in (errno.ELOOP, errno.ENOTDIR, errno.EMLINK):
                raise
            return self._splice(name, error)
        self._stack.append(fd)
        self.reached.append(name)
        return None

    def _is_link(self, name: str) -> bool:
        try:
            return S.S_ISLNK(self._mode(name))
        except FileNotFoundError:
            return False

    def _splice(self, name: str, error: OSError) -> LocalSpot | None:
        try:
            target = from_disk(os.readlink(to_disk(name), dir_fd=self._stack[-1]))
        except OSError:
            if self._swapped_back(name):
                self._todo.append(name)
                return None
            if error.errno == errno.ENOTDIR and self._todo:
                return self._blocked(name)
            raise error from None
        if self._has_up:
            raise CallError("path_invalid", "The path goes up ('..') and through a link, which is ambiguous")
        self._links += 1
        if self._links > MAX_LINKS:
            raise CallError("path_invalid", "The path goes through too many links")
        if target.startswith("/"):
            raise paths.outside()
        self._todo.extend(part for part in reversed(target.split("/")) if part not in ("", "."))
        return None

    def _blocked(self, name: str) -> LocalSpot:
        spot = self._missing(name)
        spot.blocked = True
        return spot

    def _swapped_back(self, name: str) -> bool:
        """Whether the name changed from a link into a directory between two looks.

        Then another try helps.
        """
        try:
            mode = self._mode(name)
        except OSError:
            return False
        return S.S_ISDIR(mode) or S.S_ISLNK(mode)

    def _mode(self, name: str) -> int:
        return os.stat(to_disk(name), dir_fd=self._stack[-1], follow_symlinks=False).st_mode

    def _missing(self, name: str) -> LocalSpot:
        rest = list(reversed(self._todo))
        if ".." in rest:
            raise CallError("not_found", "A directory in the path does not exist")
        return self._finish(name, rest)

    def _here(self) -> LocalSpot:
        """Finish in a directory that was entered already: name it from its parent."""
        if len(self._stack) == 1:
            return LocalSpot(self._stack[0], ())
        os.close(self._stack.pop())
        return self._finish(self.reached.pop())

    def _finish(self, name: str, rest: list[str] | None = None) -> LocalSpot:
        names = (*self.reached, name, *(rest or []))
        owned = len(self._stack) > 1
        fd = self._stack.pop() if owned else self._stack[0]
        return LocalSpot(fd, names, len(rest or []), owned)
