"""Local disk, confined by directory descriptors: what is judged and what is acted on are one spot.

Resolves a path once, component by component, never letting the kernel follow a link. Promises that no
access leaves the root however names are swapped meanwhile; does not promise anything against a process
that moves a directory out of the root while it is held.
"""

from __future__ import annotations

import errno
import os
import stat as S
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from toolkit import paths
from toolkit.backends import BACKENDS, Missed
from toolkit.errors import CallError
from toolkit.plan import DIRECTORY, FILE, LINK, OTHER, Delete, Entry, Move, Stat

MAX_LINKS = 8
MAX_STEPS = 255
STATE = ".ringfence"
_DIRECTORY = os.O_DIRECTORY | os.O_CLOEXEC
_PASS = _DIRECTORY | os.O_NOFOLLOW | getattr(os, "O_PATH", 0)
_LIST = _DIRECTORY | os.O_NOFOLLOW | os.O_RDONLY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK = 1 << 20
_KINDS = {S.S_IFREG: FILE, S.S_IFDIR: DIRECTORY, S.S_IFLNK: LINK}


@dataclass(slots=True)
class LocalSpot:
    """An open directory and one name in it.

    `rest` counts the further names below a name that does not exist, or (`blocked`) that is no directory.
    """

    fd: int
    names: tuple[str, ...]
    rest: int = 0
    owned: bool = False
    blocked: bool = False

    @property
    def path(self) -> str:
        return paths.join(self.names)

    @property
    def name(self) -> str:
        return self.names[len(self.names) - 1 - self.rest] if self.names else "."


class LocalFolder:
    """An open directory of the workspace."""

    def __init__(self, fd: int, names: tuple[str, ...]) -> None:
        self._fd = fd
        self._names = names

    def scan(self) -> list[tuple[str, Stat]]:
        """The names in it with what they are, by name; entries that vanish meanwhile are left out."""
        found = []
        with os.scandir(self._fd) as entries:
            for entry in entries:
                try:
                    found.append((entry.name, self._look(entry.name, entry.stat(follow_symlinks=False))))
                except FileNotFoundError:
                    continue
        return sorted(found)

    def spot(self, name: str) -> LocalSpot:
        return LocalSpot(self._fd, (*self._names, name))

    def _look(self, name: str, info: os.stat_result) -> Stat:
        return stat_of(info, os.readlink(name, dir_fd=self._fd) if S.S_ISLNK(info.st_mode) else None)


class Local:
    """A directory of this machine as a confined tree."""

    traits = BACKENDS["local"]

    def __init__(self, root: str, *, durable: bool = True) -> None:
        self.root = os.path.realpath(root)
        self.durable = durable
        try:
            self._fd = os.open(self.root, _DIRECTORY | os.O_RDONLY)
        except OSError as error:
            raise CallError("io_error", f"The project root cannot be opened: {error.strerror}") from None
        self.fold = self._folds_case()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # ------------------------------------------------------------------ looking

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> LocalSpot:
        """Walk to `names` (which may hold `..`) on descriptors; the caller releases the spot.

        Raises CallError `outside_root`, `path_invalid` (`..` through a link, too many links) or
        `permission_denied`.
        """
        walk = _Walk(self._fd, names, follow)
        try:
            return walk.run()
        except OSError as error:
            raise _translated(error, paths.join(tuple(walk.reached))) from None
        finally:
            walk.close()

    def is_link(self, names: tuple[str, ...]) -> bool:
        spot = self.resolve(names, follow=False)
        try:
            found = self.stat(spot)
        finally:
            self.release(spot)
        return found is not None and found.kind == LINK

    def release(self, spot: LocalSpot) -> None:
        if spot.owned:
            os.close(spot.fd)
            spot.owned = False

    def stat(self, spot: LocalSpot) -> Stat | None:
        if spot.rest:
            return None
        with _errors(spot.path):
            try:
                info = _lstat(spot)
                return stat_of(
                    info, os.readlink(spot.name, dir_fd=spot.fd) if S.S_ISLNK(info.st_mode) else None
                )
            except FileNotFoundError:
                return None

    def read(self, spot: LocalSpot, limit: int | None = None) -> bytes:
        """The bytes of a regular file; one that grows past `limit` is `too_large`."""
        with _errors(spot.path):
            fd = _open_regular(spot)
            try:
                return _read_all(fd, limit, spot.path)
            finally:
                os.close(fd)

    @contextmanager
    def folder(self, spot: LocalSpot) -> Iterator[LocalFolder]:
        """The directory at `spot`, open; another mount than the root's is refused."""
        with _errors(spot.path):
            fd = self._open_folder(spot)
        try:
            yield LocalFolder(fd, spot.names)
        finally:
            os.close(fd)

    def may(self, spot: LocalSpot, *, write: bool) -> bool:
        """Whether the mode permits it: a file without any write bit is not writable even for root."""
        found = self.stat(spot)
        if found is None or found.kind == LINK:
            return found is not None
        if write and not (found.mode or 0) & 0o222:
            return False
        if spot.name == ".":
            return os.access(self.root, os.W_OK if write else os.R_OK)
        return os.access(spot.name, os.W_OK if write else os.R_OK, dir_fd=spot.fd)

    def missing(self, spot: LocalSpot) -> tuple[str, ...]:
        """The parents of `spot` that are not there, outermost first. Raises CallError `not_a_directory`."""
        first = len(spot.names) - spot.rest
        if spot.blocked:
            path = paths.join(spot.names[:first])
            raise CallError("not_a_directory", f"'{path}' is not a directory", where=path)
        return tuple(paths.join(spot.names[:n]) for n in range(first, len(spot.names)))

    # ----------------------------------------------------------------- changing

    def check(self, spot: LocalSpot) -> None:
        """Refuse (`path_changed`) when the spot's directory is no longer where it was judged."""
        held = os.fstat(spot.fd)
        folder = spot.names[: max(len(spot.names) - 1 - spot.rest, 0)]
        try:
            fd = self._fd
            for name in folder:
                deeper = os.open(name, _PASS, dir_fd=fd)
                if fd != self._fd:
                    os.close(fd)
                fd = deeper
            now = os.fstat(fd)
            if fd != self._fd:
                os.close(fd)
        except OSError:
            raise _changed(spot.path) from None
        if (now.st_dev, now.st_ino) != (held.st_dev, held.st_ino):
            raise _changed(spot.path)

    def create(self, spot: LocalSpot, data: bytes, mode: int | None, temporary: str) -> None:
        """Make a new file, whole or not at all; `already_exists` when the name is taken."""
        with _errors(spot.path):
            self._temporary(spot, temporary, data, 0o666 if mode is None else mode, exact=mode is not None)
            try:
                os.link(temporary, spot.name, src_dir_fd=spot.fd, dst_dir_fd=spot.fd, follow_symlinks=False)
            except FileExistsError:
                raise
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                    raise
                self._create_without_links(spot, temporary)
                return
            finally:
                _unlink_quietly(temporary, spot.fd)
            self._sync(spot.fd)

    def replace(self, spot: LocalSpot, data: bytes, stat: Stat, mode: int | None, temporary: str) -> None:
        """Put new content in a file's place by rename, keeping mode and owner."""
        with _errors(spot.path):
            old = _lstat(spot)
            if stat_of(old).identity != stat.identity:
                raise _changed(spot.path)
            wanted = S.S_IMODE(old.st_mode) if mode is None else mode
            self._temporary(spot, temporary, data, wanted, exact=True, owner=(old.st_uid, old.st_gid))
            try:
                os.rename(temporary, spot.name, src_dir_fd=spot.fd, dst_dir_fd=spot.fd)
            except BaseException:
                _unlink_quietly(temporary, spot.fd)
                raise
            self._sync(spot.fd)

    def remove(self, spot: LocalSpot, change: Delete, temporary: str) -> Iterator[str | Missed]:
        """Rename what is there out of the way, make sure it is what was listed, then let go of it.

        Yields the path of each entry removed and a Missed for each that was not. A catch that is not
        what was judged is put back and `path_changed` raised.
        """
        with _errors(spot.path):
            quarantine = self._quarantine()
            try:
                yield from self._remove_caught(spot, change, quarantine, temporary)
            finally:
                os.close(quarantine)

    def move(self, source: LocalSpot, destination: LocalSpot, change: Move) -> None:
        """Rename within the workspace; never over anything but the one file the plan named."""
        with _errors(source.path):
            if stat_of(_lstat(source)).identity != change.stat.identity:
                raise _changed(source.path)
            if change.over is not None:
                if stat_of(_lstat(destination)).identity != change.over.identity:
                    raise _changed(destination.path)
                os.rename(source.name, destination.name, src_dir_fd=source.fd, dst_dir_fd=destination.fd)
            else:
                self._rename_new(source, destination, change.stat.kind)
            self._sync(source.fd)
            self._sync(destination.fd)

    def make_directory(self, spot: LocalSpot) -> None:
        with _errors(spot.path):
            os.mkdir(spot.name, 0o777, dir_fd=spot.fd)
            self._sync(spot.fd)

    def remove_directory(self, spot: LocalSpot) -> None:
        with _errors(spot.path):
            os.rmdir(spot.name, dir_fd=spot.fd)
            self._sync(spot.fd)

    def make_link(self, spot: LocalSpot, target: str) -> None:
        with _errors(spot.path):
            os.symlink(target, spot.name, dir_fd=spot.fd)
            self._sync(spot.fd)

    def set_mode(self, spot: LocalSpot, mode: int) -> None:
        with _errors(spot.path):
            fd = os.open(
                spot.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=spot.fd
            )
            try:
                os.fchmod(fd, mode)
            finally:
                os.close(fd)

    def sweep(self, spot: LocalSpot, temporary: str) -> None:
        """Remove a temporary that a dead process left beside `spot`."""
        _unlink_quietly(temporary, spot.fd)

    # ------------------------------------------------------------------- inside

    def _open_folder(self, spot: LocalSpot) -> int:
        if not spot.names:
            return os.open(".", _DIRECTORY | os.O_RDONLY, dir_fd=self._fd)
        if spot.rest:
            raise FileNotFoundError(errno.ENOENT, "nothing there")
        fd = os.open(spot.name, _LIST, dir_fd=spot.fd)
        if os.fstat(fd).st_dev != os.fstat(self._fd).st_dev:
            os.close(fd)
            raise CallError("permission_denied", f"'{spot.path}' is another mount, which is not entered")
        return fd

    def _temporary(
        self,
        spot: LocalSpot,
        name: str,
        data: bytes,
        mode: int,
        *,
        exact: bool,
        owner: tuple[int, int] | None = None,
    ) -> None:
        fd = os.open(name, _NEW, 0o600 if exact else mode, dir_fd=spot.fd)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
            if owner is not None and owner != (os.geteuid(), os.getegid()):
                # Before fchmod: changing the owner clears the set-uid and set-gid bits.
                try:
                    os.fchown(fd, *owner)
                except PermissionError:
                    pass
            if exact:
                os.fchmod(fd, mode)
            if self.durable:
                os.fsync(fd)
        except BaseException:
            _unlink_quietly(name, spot.fd)
            raise
        finally:
            os.close(fd)

    def _create_without_links(self, spot: LocalSpot, temporary: str) -> None:
        # A file system without hard links: claim the name exclusively, then rename over our own claim.
        os.close(os.open(spot.name, _NEW, 0o600, dir_fd=spot.fd))
        os.rename(temporary, spot.name, src_dir_fd=spot.fd, dst_dir_fd=spot.fd)
        self._sync(spot.fd)

    def _rename_new(self, source: LocalSpot, destination: LocalSpot, kind: str) -> None:
        if kind != DIRECTORY:
            try:
                os.link(
                    source.name,
                    destination.name,
                    src_dir_fd=source.fd,
                    dst_dir_fd=destination.fd,
                    follow_symlinks=False,
                )
            except FileExistsError:
                raise
            except OSError as error:
                if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                    raise
            else:
                os.unlink(source.name, dir_fd=source.fd)
                return
        try:
            _lstat(destination)
        except FileNotFoundError:
            os.rename(source.name, destination.name, src_dir_fd=source.fd, dst_dir_fd=destination.fd)
            return
        raise FileExistsError(errno.EEXIST, "already there")

    def _quarantine(self) -> int:
        try:
            os.mkdir(STATE, 0o700, dir_fd=self._fd)
        except FileExistsError:
            pass
        else:
            fd = os.open(STATE, _LIST, dir_fd=self._fd)
            try:
                note = os.open(".gitignore", _NEW, 0o600, dir_fd=fd)
                os.write(note, b"*\n")
                os.close(note)
            except FileExistsError:
                pass
            return fd
        return os.open(STATE, _LIST, dir_fd=self._fd)

    def _remove_caught(
        self, spot: LocalSpot, change: Delete, quarantine: int, temporary: str
    ) -> Iterator[str | Missed]:
        os.rename(spot.name, temporary, src_dir_fd=spot.fd, dst_dir_fd=quarantine)
        self._sync(spot.fd)
        caught = LocalSpot(quarantine, (temporary,))
        try:
            listed = self._differs(caught, change)
        except BaseException:
            self._put_back(caught, spot)
            raise
        if listed is not None:
            self._put_back(caught, spot)
            raise _changed(listed)
        yield from self._discard(caught, change)

    def _differs(self, caught: LocalSpot, change: Delete) -> str | None:
        """The first path at which what was caught is not what was judged; None when it is the same."""
        now = stat_of(_lstat(caught))
        if (now.kind, now.size, _before_rename(now)) != (
            change.stat.kind,
            change.stat.size if change.stat.kind != DIRECTORY else now.size,
            _before_rename(change.stat) if change.stat.kind != DIRECTORY else _before_rename(now),
        ):
            return change.path
        if change.stat.kind != DIRECTORY:
            return None
        expected = {entry.path: entry.stat for entry in change.entries}
        for entry in self._walk(caught, change.path):
            judged = expected.pop(entry.path, None)
            if judged is None or judged.kind != entry.stat.kind:
                return entry.path
            if judged.kind != DIRECTORY and judged.identity != entry.stat.identity:
                return entry.path
        return next(iter(expected), None)

    def _walk(self, spot: LocalSpot, shown: str) -> Iterator[Entry]:
        with self.folder(spot) as folder:
            for name, found in folder.scan():
                path = paths.child(shown, name)
                yield Entry(path, found)
                if found.kind == DIRECTORY:
                    yield from self._walk(folder.spot(name), path)

    def _put_back(self, caught: LocalSpot, spot: LocalSpot) -> None:
        info = _lstat(caught)
        self._rename_new(caught, LocalSpot(spot.fd, spot.names), _KINDS.get(S.S_IFMT(info.st_mode), OTHER))
        self._sync(spot.fd)

    def _discard(self, caught: LocalSpot, change: Delete) -> Iterator[str | Missed]:
        if change.stat.kind != DIRECTORY:
            os.unlink(caught.name, dir_fd=caught.fd)
            yield change.path
            return
        kept: set[str] = set()
        for entry, action in self._emptying(caught, change.path):
            try:
                action()
            except OSError as error:
                kept.add(entry)
                yield Missed(entry, error.strerror or "not removed")
            else:
                yield entry
        if kept:
            self._return_kept(caught, change)

    def _emptying(self, spot: LocalSpot, shown: str) -> Iterator[tuple[str, Callable[[], None]]]:
        with self.folder(spot) as folder:
            for name, found in folder.scan():
                path = paths.child(shown, name)
                inner = folder.spot(name)
                if found.kind == DIRECTORY:
                    yield from self._emptying(inner, path)
                else:
                    yield path, lambda s=inner: os.unlink(s.name, dir_fd=s.fd)  # type: ignore[misc]
        yield shown, lambda: os.rmdir(spot.name, dir_fd=spot.fd)

    def _return_kept(self, caught: LocalSpot, change: Delete) -> None:
        # What could not be removed goes back under its own name, so that nothing is out of sight.
        parent = self.resolve(paths.parts(change.path), follow=False)
        try:
            self._put_back(caught, parent)
        finally:
            self.release(parent)

    def _sync(self, fd: int) -> None:
        if not self.durable:
            return
        # An O_PATH descriptor cannot be synced, so the directory is opened once more.
        fresh = os.open(".", _DIRECTORY | os.O_RDONLY, dir_fd=fd)
        try:
            os.fsync(fresh)
        finally:
            os.close(fresh)

    def _folds_case(self) -> bool:
        """Whether this directory takes `A` and `a` for one name; asked by looking, never by writing."""
        name = next((n for n in sorted(os.listdir(self._fd)) if n.swapcase() != n), None)
        if name is None:
            head, tail = os.path.split(self.root)
            return (
                bool(tail)
                and tail.swapcase() != tail
                and os.path.lexists(os.path.join(head, tail.swapcase()))
            )
        try:
            twin = os.stat(name.swapcase(), dir_fd=self._fd, follow_symlinks=False)
        except OSError:
            return False
        here = os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        return (twin.st_dev, twin.st_ino) == (here.st_dev, here.st_ino)


class _Walk:
    """Component by component on a stack of descriptors, so that `..` never asks the kernel."""

    def __init__(self, root: int, names: tuple[str, ...], follow: bool) -> None:
        self._stack = [root]
        self._todo = list(reversed(names))
        self._follow = follow
        self._links = 0
        self._through_link = False
        self._has_up = ".." in names
        self.reached: list[str] = []

    def close(self) -> None:
        for fd in self._stack[1:]:
            os.close(fd)

    def run(self) -> LocalSpot:
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
        raise CallError("path_invalid", "The path has too many steps")

    def _up(self) -> None:
        if len(self._stack) == 1:
            raise paths.outside()
        os.close(self._stack.pop())
        self.reached.pop()

    def _into(self, name: str) -> LocalSpot | None:
        """Step into `name`, splice in a link's text, or finish at a last name that is no directory."""
        try:
            if not self._todo and not self._is_link(name):
                return self._finish(name)
            fd = os.open(name, _PASS, dir_fd=self._stack[-1])
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
            return S.S_ISLNK(os.stat(name, dir_fd=self._stack[-1], follow_symlinks=False).st_mode)
        except FileNotFoundError:
            return False

    def _splice(self, name: str, error: OSError) -> LocalSpot | None:
        try:
            target = os.readlink(name, dir_fd=self._stack[-1])
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
        """Whether the name turned from a link into a directory between two looks, so that it is worth another."""
        try:
            mode = os.stat(name, dir_fd=self._stack[-1], follow_symlinks=False).st_mode
        except OSError:
            return False
        return S.S_ISDIR(mode) or S.S_ISLNK(mode)

    def _missing(self, name: str) -> LocalSpot:
        rest = list(reversed(self._todo))
        if ".." in rest:
            raise CallError("not_found", "A directory in the path does not exist")
        return self._finish(name, rest)

    def _here(self) -> LocalSpot:
        """The path ends in a directory already entered: name it from its parent."""
        if len(self._stack) == 1:
            return LocalSpot(self._stack[0], ())
        os.close(self._stack.pop())
        return self._finish(self.reached.pop())

    def _finish(self, name: str, rest: list[str] | None = None) -> LocalSpot:
        names = (*self.reached, name, *(rest or []))
        owned = len(self._stack) > 1
        fd = self._stack.pop() if owned else self._stack[0]
        return LocalSpot(fd, names, len(rest or []), owned)


def stat_of(info: os.stat_result, target: str | None = None) -> Stat:
    return Stat(
        kind=_KINDS.get(S.S_IFMT(info.st_mode), OTHER),
        size=info.st_size,
        modified=info.st_mtime,
        accessed=info.st_atime,
        mode=S.S_IMODE(info.st_mode),
        links=info.st_nlink,
        target=target,
        identity=f"{info.st_ino}:{info.st_mtime_ns}:{info.st_ctime_ns}",
    )


def _before_rename(stat: Stat) -> str:
    # Renaming an entry moves its change time; the inode and the modification time stay.
    return stat.identity.rpartition(":")[0]


def _lstat(spot: LocalSpot) -> os.stat_result:
    if spot.rest:
        raise FileNotFoundError(errno.ENOENT, "nothing there")
    if spot.name == ".":
        return os.fstat(spot.fd)
    return os.stat(spot.name, dir_fd=spot.fd, follow_symlinks=False)


def _open_regular(spot: LocalSpot) -> int:
    if spot.rest:
        raise FileNotFoundError(errno.ENOENT, "nothing there")
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    fd = os.open(spot.name, flags, dir_fd=spot.fd)
    mode = os.fstat(fd).st_mode
    if S.S_ISREG(mode):
        return fd
    os.close(fd)
    if S.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a directory")
    raise CallError("not_regular_file", f"'{spot.path}' is not a regular file")


def _read_all(fd: int, limit: int | None, path: str) -> bytes:
    size = os.fstat(fd).st_size
    if limit is not None and size > limit:
        raise _too_large(path, limit)
    chunks: list[bytes] = []
    total = 0
    while chunk := os.read(fd, max(min(size + 1 - total, 1 << 26), _CHUNK)):
        chunks.append(chunk)
        total += len(chunk)
        if limit is not None and total > limit:
            raise _too_large(path, limit)
    return b"".join(chunks)


def _too_large(path: str, limit: int) -> CallError:
    return CallError("too_large", f"'{path}' is larger than {limit} bytes", where=path)


def _unlink_quietly(name: str, fd: int) -> None:
    try:
        os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        pass


def _changed(path: str) -> CallError:
    return CallError("path_changed", f"'{path}' changed after it was judged", where=path)


@contextmanager
def _errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _translated(error, path) from None


_BY_ERRNO = {
    errno.ENOENT: ("not_found", "'{}' does not exist"),
    errno.EEXIST: ("already_exists", "'{}' already exists"),
    errno.EISDIR: ("is_directory", "'{}' is a directory"),
    errno.ENOTDIR: ("not_a_directory", "'{}' is not a directory"),
    errno.ENOTEMPTY: ("directory_not_empty", "'{}' is not empty"),
    errno.EACCES: ("permission_denied", "Permission denied: '{}'"),
    errno.EPERM: ("permission_denied", "Permission denied: '{}'"),
    errno.EROFS: ("permission_denied", "The file system is read-only: '{}'"),
    errno.ENXIO: ("not_regular_file", "'{}' is not a regular file"),
    errno.ELOOP: ("path_changed", "'{}' changed after it was judged"),
    errno.ENAMETOOLONG: ("path_invalid", "The name is too long: '{}'"),
}


def _translated(error: OSError, path: str) -> CallError:
    code, message = _BY_ERRNO.get(
        error.errno or 0, ("io_error", "The file system failed on '{}': " + _reason(error))
    )
    return CallError(code, message.format(path), where=path)


def _reason(error: OSError) -> str:
    # strerror alone: str(error) would show the host's path. Braces would be taken as a format.
    return (error.strerror or type(error).__name__).replace("{", "(").replace("}", ")")
