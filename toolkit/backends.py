"""What each kind of store can do, and the shape every backend has.

`BACKENDS` is the one table; a store that is not in it gets the conservative row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from policy.glob import Fold
from toolkit import paths
from toolkit.errors import CallError
from toolkit.plan import LINK, Delete, Move, Stat


@dataclass(frozen=True, slots=True)
class Traits:
    """What a store promises. A result never claims more than its row here."""

    links: bool = False
    directories: bool = False
    rename: bool = False
    exclusive_create: bool = False
    conditional: bool = False
    modes: bool = False
    durable: bool = False
    race_free: bool = False
    catches: bool = False


BACKENDS: dict[str, Traits] = {
    "local": Traits(
        links=True,
        directories=True,
        rename=True,
        exclusive_create=True,
        conditional=True,
        modes=True,
        durable=True,
        race_free=True,
        catches=True,
    ),
    "abfs": Traits(exclusive_create=True, durable=True),
    "memory": Traits(directories=True, exclusive_create=True),
    "s3": Traits(directories=True, exclusive_create=True, conditional=True, durable=True),
    "sftp": Traits(links=True, directories=True, rename=True, exclusive_create=True, modes=True),
}
CONSERVATIVE = Traits()


class Spot(Protocol):
    """A place in the tree, resolved once: `path` is canonical, the rest is the backend's own."""

    @property
    def path(self) -> str: ...


class Folder(Protocol):
    """An open directory."""

    def scan(self) -> list[tuple[str, Stat]]: ...

    def spot(self, name: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class Missed:
    """One entry of a tree that could not be removed, and why."""

    path: str
    why: str
    code: str = "io_error"


class Catching(Protocol):
    """What a backend whose `traits.catches` can do besides: keep what is deleted, as it was caught.

    It takes content to create or to replace with as a `Held` too, and to `replace` the bytes that the file
    must still hold as one more argument.
    """

    def chunks(self, spot: Any, known: Stat | None = None) -> Iterator[bytes]: ...
    def put_away(self, spot: Any, change: Delete, name: str) -> Iterator[str | Missed]:
        """Rename what is there to `name` among the hidden; it stays there if it is what was judged."""

    def let_go(self, name: str) -> None:
        """Remove for good what was put away under `name`, or what is left of it."""


class Backend(Protocol):
    """A confined tree of files. The first block reads; only `toolkit.apply` calls the second.

    Every method raises CallError, never OSError, and takes spots that this backend resolved.
    """

    @property
    def traits(self) -> Traits: ...

    @property
    def fold(self) -> Fold: ...

    @property
    def root(self) -> str:
        """What an absolute path in a call has to begin with to be inside."""

    @property
    def url(self) -> str:
        """What names this tree among all others; the state that is kept for it goes by it."""

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> Any: ...
    def is_link(self, names: tuple[str, ...]) -> bool: ...
    def stat(self, spot: Any) -> Stat | None: ...
    def read(self, spot: Any, limit: int | None = None, known: Stat | None = None) -> bytes:
        """The content. `known` is what was judged: a store may give what it read of exactly that before,
        because the change that follows is made only if it is still there."""

    def folder(self, spot: Any) -> AbstractContextManager[Any]: ...
    def rights(self, spot: Any, stat: Stat) -> tuple[bool, bool]:
        """Whether what is there, and was `stat` just now, may be read and may be written by its mode."""

    def changeable(self, spot: Any, *, leaves: bool) -> bool:
        """Whether a name can come or go here by the rights of its directory, as far as the backend knows;
        `leaves`: what is there goes to another directory."""

    def missing(self, spot: Any) -> tuple[str, ...]: ...
    def release(self, spot: Any) -> None: ...
    def close(self) -> None: ...

    def check(self, spot: Any) -> None: ...
    def create(self, spot: Any, data: bytes, mode: int | None, temporary: str) -> None: ...
    def replace(self, spot: Any, data: bytes, stat: Stat, mode: int | None, temporary: str) -> None: ...
    def remove(self, spot: Any, change: Delete, temporary: str) -> Iterator[str | Missed]: ...
    def move(self, source: Any, destination: Any, change: Move) -> None: ...
    def make_directory(self, spot: Any) -> None: ...
    def remove_directory(self, spot: Any) -> None: ...
    def make_link(self, spot: Any, target: str) -> None: ...
    def set_mode(self, spot: Any, mode: int) -> None: ...
    def sweep(self, spot: Any, temporary: str) -> None: ...


def spot_at(backend: Backend, path: str) -> Any:
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
def at(backend: Backend, path: str) -> Iterator[Any]:
    """The spot of `spot_at`, for as long as the block runs."""
    spot = spot_at(backend, path)
    try:
        yield spot
    finally:
        backend.release(spot)


def path_changed(path: str) -> CallError:
    return CallError("path_changed", f"'{path}' changed after it was judged", where=path)


def is_link(backend: Backend, names: tuple[str, ...]) -> bool:
    """Whether a link is at a place, wherever it leads; for backends that can have any."""
    spot = backend.resolve(names, follow=False)
    try:
        found = backend.stat(spot)
    finally:
        backend.release(spot)
    return found is not None and found.kind == LINK
