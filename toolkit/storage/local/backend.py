"""Local backend: every read and every change goes through a descriptor that was judged.

Only `toolkit.execution` calls the methods that change anything.
"""

from __future__ import annotations

import errno
import os
import stat as S
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy

from ringfence.policy.byte_names import to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import local_place
from ringfence.toolkit.plan.changes import DIRECTORY, LINK, Delete, Move, Stat
from ringfence.toolkit.plan.content import StreamedContent
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.storage.backend import BACKENDS, Missed, is_link, path_changed
from ringfence.toolkit.storage.local import atomic_write as placing
from ringfence.toolkit.storage.local import attributes
from ringfence.toolkit.storage.local import bulk_sync as bulk
from ringfence.toolkit.storage.local import syscalls as kernel
from ringfence.toolkit.storage.local.directory import KEPT_OPEN, LocalFolder
from ringfence.toolkit.storage.local.entries import (
    LIST,
    chunks,
    errors,
    look,
    lstat,
    open_regular,
    read_all,
    stat_of,
    translated,
    unlink_quietly,
)
from ringfence.toolkit.storage.local.name_folding import folding_of
from ringfence.toolkit.storage.local.resolver import MAX_STEPS, LocalSpot, Walk


class Local:
    """A directory of this machine as a confined tree."""

    traits = BACKENDS["local"]
    together = bulk.together

    def __init__(self, root: str, *, durable: bool = True) -> None:
        self.root = os.path.realpath(root)
        self.place = local_place(self.root)
        self.durable = durable
        try:
            self.fd = os.open(self.root, LIST)
        except OSError as error:
            raise CallError("io_error", f"The project root cannot be opened: {error.strerror}") from None
        self.kernel = kernel.probe(self.fd)
        self._mount = kernel.mount_of(self.fd, self.kernel)
        self.fold = folding_of(self.fd, self.root)
        self._quarantine: Local | None = None  # the directory beside the state, where that is used

    def close(self) -> None:
        if self._quarantine is not None:
            self._quarantine.close()
            self._quarantine = None
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def is_there(self) -> bool:
        """Whether the directory at the root's path is still the one that is open."""
        try:
            return os.path.samestat(os.fstat(self.fd), os.lstat(self.root))
        except OSError:
            return False

    # ------------------------------------------------------------------ reading

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> LocalSpot:
        """Follow `names` (which may contain `..`) on descriptors; the caller releases the spot.

        CallError `outside_root`, `path_invalid` (`..` through a link, too many links) or `permission_denied`.
        """
        if self._quarantine is not None and names[:1] == (OWN_DIRECTORY,) and len(names) > 1:
            caught = self._in_quarantine(names)
            if caught is not None:
                return caught
        if len(names) > MAX_STEPS and ".." not in names:
            return self._far_down(names)
        # Without the kernel's help a walk holds a descriptor for each name.
        straight = self.kernel.beneath or len(names) > KEPT_OPEN
        spot = self._straight(names, follow) if straight else None
        return spot or self.walk(names, follow=follow)

    def walk(self, names: tuple[str, ...], *, follow: bool) -> LocalSpot:
        """Return the same as `resolve`, without the kernel's help."""
        walk = Walk(self.fd, names, follow)
        try:
            return walk.run()
        except OSError as error:
            raise translated(error, paths.join(tuple(walk.reached))) from None
        finally:
            walk.close()

    def is_link(self, names: tuple[str, ...]) -> bool:
        return is_link(self, names)

    def release(self, spot: LocalSpot) -> None:
        if spot.owned:
            os.close(spot.fd)
            spot.owned = False

    def stat(self, spot: LocalSpot) -> Stat | None:
        if spot.rest:
            return None
        seen, spot.seen = spot.seen, None
        if seen is not None:
            return stat_of(seen)
        try:
            return look(spot.fd, spot.name, lstat(spot))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translated(error, spot.path) from None

    def read(self, spot: LocalSpot, limit: int | None = None, known: Stat | None = None) -> bytes:
        """Return the bytes of a regular file.

        CallError `too_large` beyond `limit`, `path_changed` if not `known`.
        """
        with errors(spot.path):
            fd, info = open_regular(spot)
            try:
                return read_all(fd, info, limit, spot.path, known)
            finally:
                os.close(fd)

    def chunks(self, spot: LocalSpot, known: Stat | None = None) -> Iterator[bytes]:
        """Yield the content of a regular file in pieces.

        CallError `path_changed` if it is not the `known` one.
        """
        return chunks(spot, known)

    def metadata(self, spot: LocalSpot, stat: Stat, *, copied: bool = False) -> Metadata | None:
        """Return owner, group, times and extended attributes; a copy takes users' attributes along."""
        return attributes.metadata_of(spot, stat, copied=copied)

    @contextmanager
    def folder(self, spot: LocalSpot) -> Iterator[LocalFolder]:
        """Open the directory at `spot`; another mount than the root's is refused."""
        with errors(spot.path):
            folder = LocalFolder(self._open_folder(spot), spot.names, self.kernel, spot.folder)
        try:
            yield folder
        finally:
            folder.close()

    def rights(self, spot: LocalSpot, stat: Stat) -> tuple[bool, bool]:
        """Return the access rights; a file without any write bit is not writable even for root."""
        if stat.kind == LINK:
            return True, True
        readable = writable = self._permits(spot, os.R_OK | os.W_OK)
        if not readable:
            if self.stat(spot) is None:
                return True, True  # a vanished entry is not forbidden; the change itself will report it
            readable, writable = self._permits(spot, os.R_OK), self._permits(spot, os.W_OK)
        return readable, writable and bool((stat.mode or 0) & 0o222)

    def changeable(self, spot: LocalSpot, *, leaves: bool) -> bool:
        """Whether the directory may be changed; moving a directory also writes its `..`."""
        rights = os.W_OK | os.X_OK
        if not os.access(".", rights, dir_fd=spot.fd):
            return False
        found = self.stat(spot) if leaves else None
        return found is None or found.kind != DIRECTORY or self._permits(spot, rights)

    def _permits(self, spot: LocalSpot, rights: int) -> bool:
        if spot.name == ".":
            return os.access(self.root, rights)
        follow = {"follow_symlinks": False} if os.access in os.supports_follow_symlinks else {}
        return os.access(spot.name, rights, dir_fd=spot.fd, **follow)

    def missing(self, spot: LocalSpot) -> tuple[str, ...]:
        """Return the missing parents of `spot`, outermost first. CallError `not_a_directory`."""
        first = len(spot.names) - spot.rest
        if spot.blocked:
            path = paths.join(spot.names[:first])
            raise CallError("not_a_directory", f"'{path}' is not a directory", where=path)
        return tuple(paths.join(spot.names[:n]) for n in range(first, len(spot.names)))

    # ----------------------------------------------------------------- changing

    def check(self, spot: LocalSpot) -> None:
        """Raise CallError `path_changed` when the spot's directory is no longer where it was judged."""
        if spot.rest:
            # A parent is gone, so the missing name is the parent's.
            raise path_changed(spot.path)
        if spot.fd == self.fd and len(spot.names) < 2:
            return  # directly in the root, which is open
        folder = spot.names[: max(len(spot.names) - 1, 0)]
        try:
            now = self.resolve((*folder, "."), follow=False)
        except CallError:
            raise path_changed(spot.path) from None
        try:
            same = now.names == (*folder, ".") and os.path.samestat(os.fstat(now.fd), os.fstat(spot.fd))
        finally:
            self.release(now)
        if not same:
            raise path_changed(spot.path)

    def create(
        self,
        spot: LocalSpot,
        data: bytes | StreamedContent,
        mode: int | None,
        temporary: str,
        metadata: Metadata | None = None,
    ) -> NotKept:
        """Create a file, completely or not at all; CallError `already_exists` when the name is taken."""
        with errors(spot.path):
            lost = placing.write(
                spot.fd, temporary, data, mode, durable=self.durable, metadata=metadata or {}
            )
            try:
                placing.name_new(self.kernel, LocalSpot(spot.fd, (temporary,)), spot)
            except BaseException:
                unlink_quietly(temporary, spot.fd)
                raise
            self.sync(spot.fd)
        return lost

    def replace(  # noqa: PLR0913  the protocol's parameters
        self,
        spot: LocalSpot,
        data: bytes | StreamedContent,
        stat: Stat,
        mode: int | None,
        temporary: str,
        before: bytes | None = None,
        metadata: Metadata | None = None,
    ) -> NotKept:
        """Replace a file by rename.

        Mode, owner and extended attributes stay, except for those in `metadata`.

        CallError `path_changed` where the file is not the one in `stat`, or its content is not `before`.
        """
        with errors(spot.path):
            old, info = placing.opened(spot, needed=before is not None)
            try:
                if stat_of(info).identity != stat.identity or info.st_nlink != stat.links:
                    raise path_changed(spot.path)
                if before is not None and read_all(old, info, None, spot.path) != before:
                    raise path_changed(spot.path)
                fields, mode, lost = attributes.for_replacing(old, info, mode, metadata)
                lost += placing.write(spot.fd, temporary, data, mode, durable=self.durable, metadata=fields)
            finally:
                if old >= 0:
                    os.close(old)
            try:
                # Once more by its name, at the last moment.
                if stat_of(lstat(spot)).identity != stat.identity:
                    raise path_changed(spot.path)
                os.rename(temporary, spot.name, src_dir_fd=spot.fd, dst_dir_fd=spot.fd)
            except BaseException:
                unlink_quietly(temporary, spot.fd)
                raise
            self.sync(spot.fd)
        return lost

    def remove(self, spot: LocalSpot, change: Delete, temporary: str) -> Iterator[str | Missed]:
        """Rename the entry into the quarantine, compare it with the listing, then delete it.

        Yields the path of each removed entry and a Missed for each that stays. An entry that is not the
        judged one is put back; CallError `path_changed`.
        """
        yield from self._caught(spot, change, temporary, stays=False)

    def quarantine(self, spot: LocalSpot, change: Delete, name: str) -> Iterator[str | Missed]:
        """Quarantine as `remove` does, but keep the quarantined entry under `name`."""
        yield from self._caught(spot, change, name, stays=True)

    def _caught(self, spot: LocalSpot, change: Delete, name: str, *, stays: bool) -> Iterator[str | Missed]:
        from ringfence.toolkit.storage.local.deletion import Removal

        with errors(spot.path), self._catching() as folder:
            yield from Removal(self, spot, change, LocalSpot(folder, (name,)), stays).run()

    @contextmanager
    def _catching(self) -> Iterator[int]:
        """Open the quarantine directory for a deletion."""
        if self._quarantine is not None:
            yield self._quarantine.fd
            return
        from ringfence.toolkit.storage.local.quarantine import hidden

        with hidden(self.fd) as folder:
            yield folder

    def quarantine_beside(self, state: str, *, make: bool = True) -> None:
        """Quarantine in the directory `state`, where one rename reaches it."""
        from ringfence.toolkit.storage.local.quarantine import beside

        with errors(OWN_DIRECTORY):
            fd = beside(state, self.fd, self.kernel, make=make)
        if fd is not None:
            # The same mount, so the same calls work in it.
            self._quarantine = copy(self)
            self._quarantine.fd = fd

    @property
    def quarantine_name(self) -> str | None:
        return OWN_DIRECTORY if self._quarantine is None else None

    def discard(self, name: str) -> None:
        """Delete for good what is in the quarantine under `name`, or what is left of it."""
        from ringfence.toolkit.storage.local.deletion import remove_catch
        from ringfence.toolkit.storage.local.quarantine import hidden

        with errors(OWN_DIRECTORY):
            if self._quarantine is not None:
                remove_catch(self._quarantine, self._quarantine.fd, name)
            try:
                os.stat(OWN_DIRECTORY, dir_fd=self.fd, follow_symlinks=False)
            except FileNotFoundError:
                return
            with hidden(self.fd) as folder:
                remove_catch(self, folder, name)

    def move(self, source: LocalSpot, destination: LocalSpot, change: Move) -> NotKept:
        """Rename within the workspace; never over anything but the one file that the plan names."""
        with errors(source.path):
            if stat_of(lstat(source)).identity != change.stat.identity:
                raise path_changed(source.path)
            if change.over is not None:
                if stat_of(lstat(destination)).identity != change.over.identity:
                    raise path_changed(destination.path)
                os.rename(source.name, destination.name, src_dir_fd=source.fd, dst_dir_fd=destination.fd)
            else:
                self.rename_new(source, destination)
            self.sync(source.fd)
            self.sync(destination.fd)
        return ()

    def make_directory(self, spot: LocalSpot) -> None:
        with errors(spot.path):
            os.mkdir(spot.name, 0o777, dir_fd=spot.fd)
            self.sync(spot.fd)

    def remove_directory(self, spot: LocalSpot) -> None:
        with errors(spot.path):
            os.rmdir(spot.name, dir_fd=spot.fd)
            self.sync(spot.fd)

    def make_link(self, spot: LocalSpot, target: str) -> None:
        with errors(spot.path):
            os.symlink(to_disk(target), spot.name, dir_fd=spot.fd)
            self.sync(spot.fd)

    def set_metadata(self, spot: LocalSpot, mode: int | None, metadata: Metadata | None) -> NotKept:
        with errors(spot.path):
            if metadata and S.S_ISLNK(lstat(spot).st_mode):
                return attributes.put_on_link(spot, metadata)
            fd = os.open(spot.name, LIST, dir_fd=spot.fd)
            try:
                return attributes.put_on(fd, metadata or {}, mode)
            finally:
                os.close(fd)

    def set_mode(self, spot: LocalSpot, stat: Stat, mode: int) -> None:
        with errors(spot.path):
            fd, info = open_regular(spot)
            try:
                if stat_of(info).identity != stat.identity or info.st_nlink != stat.links:
                    raise path_changed(spot.path)
                os.fchmod(fd, mode)
                if self.durable:
                    os.fsync(fd)
            finally:
                os.close(fd)

    def sweep(self, spot: LocalSpot, temporary: str) -> None:
        """Remove a temporary file that a dead process left beside `spot`."""
        with errors(spot.path):
            unlink_quietly(temporary, spot.fd)

    # ------------------------------------------------------------------- inside

    def _straight(self, names: tuple[str, ...], follow: bool) -> LocalSpot | None:
        """Open the parent in one call if no link is on the way; None: walk, and find out what is there."""
        if not names or ".." in names:
            return None
        fd = self.fd
        if len(names) > 1:
            try:
                fd = kernel.descend(self.kernel, fd, to_disk("/".join(names[:-1])).split("/"))
            except OSError:
                return None
        spot = LocalSpot(fd, names, owned=fd != self.fd)
        if follow and self._is_link(spot):
            self.release(spot)
            return None
        return spot

    def _in_quarantine(self, names: tuple[str, ...]) -> LocalSpot | None:
        """Open the quarantine beside the state; None where it is missing and may be in the workspace."""
        assert self._quarantine is not None, "asked only where there is one"
        try:
            os.stat(names[1], dir_fd=self._quarantine.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        spot = self._quarantine.resolve(names[1:], follow=False)
        return LocalSpot(spot.fd, (OWN_DIRECTORY, *spot.names), spot.rest, spot.owned, spot.blocked)

    def _far_down(self, names: tuple[str, ...]) -> LocalSpot:
        """Open a directory too deep for a single call, through no link, for a walk or an undo."""
        on_disk = to_disk("/".join(names[:-1])).split("/")
        with errors(paths.join(names)):
            try:
                return LocalSpot(kernel.descend(self.kernel, self.fd, on_disk), names, owned=True)
            except (FileNotFoundError, NotADirectoryError):
                there = self._as_far_as(on_disk)
            return self._blocked_at(names, on_disk, there)

    def _as_far_as(self, on_disk: list[str]) -> int:
        """Return how many of the names, from the first, are directories."""
        low, high = 0, len(on_disk)
        while low < high:
            middle = (low + high + 1) // 2
            try:
                os.close(kernel.descend(self.kernel, self.fd, on_disk[:middle]))
            except (FileNotFoundError, NotADirectoryError):
                high = middle - 1
            else:
                low = middle
        return low

    def _blocked_at(self, names: tuple[str, ...], on_disk: list[str], there: int) -> LocalSpot:
        fd = kernel.descend(self.kernel, self.fd, on_disk[:there])
        spot = LocalSpot(fd, names, rest=len(names) - 1 - there, owned=True)
        try:
            found = os.stat(spot.name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            return spot
        if S.S_ISLNK(found.st_mode) or S.S_ISDIR(found.st_mode):
            self.release(spot)
            raise path_changed(spot.path)
        spot.blocked = True
        return spot

    def _is_link(self, spot: LocalSpot) -> bool:
        """Whether the last name is a link, or an entry that needs a closer look."""
        try:
            found = lstat(spot)
        except FileNotFoundError:
            return False  # a name that is free
        except OSError:
            return True
        if S.S_ISLNK(found.st_mode):
            return True
        spot.seen = found
        return False

    def _open_folder(self, spot: LocalSpot) -> int:
        if not spot.names:
            return os.open(".", LIST, dir_fd=self.fd)
        if spot.rest:
            raise FileNotFoundError(errno.ENOENT, "nothing there")
        fd = os.open(spot.name, LIST, dir_fd=spot.fd)
        if kernel.mount_of(fd, self.kernel) != self._mount:
            os.close(fd)
            mount = f"'{spot.path}' is another mount, which is not entered"
            raise CallError("permission_denied", mount, where=spot.path)
        return fd

    def rename_new(self, source: LocalSpot, destination: LocalSpot) -> None:
        placing.rename_new(self.kernel, source, destination)

    def sync(self, fd: int) -> None:
        if self.durable:
            placing.sync(fd)
