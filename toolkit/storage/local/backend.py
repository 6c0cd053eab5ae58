"""Local backend: every read and every change goes through a descriptor of the judged directory.

Only `toolkit.execution` calls the methods that change anything.
"""

from __future__ import annotations

import errno
import os
import stat as S
from collections.abc import Iterator
from contextlib import contextmanager

from ringfence.policy.byte_names import to_disk
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import local_place
from ringfence.toolkit.plan.entries import DIRECTORY, LINK, Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.storage.backend import BACKENDS, FailedEntry, is_link, path_changed
from ringfence.toolkit.storage.local import atomic_write, early_write, late_sync, resolver, syscalls
from ringfence.toolkit.storage.local.directory import LocalFolder
from ringfence.toolkit.storage.local.entries import (
    LIST,
    chunks,
    errors,
    identity_of,
    lstat,
    open_regular,
    read_all,
    stat_of,
    stat_with_target,
    translated,
    unlink_quietly,
)
from ringfence.toolkit.storage.local.metadata import for_replacement, metadata_of, set_on, set_on_link
from ringfence.toolkit.storage.local.name_folding import folding_of
from ringfence.toolkit.storage.local.spot import LocalSpot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ringfence.toolkit.plan.changes import Delete, Move
    from ringfence.toolkit.plan.content import StreamedContent


class Local:
    """A directory of this machine as a confined tree."""

    traits = BACKENDS["local"]
    early = early_write.early
    later = late_sync.later
    sync_once = late_sync.sync_once

    def __init__(self, root: str, *, durable: bool = True) -> None:
        self.root = os.path.realpath(root)
        self.place = local_place(self.root)
        self.durable = durable
        try:
            self.fd = os.open(self.root, LIST)
        except OSError as error:
            raise CallError("io_error", f"The project root cannot be opened: {error.strerror}") from None
        self.kernel = syscalls.probe(self.fd)
        self._mount = syscalls.mount_of(self.fd, self.kernel)
        self.fold = folding_of(self.fd, self.root)
        self.early_files: dict[str, early_write.EarlyFile] = {}  # by temporary name
        self.late: late_sync.LateSync | None = None  # while a change is synced later
        self._quarantine: Local | None = None  # the directory beside the state, where that is used

    def close(self) -> None:
        if self._quarantine is not None:
            self._quarantine.close()
            self._quarantine = None
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def is_current(self) -> bool:
        """Whether the directory at the root's path is still the one that is open."""
        try:
            return os.path.samestat(os.fstat(self.fd), os.lstat(self.root))
        except OSError:
            return False

    # ------------------------------------------------------------------ reading

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> LocalSpot:
        """Return the spot that `names` lead to; the caller releases it.

        CallError `outside_root`, `path_invalid` (`..` through a link, too many links) or `permission_denied`.
        """
        if self._quarantine is not None and names[:1] == (OWN_DIRECTORY,) and len(names) > 1:
            quarantined = self._in_quarantine(names)
            if quarantined is not None:
                return quarantined
        return resolver.resolve(self.kernel, self.fd, names, follow=follow)

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
            return stat_with_target(spot.fd, spot.name, lstat(spot))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise translated(error, spot.path) from None

    def read(self, spot: LocalSpot, limit: int | None = None, judged: Stat | None = None) -> bytes:
        """Return the bytes of a regular file. CallError `too_large` beyond `limit`, `path_changed`."""
        with errors(spot.path):
            fd, info = open_regular(spot)
            try:
                return read_all(fd, info, limit, spot.path, judged)
            finally:
                os.close(fd)

    def chunks(self, spot: LocalSpot, judged: Stat | None = None) -> Iterator[bytes]:
        """Yield the content of a regular file in pieces. CallError `path_changed`."""
        return chunks(spot, judged)

    def metadata(self, spot: LocalSpot, stat: Stat, *, copied: bool = False) -> Metadata | None:
        """Return owner, group, times and extended attributes; a copy takes users' attributes along."""
        return metadata_of(spot, stat, copied=copied)

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
                return True, True  # a vanished entry is not forbidden; the change itself reports it
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
            not_kept = early_write.create(self, spot, temporary, data, mode, metadata or {})
            self.sync(spot.fd)
        return not_kept

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
        """Replace a file by rename; mode, owner and extended attributes stay, except for those in `metadata`.

        CallError `path_changed` where the file is not the one in `stat`, or its content is not `before`.
        """
        with errors(spot.path):
            old, info = atomic_write.open_to_replace(spot, needed=before is not None)
            try:
                if identity_of(info) != stat.identity or info.st_nlink != stat.links:
                    raise path_changed(spot.path)
                if before is not None and read_all(old, info, None, spot.path) != before:
                    raise path_changed(spot.path)
                fields, mode, not_kept = for_replacement(old, info, mode, metadata)
                not_kept += early_write.write(self, spot, temporary, data, mode, fields)
            finally:
                if old >= 0:
                    os.close(old)
            try:
                # The name may lead to another file by now, so it is compared at the last moment.
                if identity_of(lstat(spot)) != stat.identity:
                    raise path_changed(spot.path)
                os.rename(temporary, spot.name, src_dir_fd=spot.fd, dst_dir_fd=spot.fd)
            except BaseException:
                unlink_quietly(temporary, spot.fd)
                raise
            self.sync(spot.fd)
        return not_kept

    def remove(self, spot: LocalSpot, change: Delete, temporary: str) -> Iterator[str | FailedEntry]:
        """Rename the entry into the quarantine, compare it, then delete it, or put another one back."""
        yield from self._removal(spot, change, temporary, keep=False)

    def quarantine(self, spot: LocalSpot, change: Delete, name: str) -> Iterator[str | FailedEntry]:
        """Rename the entry into the quarantine, compare it as `remove` does, and keep it there as `name`."""
        yield from self._removal(spot, change, name, keep=True)

    def _removal(
        self, spot: LocalSpot, change: Delete, name: str, *, keep: bool
    ) -> Iterator[str | FailedEntry]:
        from ringfence.toolkit.storage.local.deletion import Removal

        with errors(spot.path), self._open_quarantine() as folder:
            yield from Removal(self, spot, change, LocalSpot(folder, (name,)), keep).run()

    @contextmanager
    def _open_quarantine(self) -> Iterator[int]:
        """Yield a descriptor of the quarantine directory."""
        if self._quarantine is not None:
            yield self._quarantine.fd
            return
        from ringfence.toolkit.storage.local.quarantine import open_in_workspace

        with open_in_workspace(self.fd) as folder:
            yield folder

    def quarantine_beside(self, state: str, *, make: bool = True) -> None:
        """Quarantine in the directory `state`, where one rename reaches it."""
        from ringfence.toolkit.storage.local.quarantine import open_beside_state

        with errors(OWN_DIRECTORY):
            fd = open_beside_state(state, self.fd, self.kernel, make=make)
        if fd is not None:
            from copy import copy

            # The same mount, so the same calls work in it.
            self._quarantine = copy(self)
            self._quarantine.fd = fd

    @property
    def quarantine_name(self) -> str | None:
        return OWN_DIRECTORY if self._quarantine is None else None

    def discard(self, name: str) -> None:
        """Delete the quarantined entry `name` for good, or the remains of it."""
        from ringfence.toolkit.storage.local.deletion import remove_quarantined
        from ringfence.toolkit.storage.local.quarantine import open_in_workspace

        with errors(OWN_DIRECTORY):
            if self._quarantine is not None:
                remove_quarantined(self._quarantine, self._quarantine.fd, name)
            try:
                os.stat(OWN_DIRECTORY, dir_fd=self.fd, follow_symlinks=False)
            except FileNotFoundError:
                return
            with open_in_workspace(self.fd) as folder:
                remove_quarantined(self, folder, name)

    def move(self, source: LocalSpot, destination: LocalSpot, change: Move) -> NotKept:
        """Rename within the workspace; never over another file than the one that the plan replaces."""
        with errors(source.path):
            if identity_of(lstat(source)) != change.stat.identity:
                raise path_changed(source.path)
            if change.over is not None:
                if identity_of(lstat(destination)) != change.over.identity:
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
                return set_on_link(spot, metadata)
            fd = os.open(spot.name, LIST, dir_fd=spot.fd)
            try:
                return set_on(fd, metadata or {}, mode)
            finally:
                os.close(fd)

    def set_mode(self, spot: LocalSpot, stat: Stat, mode: int) -> None:
        with errors(spot.path):
            fd, info = open_regular(spot)
            try:
                if identity_of(info) != stat.identity or info.st_nlink != stat.links:
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

    def _in_quarantine(self, names: tuple[str, ...]) -> LocalSpot | None:
        """Return the spot in the quarantine beside the state; None for an entry that is not there."""
        assert self._quarantine is not None, "only called with a quarantine beside the state"
        try:
            os.stat(names[1], dir_fd=self._quarantine.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        spot = self._quarantine.resolve(names[1:], follow=False)
        return LocalSpot(spot.fd, (OWN_DIRECTORY, *spot.names), spot.rest, spot.owned, spot.blocked)

    def _open_folder(self, spot: LocalSpot) -> int:
        if not spot.names:
            return os.open(".", LIST, dir_fd=self.fd)
        if spot.rest:
            raise FileNotFoundError(errno.ENOENT, "nothing there")
        fd = os.open(spot.name, LIST, dir_fd=spot.fd)
        if syscalls.mount_of(fd, self.kernel) != self._mount:
            os.close(fd)
            mount = f"'{spot.path}' is another mount, which is not entered"
            raise CallError("permission_denied", mount, where=spot.path)
        return fd

    def rename_new(self, source: LocalSpot, destination: LocalSpot) -> None:
        """Rename to a free name. OSError."""
        atomic_write.rename_new(self.kernel, source, destination)

    def sync(self, fd: int) -> None:
        """Sync the open directory to disk, now or later, if changes are to be durable. OSError."""
        if self.late is not None:
            self.late.add_directory(fd)
        elif self.durable:
            atomic_write.sync(fd)

    def sync_file(self, fd: int) -> None:
        """Sync the open file to disk, now or later, if changes are to be durable. OSError."""
        if self.late is not None:
            self.late.add_file(fd)
        elif self.durable:
            os.fsync(fd)
