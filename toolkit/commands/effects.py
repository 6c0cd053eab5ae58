"""Effects of a command, as they lie in its scratch: read as hostile data, each bound checked before reading.

By descriptors, through no link. Changes nothing. `user.overlay.opaque` is the only attribute that counts; the
kernel stores a command's own under another name. The dialect of fuse-overlayfs is not read.
"""

from __future__ import annotations

import os
import stat as S
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from ringfence.policy.byte_names import from_disk, to_disk
from ringfence.policy.invisible_characters import is_invisible, written_out
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, OTHER
from ringfence.toolkit.plan.content import StreamedContent, checked
from ringfence.toolkit.storage import sparse_files
from ringfence.toolkit.storage.local import syscalls
from ringfence.toolkit.storage.local.entries import LIST, READ, errors, read_all

GONE = "gone"  # the kind of an entry that stands for a deleted name
FOLDERS = {"overlay": "upper", "copy": "copy"}  # where a scratch holds the changes, by level
_OPAQUE = "user.overlay.opaque"
_SPECIAL = {S.S_IFIFO: "a named pipe", S.S_IFSOCK: "a socket", S.S_IFCHR: "a device", S.S_IFBLK: "a device"}
# They reverse the order of what is displayed. Other invisible characters are ordinary in names (emoji).
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that is read of a scratch: entries, names in a path, bytes of a link's target, and bytes."""

    entries: int = 200_000
    depth: int = paths.MAX_DEPTH
    target: int = paths.MAX_LENGTH
    size: int = 4 << 30


class Effect(NamedTuple):
    """One entry of a scratch. `kind` is a file's kind, or GONE; `special` names what `OTHER` is.

    `mode` has all 12 bits, `size` is bytes; `modified` and `changed` are nanoseconds.
    """

    path: str
    kind: str
    mode: int = 0
    size: int = 0
    modified: int = 0
    changed: int = 0
    inode: int = 0
    links: int = 1
    target: str | None = None
    special: str = ""

    @property
    def name(self) -> str:
        """The last name of the path."""
        return self.path.rpartition("/")[2]


class ChangedFolder:
    """An open directory of a scratch.

    `whole`: entries of the original that are missing here are deleted; else only those that are GONE are.
    """

    def __init__(self, fd: int, path: str, whole: bool) -> None:
        self.fd = fd
        self.path = path
        self.whole = whole
        self.effects: list[Effect] = []

    def read(self, effect: Effect) -> bytes:
        """Return the content of a file of this directory. CallError `path_changed` or `permission_denied`."""
        with _opened(self.fd, effect) as (fd, info), errors(effect.path):
            return read_all(fd, info, effect.size, effect.path)


class Scratch:
    """What a command changed, open for reading. `path` is the scratch's directory, `level` one of FOLDERS.

    Raises CallError `io_error` for a level whose changes cannot be read.
    """

    def __init__(self, path: str, level: str, bounds: Bounds) -> None:
        if level not in FOLDERS:
            raise CallError("io_error", f"At level {level} the changes of a command are not known")
        self._place = f"{path}/{FOLDERS[level]}"
        self._bounds = bounds
        self.copied = level == "copy"  # it has all entries, changed or not
        self._entries = self._size = 0
        self._inodes: set[int] = set()
        with errors(paths.ROOT):
            self._fd = os.open(self._place, LIST)
        self._kernel = syscalls.probe(self._fd)
        self._root = os.fstat(self._fd)

    def close(self) -> None:
        """Close the scratch; contents that it returned can still be read."""
        os.close(self._fd)

    @contextmanager
    def folder(self, path: str) -> Iterator[ChangedFolder]:
        """Open a directory and list it, by name.

        Raises CallError `too_large` or `path_invalid` beyond a bound, before anything is read.
        """
        with errors(path):
            fd = self._open_folder(self._fd, path)
        try:
            found = ChangedFolder(fd, path, _is_opaque(fd))
            with errors(path):
                found.effects = sorted(self._listed(fd, path))
            yield found
        finally:
            os.close(fd)

    def changed_in(self, path: str, since: int) -> int:
        """Return how many entries below a directory changed since a time in nanoseconds, directories not
        counted; at most the bound of entries.
        """
        todo, count = [path], 0
        while todo and count < self._bounds.entries:
            at = todo.pop()
            with suppress(OSError):
                fd = self._open_folder(self._fd, at)
                try:
                    with os.scandir(fd) as entries:
                        for entry in islice(entries, self._bounds.entries):
                            if entry.is_dir(follow_symlinks=False):
                                todo.append(paths.child(at, from_disk(entry.name)))
                            elif not since or entry.stat(follow_symlinks=False).st_ctime_ns >= since:
                                count += 1
                finally:
                    os.close(fd)
        return count

    def stream(self, effect: Effect, digest: str) -> StreamedContent:
        """Return a file's content, which is opened again, from the root on, whenever it is read."""
        return StreamedContent(digest, effect.size, lambda: checked(digest, self.pieces(effect)))

    def pieces(self, effect: Effect) -> Iterator[bytes]:
        """Yield a file's content. CallError `path_changed` if it is not the file that was listed."""
        with errors(effect.path):
            root = os.open(self._place, LIST)
            try:
                if not os.path.samestat(os.fstat(root), self._root):
                    raise _not_as_listed(effect.path)
                folder = self._open_folder(root, paths.parent(effect.path))
            finally:
                os.close(root)
            try:
                with _opened(folder, effect) as (fd, info):
                    yield from sparse_files.pieces_of(fd, info)
            finally:
                os.close(folder)

    def _open_folder(self, root: int, path: str) -> int:
        way = syscalls.descend(self._kernel, root, [to_disk(name) for name in paths.parts(path)])
        try:
            return os.open(".", LIST, dir_fd=way)
        finally:
            os.close(way)

    def _listed(self, fd: int, path: str) -> Iterator[Effect]:
        if len(paths.parts(path)) >= self._bounds.depth:
            raise paths.too_deep()
        above = paths.child(path, "")
        with os.scandir(fd) as entries:
            for entry in entries:
                self._entries += 1
                if self._entries > self._bounds.entries:
                    raise _too_many(self._bounds.entries)
                info = entry.stat(follow_symlinks=False)
                yield self._effect(fd, entry.name, above + from_disk(entry.name), info)

    def _effect(self, fd: int, name: str, path: str, info: os.stat_result) -> Effect:
        mode, kind, target, special = info.st_mode, OTHER, None, ""
        if S.S_ISREG(mode):
            kind = FILE
        elif S.S_ISDIR(mode):
            kind = DIRECTORY
        elif S.S_ISLNK(mode):
            kind = LINK
            if info.st_size > self._bounds.target:
                raise CallError("path_invalid", f"The target of the link '{path}' is too long", where=path)
            target = from_disk(os.readlink(name, dir_fd=fd))
        elif S.S_ISCHR(mode) and info.st_rdev == 0:
            kind = GONE
        else:
            special = _SPECIAL.get(S.S_IFMT(mode), "neither a file, a directory nor a link")
        return Effect(
            path, kind, S.S_IMODE(mode), info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino,
            info.st_nlink, target, special,
        )  # fmt: skip

    def take(self, effect: Effect) -> None:
        """Count a file whose content is wanted. CallError `too_large` beyond the bound of all together."""
        if effect.inode not in self._inodes:
            self._inodes.add(effect.inode)
            self._size += effect.size
        if self._size > self._bounds.size:
            raise CallError(
                "too_large", f"The command left more than {self._bounds.size:,} bytes", where=effect.path
            )

    def count(self, more: int) -> None:
        """Count entries of the original that a deletion takes along. CallError `too_large`."""
        self._entries += more
        if self._entries > self._bounds.entries:
            raise _too_many(self._bounds.entries)


def check_name(path: str) -> None:
    """Refuse (`path_invalid`) a name that no call could have made; the names above it are checked already."""
    _check_text(path.rpartition("/")[2], "The name", path)
    paths.check(path)


def check_target(path: str, target: str) -> None:
    """Refuse (`path_invalid`) a new link's target that does not display as what it is."""
    _check_text(target, "The target of the link", path)


def _check_text(text: str, what: str, path: str) -> None:
    if text.isascii() and text.isprintable() and "\\" not in text:
        return
    shown = "".join(written_out(one) if is_invisible(one) else one for one in path)
    for one in text:
        if one in _REORDERING or (ord(one) < 0xA0 and is_invisible(one)):
            message = f"{what} '{shown}' contains the character U+{ord(one):04X}"
            raise CallError("path_invalid", message, where=shown)
    if not paths.is_unicode(to_disk(text)):
        raise CallError("path_invalid", f"{what} '{shown}' is not valid UTF-8", where=shown)


@contextmanager
def _opened(folder: int, effect: Effect) -> Iterator[tuple[int, os.stat_result]]:
    """Open a listed file, without following a link and without waiting for a pipe."""
    with errors(effect.path):
        fd = os.open(to_disk(effect.name), READ, dir_fd=folder)
    try:
        info = os.fstat(fd)
        now = (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
        listed = (effect.inode, effect.size, effect.modified, effect.changed)
        if not S.S_ISREG(info.st_mode) or now != listed:
            raise _not_as_listed(effect.path)
        yield fd, info
    finally:
        os.close(fd)


def _is_opaque(fd: int) -> bool:
    try:
        return os.getxattr(fd, _OPAQUE) == b"y"
    except OSError:
        return False


def _not_as_listed(path: str) -> CallError:
    return CallError("path_changed", f"'{path}' changed in the scratch of its command", where=path)


def _too_many(bound: int) -> CallError:
    return CallError(
        "too_large",
        f"The command changed more than {bound:,} entries",
        hint="name the directories that may be dropped or written at once in `commands` of the policy",
    )
