"""Storage protocol: the methods of every backend, and the table of guarantees for each kind of store.

`BACKENDS` is that table; a store without a row gets `CONSERVATIVE`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from ringfence.policy.patterns.syntax import Fold
from ringfence.policy.value_classes import dataclass
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import StoragePlace
from ringfence.toolkit.plan.entries import LINK, Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept

if TYPE_CHECKING:
    from ringfence.toolkit.plan.changes import Delete, Move, Write
    from ringfence.toolkit.plan.content import StreamedContent


@dataclass(frozen=True, slots=True)
class Traits:
    """Guarantees of a store. A result never claims more than the store's row.

    `links`, `directories`, `rename`, `modes`: the store has symbolic links, real directories, an atomic
    rename and file modes. `durable`: a finished change survives a power cut. `race_free`: a path swapped by
    another process during a call cannot redirect it. `quarantines`: deletions go through the quarantine.

    `exclusive_create`: creating never overwrites a name that was taken meanwhile. `conditional`,
    `conditional_delete`, `conditional_move`: the store itself refuses to replace, delete or move anything but
    the judged version; without them the version is checked right before the change, and the record says so.

    `reliable`: the store has all that it accepted without an error; otherwise every change is read back.
    `read_only`: nothing in the store can be changed. `reads_at_once`: how many files are read side by side.
    """

    links: bool = False
    directories: bool = False
    rename: bool = False
    exclusive_create: bool = False
    modes: bool = False
    durable: bool = False
    race_free: bool = False
    quarantines: bool = False
    conditional: bool = False
    conditional_delete: bool = False
    conditional_move: bool = False
    reliable: bool = False
    read_only: bool = False
    reads_at_once: int = 1


BACKENDS: dict[str, Traits] = {
    "local": Traits(
        links=True,
        directories=True,
        rename=True,
        exclusive_create=True,
        modes=True,
        durable=True,
        race_free=True,
        quarantines=True,
        conditional=True,
        conditional_delete=True,
        conditional_move=True,
        reliable=True,
    ),
    "abfs": Traits(
        exclusive_create=True,
        durable=True,
        conditional=True,
        conditional_delete=True,
        conditional_move=True,
        reliable=True,
        reads_at_once=16,
    ),
    "memory": Traits(directories=True, exclusive_create=True, reliable=True),
    "s3": Traits(
        directories=True,
        exclusive_create=True,
        durable=True,
        conditional=True,
        conditional_delete=True,
        conditional_move=True,
        reliable=True,
        reads_at_once=16,
    ),
    "sftp": Traits(
        links=True,
        directories=True,
        rename=True,
        exclusive_create=True,
        modes=True,
        conditional_delete=True,
        reliable=True,
        reads_at_once=32,
    ),
}
CONSERVATIVE = Traits()


class Spot(Protocol):
    """Resolved handle of a path; `path` is canonical, all else belongs to the backend."""

    @property
    def path(self) -> str:
        """The canonical path, relative to the root."""


class Folder(Protocol):
    """An open directory."""

    def scan(self) -> list[tuple[str, Stat]]:
        """Return name and stat of each entry, sorted by name. CallError if the directory cannot be listed."""

    def spot(self, name: str) -> Spot:
        """Return the spot of a name in this directory; the caller releases it."""


@dataclass(frozen=True, slots=True)
class FailedEntry:
    """One entry that could not be changed, with the message and the code of the error."""

    path: str
    why: str
    code: str = "io_error"

    def error(self) -> CallError:
        """Return the error about this entry."""
        return CallError(self.code, self.why, where=self.path)


class Tree(Protocol):
    """A confined tree of files, read-only.

    Methods raise CallError, never OSError: `permission_denied`, `io_error` or, for a store,
    `outcome_unknown`, and the codes that a method names. They accept only spots that this tree resolved; each
    kind of tree has its own type of spot. Sizes and limits are bytes.
    """

    @property
    def traits(self) -> Traits:
        """The guarantees of the store."""

    @property
    def fold(self) -> Fold:
        """The differences between names that the store ignores, such as letter case."""

    @property
    def root(self) -> str:
        """The prefix of an absolute path inside the tree."""

    @property
    def place(self) -> StoragePlace:
        """The identity of this tree among all trees; the state kept for the tree is found by it."""

    def is_current(self) -> bool:
        """Whether the root is still the directory that was opened; always true for a remote store."""

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> Spot:
        """Return the spot that `names` lead to; the caller releases it.

        `names` are path components and may contain `..`. With `follow` a link at the last name is followed.
        The path need not exist. CallError `outside_root`, `path_invalid` or `permission_denied`.
        """

    def is_link(self, names: tuple[str, ...]) -> bool:
        """Whether the last of the names is a symbolic link, wherever it leads."""

    def stat(self, spot: Any) -> Stat | None:
        """Return kind, size, times and identity of the entry; None if there is none."""

    def read(self, spot: Any, limit: int | None = None, judged: Stat | None = None) -> bytes:
        """Return the content of a file.

        `limit`: CallError `too_large` for more bytes. `judged`: the judged version; CallError `path_changed`
        for any other, and a store may return what it read of exactly that version before, because the change
        that follows is made only if that version is still there. CallError `not_found`, `is_directory` or
        `not_regular_file`.
        """

    def chunks(self, spot: Any, judged: Stat | None = None) -> Iterator[bytes]:
        """Yield the content of a file in pieces, where the backend can read it so.

        CallError `path_changed` for another version than `judged`, but only where `traits.quarantines`.
        """

    def metadata(self, spot: Any, stat: Stat, *, copied: bool = False) -> Metadata | None:
        """Return the metadata of the entry `stat` that can be set again; None if there is none.

        `copied`: only the fields that a copy takes along. For a file, call it after `read` or `chunks` of the
        same `stat`: a store may have received metadata with the content. CallError `path_changed` where the
        backend notices another version.
        """

    def folder(self, spot: Any) -> AbstractContextManager[Folder]:
        """Return a context manager that opens the directory and closes it. CallError `not_a_directory`."""

    def rights(self, spot: Any, stat: Stat) -> tuple[bool, bool]:
        """Return whether the entry, which was `stat` just now, may be read and may be written by its mode."""

    def changeable(self, spot: Any, *, leaves: bool) -> bool:
        """Whether the directory's permissions allow adding or removing this name, as far as is known.

        `leaves`: the entry moves to another directory.
        """

    def missing(self, spot: Any) -> tuple[str, ...]:
        """Return the missing parent directories of the spot, outermost first. CallError `not_a_directory`."""

    def check(self, spot: Any) -> None:
        """Raise CallError `path_changed` for a spot that is no longer where it was judged."""

    def release(self, spot: Any) -> None:
        """Close the handles of the spot. A second call does nothing."""

    def close(self) -> None:
        """Close the handles of the tree; no other method may be called afterwards."""


class WritableTree(Tree, Protocol):
    """A confined tree of files that can be changed. `Workspace.writable` returns it; tests list its users.

    Methods that write content or metadata return the fields that the store could not keep, in words for
    people. `temporary` is a name that belongs to this change alone; `sweep` removes it after a crash. The
    entry at the spot is compared with the judged version (`stat` or `change`): CallError `path_changed` if it
    differs.
    """

    def create(
        self,
        spot: Any,
        data: bytes | StreamedContent,
        mode: int | None,
        temporary: str,
        metadata: Metadata | None = None,
    ) -> NotKept:
        """Create a file, completely or not at all; CallError `already_exists` when the name is taken.

        `mode` None leaves the mode to the system. CallError `read_only_store` in a store that cannot be
        changed; this holds for every method below.
        """

    def replace(  # noqa: PLR0913  one flat call for every backend
        self,
        spot: Any,
        data: bytes | StreamedContent,
        stat: Stat,
        mode: int | None,
        temporary: str,
        before: bytes | None = None,
        metadata: Metadata | None = None,
    ) -> NotKept:
        """Replace the content of the file `stat`.

        CallError `path_changed` where the file is another version, or its content is not `before`. Metadata
        of the old file stays, except for the fields in `metadata`.
        """

    def remove(self, spot: Any, change: Delete, temporary: str) -> Iterator[str | FailedEntry]:
        """Delete exactly the listed entries for good.

        Yields the path of each removed entry, and a FailedEntry for each entry that stays.
        """

    def quarantine(self, spot: Any, change: Delete, name: str) -> Iterator[str | FailedEntry]:
        """Rename the entry to `name` in the quarantine, and yield as `remove` does.

        An entry that differs from the judged version is put back. `quarantine` and `discard` work only where
        `traits.quarantines`.
        """

    def discard(self, name: str) -> None:
        """Delete the quarantined entry `name` for good, or the remains of it."""

    def quarantine_beside(self, state: str, *, make: bool = True) -> None:
        """Use the directory `state` of this machine as the quarantine, where a single rename reaches it.

        `make`: create the directory if it is missing.
        """

    @property
    def quarantine_name(self) -> str | None:
        """The workspace's quarantine directory; None where the quarantine is beside the state."""

    def move(self, source: Any, destination: Any, change: Move) -> NotKept:
        """Move the entry and everything below it; `change.over` is the only file that may be replaced.

        CallError `already_exists` when the destination is taken, `partial_failure` where part of it stays
        moved.
        """

    def make_directory(self, spot: Any) -> None:
        """Create a directory; its parent exists. CallError `already_exists`."""

    def remove_directory(self, spot: Any) -> None:
        """Remove an empty directory. CallError `directory_not_empty` or `not_found`."""

    def make_link(self, spot: Any, target: str) -> None:
        """Create a symbolic link with this text. CallError `already_exists`."""

    def set_metadata(self, spot: Any, mode: int | None, metadata: Metadata | None) -> NotKept:
        """Set mode and metadata of a link that was created again, or of a directory after its entries were.

        Returns the fields that were not kept.
        """

    def set_mode(self, spot: Any, stat: Stat, mode: int) -> None:
        """Set the mode of the regular file `stat`, and nothing else. Only where `traits.modes`."""

    def sweep(self, spot: Any, temporary: str) -> None:
        """Remove the temporary file that a process left beside `spot` when it died, if there is one."""

    def early(self, spot: Any, change: Write, temporary: str) -> AbstractContextManager[None]:
        """Return a context manager that begins to write the content of `change`, before its intent is
        committed.

        Invisible until `create` or `replace` is called with this `temporary`; without that, nothing is left
        at the end of the block. Only a local disk does so; elsewhere it does nothing.
        """

    def sync_once(self) -> AbstractContextManager[None]:
        """Return a context manager that makes the changes of its block durable all at once at its end.

        In a store that cannot do so, each change is made durable by itself.
        """


def spot_at(backend: Tree, path: str) -> Spot:
    """Resolve again a canonical path that was judged or recorded; the caller releases the spot.

    All code that uses a path again later calls this function. CallError `path_changed` for a path that leads
    elsewhere now, through a link for instance, or `permission_denied`.
    """
    try:
        spot = backend.resolve(paths.parts(path), follow=False)
    except CallError as error:
        if error.code not in ("outside_root", "path_invalid"):
            raise
        raise path_changed(path) from None
    if spot.path != path:
        backend.release(spot)
        raise path_changed(path)
    return spot


@contextmanager
def at(backend: Tree, path: str) -> Iterator[Spot]:
    """Yield the spot of `spot_at`, and release it at the end of the block."""
    spot = spot_at(backend, path)
    try:
        yield spot
    finally:
        backend.release(spot)


def complete(steps: Iterable[str | FailedEntry]) -> None:
    """Make all steps of a deletion. CallError for the first entry that is not removed."""
    for step in steps:
        if isinstance(step, FailedEntry):
            raise step.error()


def no_modes(path: str) -> CallError:
    """Return the error `io_error` for a change of mode in a store that has none."""
    return CallError("io_error", f"This store has no file modes, so that of '{path}' is not set", where=path)


def path_changed(path: str) -> CallError:
    """Return the error for an entry that differs from the judged version."""
    return CallError("path_changed", f"'{path}' changed after it was judged", where=path)


def traits_at(backend: Tree, path: str) -> Traits:
    """Return the guarantees for a path; a task store joined to a workspace has its own."""
    of_part = getattr(backend, "traits_at", None)
    found: Traits = backend.traits if of_part is None else of_part(path)
    return found


def read_only_store(path: str) -> CallError:
    """Return the error for a change in a read-only store."""
    return CallError("read_only_store", "Nothing in this store can be changed", where=path)


def check_content(backend: Tree, spot: Spot, before: bytes | None) -> None:
    """Raise CallError `path_changed` for a file whose content is not `before`; None accepts any content."""
    if before is not None and backend.read(spot) != before:
        raise CallError("path_changed", f"'{spot.path}' changed after it was read", where=spot.path)


def is_link(backend: Tree, names: tuple[str, ...]) -> bool:
    """Whether the entry is a symbolic link, wherever it leads; for backends that may have links."""
    spot = backend.resolve(names, follow=False)
    try:
        found = backend.stat(spot)
    finally:
        backend.release(spot)
    return found is not None and found.kind == LINK
