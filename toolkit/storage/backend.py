"""What each kind of store can do, and the shape every backend has.

`BACKENDS` is the one table; a store that is not in it gets the conservative row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from ringfence.policy.patterns.syntax import Fold
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import StoragePlace
from ringfence.toolkit.plan.changes import LINK, Delete, Move, Stat
from ringfence.toolkit.plan.content import StreamedContent, whole
from ringfence.toolkit.plan.metadata import Metadata, NotKept


@dataclass(frozen=True, slots=True)
class Traits:
    """What a store promises. A result never claims more than its row here.

    `exclusive_create`: a name that is taken meanwhile is not written over. `conditional`,
    `conditional_delete`, `conditional_move`: what is replaced, deleted or moved is what was judged, or the
    store refuses it; else a look comes right before, and the record says so. `keeps`: what it takes without
    an error it has; else every change is looked at again. `read_only`: nothing in it can
    be changed.
    """

    links: bool = False
    directories: bool = False
    rename: bool = False
    exclusive_create: bool = False
    modes: bool = False
    durable: bool = False
    race_free: bool = False
    catches: bool = False
    conditional: bool = False
    conditional_delete: bool = False
    conditional_move: bool = False
    keeps: bool = False
    read_only: bool = False


BACKENDS: dict[str, Traits] = {
    "local": Traits(
        links=True,
        directories=True,
        rename=True,
        exclusive_create=True,
        modes=True,
        durable=True,
        race_free=True,
        catches=True,
        conditional=True,
        conditional_delete=True,
        conditional_move=True,
        keeps=True,
    ),
    "abfs": Traits(
        exclusive_create=True,
        durable=True,
        conditional=True,
        conditional_delete=True,
        conditional_move=True,
        keeps=True,
    ),
    "memory": Traits(directories=True, exclusive_create=True, keeps=True),
    "s3": Traits(
        directories=True,
        exclusive_create=True,
        durable=True,
        conditional=True,
        conditional_delete=True,
        conditional_move=True,
        keeps=True,
    ),
    "sftp": Traits(
        links=True,
        directories=True,
        rename=True,
        exclusive_create=True,
        modes=True,
        conditional_delete=True,
        keeps=True,
    ),
}
CONSERVATIVE = Traits()


class Spot(Protocol):
    """A place in the tree, resolved once: `path` is canonical, the rest is the backend's own."""

    @property
    def path(self) -> str: ...


class Folder(Protocol):
    """An open directory."""

    def scan(self) -> list[tuple[str, Stat]]: ...

    def spot(self, name: str) -> Spot: ...


@dataclass(frozen=True, slots=True)
class Missed:
    """One entry of a tree that could not be removed, and why."""

    path: str
    why: str
    code: str = "io_error"


class Tree(Protocol):
    """A confined tree of files, to look at.

    Every method raises CallError, never OSError, and takes only spots that this tree resolved, whose type
    each kind of tree has for itself.
    """

    @property
    def traits(self) -> Traits: ...

    @property
    def fold(self) -> Fold: ...

    @property
    def root(self) -> str:
        """What an absolute path in a call has to begin with to be inside."""

    @property
    def place(self) -> StoragePlace:
        """Which tree this is among all others; the state that is kept for it goes by it."""

    def is_there(self) -> bool:
        """Whether the root is still the directory that was opened; of a store the next request tells."""

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> Spot: ...
    def is_link(self, names: tuple[str, ...]) -> bool: ...
    def stat(self, spot: Any) -> Stat | None: ...
    def read(self, spot: Any, limit: int | None = None, known: Stat | None = None) -> bytes:
        """The content. `known` is what was judged: a store may give what it read of exactly that before,
        because the change that follows is made only if it is still there."""

    def chunks(self, spot: Any, known: Stat | None = None) -> Iterator[bytes]:
        """The content piece by piece, where the backend can read it so; only where `traits.catches` is it
        `path_changed` when it is not the `known` one."""

    def metadata(self, spot: Any, stat: Stat, *, copied: bool = False) -> Metadata | None:
        """What is attached to the entry `stat`, as far as it can be put on again; with `copied` only the
        fields that a copy takes along. None where there is nothing.

        Of a file it is asked after `read` or `chunks` of the same `stat`: a store may remember what came with
        the content. `path_changed` where the backend sees that it is not the `stat` any more.
        """

    def folder(self, spot: Any) -> AbstractContextManager[Folder]: ...
    def rights(self, spot: Any, stat: Stat) -> tuple[bool, bool]:
        """Whether what is there, and was `stat` just now, may be read and may be written by its mode."""

    def changeable(self, spot: Any, *, leaves: bool) -> bool:
        """Whether a name can come or go here by the rights of its directory, as far as the backend knows;
        `leaves`: what is there goes to another directory."""

    def missing(self, spot: Any) -> tuple[str, ...]: ...
    def check(self, spot: Any) -> None:
        """Refuse (`path_changed`) a spot that is no longer where it was judged."""

    def release(self, spot: Any) -> None: ...
    def close(self) -> None: ...


class WritableTree(Tree, Protocol):
    """The same tree, to change. Who may have one is a list in the tests; `Workspace.writable` gives it.

    What puts content or metadata somewhere gives the fields that could not be kept, in words for people.
    """

    def create(
        self,
        spot: Any,
        data: bytes | StreamedContent,
        mode: int | None,
        temporary: str,
        metadata: Metadata | None = None,
    ) -> NotKept: ...
    def replace(
        self,
        spot: Any,
        data: bytes | StreamedContent,
        stat: Stat,
        mode: int | None,
        temporary: str,
        before: bytes | None = None,
        metadata: Metadata | None = None,
    ) -> NotKept:
        """Put new content in the place of the file `stat`; `path_changed` where it is another, or does not
        hold `before` any more.

        What is attached to the file stays, but for the fields that are in `metadata`.
        """

    def remove(self, spot: Any, change: Delete, temporary: str) -> Iterator[str | Missed]: ...
    def quarantine(self, spot: Any, change: Delete, name: str) -> Iterator[str | Missed]:
        """Rename what is there to `name` among the hidden; it stays there if it is what was judged.

        This and `discard` only where `traits.catches`.
        """

    def discard(self, name: str) -> None:
        """Remove for good what was put away under `name`, or what is left of it."""

    def quarantine_beside(self, state: str, *, make: bool = True) -> None:
        """Put away in the directory `state` of this machine, from now on, where one rename reaches it."""

    @property
    def quarantine_name(self) -> str | None:
        """The directory of the workspace in which is put away; None where it is beside the state."""

    def move(self, source: Any, destination: Any, change: Move) -> NotKept: ...
    def make_directory(self, spot: Any) -> None: ...
    def remove_directory(self, spot: Any) -> None: ...
    def make_link(self, spot: Any, target: str) -> None: ...
    def set_metadata(self, spot: Any, mode: int | None, metadata: Metadata | None) -> NotKept:
        """Give a directory or a link that was made again what it had; a directory once all is in it."""

    def sweep(self, spot: Any, temporary: str) -> None: ...
    def together(self) -> AbstractContextManager[None]:
        """Make durable all at once what is changed inside, where the backend can."""


@dataclass(frozen=True, slots=True)
class NewContent:
    """What a file is to hold and to have; `temporary` is the name that a store may make it under."""

    data: bytes
    mode: int | None
    temporary: str
    metadata: Metadata


class StoreBase:
    """What every store does that is no directory of this machine; a kind of store has its `_put_…`."""

    def is_there(self) -> bool:
        return True

    def create(
        self,
        spot: Any,
        data: bytes | StreamedContent,
        mode: int | None,
        temporary: str,
        metadata: Metadata | None = None,
    ) -> NotKept:
        return self._put_new(spot, NewContent(whole(data), mode, temporary, metadata or {}))

    def replace(
        self,
        spot: Any,
        data: bytes | StreamedContent,
        stat: Stat,
        mode: int | None,
        temporary: str,
        before: bytes | None = None,
        metadata: Metadata | None = None,
    ) -> NotKept:
        new = NewContent(whole(data), mode, temporary, metadata or {})
        return self._put_over(spot, new, stat, before)

    def _put_new(self, spot: Any, new: NewContent) -> NotKept:
        """Put a file where nothing is. Raises CallError `already_exists`."""
        raise NotImplementedError

    def _put_over(self, spot: Any, new: NewContent, stat: Stat, before: bytes | None) -> NotKept:
        """Put new content in the place of the file `stat`, which holds `before` where that is given."""
        raise NotImplementedError

    def metadata(self, spot: Any, stat: Stat, *, copied: bool = False) -> Metadata | None:
        return None

    def set_metadata(self, spot: Any, mode: int | None, metadata: Metadata | None) -> NotKept:
        return ()

    def quarantine(self, spot: Any, change: Delete, name: str) -> Iterator[str | Missed]:
        raise CallError("io_error", "This store cannot put away what is deleted")

    def discard(self, name: str) -> None:
        raise CallError("io_error", "This store has put nothing away")

    def quarantine_beside(self, state: str, *, make: bool = True) -> None:
        """A store keeps what is deleted in the history."""

    @property
    def quarantine_name(self) -> str | None:
        return None

    def together(self) -> AbstractContextManager[None]:
        return nullcontext()

    def note_resolved(self, path: str) -> None:
        """Keep the path of a change whose reply was lost, and which a look has shown to be made."""
        self.__dict__.setdefault("_resolved", []).append(path)

    def take_resolved(self) -> tuple[str, ...]:
        """The paths kept by `note_resolved` since this was last asked."""
        return tuple(dict.fromkeys(self.__dict__.pop("_resolved", ())))


def spot_at(backend: Tree, path: str) -> Spot:
    """Resolve again a canonical path that was judged or recorded; the caller releases the spot.

    Everything that comes back to a path later goes through here. Raises CallError `path_changed` where the
    path leads elsewhere now, through a link for instance, and `permission_denied`.
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
    """The spot of `spot_at`, for as long as the block runs."""
    spot = spot_at(backend, path)
    try:
        yield spot
    finally:
        backend.release(spot)


def path_changed(path: str) -> CallError:
    return CallError("path_changed", f"'{path}' changed after it was judged", where=path)


def traits_at(backend: Tree, path: str) -> Traits:
    """The traits of the part of a tree that a path is in: a task store is joined to a workspace."""
    of_part = getattr(backend, "traits_at", None)
    found: Traits = backend.traits if of_part is None else of_part(path)
    return found


def only_read(path: str) -> CallError:
    return CallError("read_only_store", "Nothing in this store can be changed", where=path)


def check_content(backend: Tree, spot: Spot, before: bytes | None) -> None:
    """Refuse (`path_changed`) a file that does not hold `before` any more; None stands for anything."""
    if before is not None and backend.read(spot) != before:
        raise CallError("path_changed", f"'{spot.path}' changed after it was read", where=spot.path)


def is_link(backend: Tree, names: tuple[str, ...]) -> bool:
    """Whether a link is at a place, wherever it leads; for backends that can have any."""
    spot = backend.resolve(names, follow=False)
    try:
        found = backend.stat(spot)
    finally:
        backend.release(spot)
    return found is not None and found.kind == LINK
