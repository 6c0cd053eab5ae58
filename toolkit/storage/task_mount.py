"""Task mount: the workspace's tree with the task store as `@tasks`, and its trash as `@tasks/.trash`.

Each side keeps its own confinement. No name of one side reaches the other, and no link leads across.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

from ringfence.policy.patterns.syntax import Fold
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.locations import StoragePlace
from ringfence.toolkit.plan.changes import Delete, Entry, Move, Stat, Write
from ringfence.toolkit.plan.content import StreamedContent
from ringfence.toolkit.plan.entries import LooksFor
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.storage.backend import (
    FailedEntry,
    Folder,
    Spot,
    Traits,
    WritableTree,
    check_content,
    is_link,
    path_changed,
    spot_at,
)
from ringfence.toolkit.storage.first_look import Look, look
from ringfence.toolkit.storage.read_ahead import FileRead, together_from
from ringfence.toolkit.storage.task_move import move_between
from ringfence.toolkit.storage.task_spots import (
    TaskFolder,
    TaskSpot,
    UncreatedSpot,
    in_store,
    in_workspace_tree,
)
from ringfence.toolkit.task_ids import IN_TRASH, TASKS, TRASH


class TaskMount:
    """A backend of two trees: `main`, and `store` below `@tasks`.

    `trash` opens the trash beside the store (None: it does not exist), and `make_trash` creates it when it is
    first needed. With `reopen` the store at `root` is opened when it is first needed, and again after it was
    replaced.
    """

    def __init__(  # noqa: PLR0913  two trees and how to open the trash
        self,
        main: WritableTree,
        store: WritableTree | None,
        trash: Callable[[], WritableTree | None],
        make_trash: Callable[[], None],
        *,
        reopen: Callable[[], WritableTree] | None = None,
        root: str = "",
    ) -> None:
        self._main = main
        self._store = store
        self._reopen = reopen
        self._find_trash, self._create_trash = trash, make_trash
        self.store_root = root if store is None else store.root
        self._trash: WritableTree | None = None

    @property
    def main(self) -> WritableTree:
        """The workspace's own tree, without the task store."""
        return self._main

    @property
    def traits(self) -> Traits:
        return self._main.traits

    def traits_at(self, path: str) -> Traits:
        """Return the guarantees of the side that a path is on."""
        side = self._store if paths.parts(path)[:1] == (TASKS,) else None
        return (side or self._main).traits

    @property
    def fold(self) -> Fold:
        return self._main.fold

    @property
    def root(self) -> str:
        return self._main.root

    @property
    def place(self) -> StoragePlace:
        return self._main.place

    def close(self) -> None:
        for side in (self._main, self._store, self._trash):
            if side is not None:
                side.close()

    def renew(self) -> None:
        """Open the store again if it was replaced. CallError if it does not exist.

        Only between calls, because spots of a replaced store or trash are invalid.
        """
        if self._store is not None and not self._store.is_current():
            self._store.close()
            self._store = None
        if self._trash is not None and not self._trash.is_current():
            self._trash.close()
            self._trash = None
        self._opened_store()

    # ------------------------------------------------------------------ reading

    def is_current(self) -> bool:
        return self._main.is_current()

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> Spot:
        if names[:1] == (OWN_DIRECTORY,) and len(names) > 1:
            return self._resolve_quarantined(names)
        if names[:1] != (TASKS,):
            return self._main.resolve(names, follow=follow)
        if ".." in names:
            raise CallError("path_invalid", "A path in the task store never goes up ('..')")
        prefix, side, rest = TASKS, self._opened_store(), names[1:]
        if rest[:1] == (TRASH,):
            trash, rest, prefix = self._opened_trash(), rest[1:], IN_TRASH
            if trash is None:
                return TaskSpot(None, UncreatedSpot(paths.join(rest)), prefix)
            side = trash
        inner = side.resolve(rest, follow=False)
        if inner.path != paths.join(rest):
            side.release(inner)
            raise CallError("path_changed", "A link in the task store is not followed")
        return TaskSpot(side, inner, prefix)

    def is_link(self, names: tuple[str, ...]) -> bool:
        if names[:1] != (TASKS,):
            return self._main.is_link(names)
        return is_link(self, names)

    def release(self, spot: Spot) -> None:
        side, inner = self._side_of(spot)
        if side is not None:
            side.release(inner)

    def stat(self, spot: Spot) -> Stat | None:
        side, inner = self._side_of(spot)
        return None if side is None else side.stat(inner)

    def look(self, spot: Spot, wanted: LooksFor, beside: Sequence[Spot]) -> Look:
        if isinstance(spot, TaskSpot):
            return Look(self.stat(spot))
        return look(self._main, spot, wanted, [one for one in beside if not isinstance(one, TaskSpot)])

    def read(self, spot: Spot, limit: int | None = None, judged: Stat | None = None) -> bytes:
        side, inner = self._existing_side(spot)
        return side.read(inner, limit, judged)

    def read_together(self, entries: Sequence[Entry], limit: int) -> Sequence[FileRead | None] | None:
        inside = any(entry.path.partition("/")[0] in (TASKS, OWN_DIRECTORY) for entry in entries)
        return None if inside else together_from(self._main, limit)(entries)

    def chunks(self, spot: Spot, judged: Stat | None = None) -> Iterator[bytes]:
        side, inner = self._existing_side(spot)
        yield from side.chunks(inner, judged)

    def metadata(self, spot: Spot, stat: Stat, *, copied: bool = False) -> Metadata | None:
        side, inner = self._side_of(spot)
        return None if side is None else side.metadata(inner, stat, copied=copied)

    @contextmanager
    def folder(self, spot: Spot) -> Iterator[Folder]:
        side, inner = self._existing_side(spot)
        with side.folder(inner) as found:
            yield TaskFolder(found, spot) if isinstance(spot, TaskSpot) else found

    def rights(self, spot: Spot, stat: Stat) -> tuple[bool, bool]:
        side, inner = self._side_of(spot)
        return (False, False) if side is None else side.rights(inner, stat)

    def changeable(self, spot: Spot, *, leaves: bool) -> bool:
        side, inner = self._side_of(spot)
        if side is None:  # the trash is created when an entry is first moved into it
            return os.access(Path(self.store_root).parent, os.W_OK | os.X_OK)
        return side.changeable(inner, leaves=leaves)

    def missing(self, spot: Spot) -> tuple[str, ...]:
        side, inner = self._side_of(spot)
        if side is None:
            return (IN_TRASH,)
        found = side.missing(inner)
        return tuple(f"{spot.prefix}/{path}" for path in found) if isinstance(spot, TaskSpot) else found

    # ----------------------------------------------------------------- changing

    def check(self, spot: Spot) -> None:
        side, inner = self._side_of(spot)
        if side is not None:
            side.check(inner)

    def create(
        self,
        spot: Spot,
        data: bytes | StreamedContent,
        mode: int | None,
        temporary: str,
        metadata: Metadata | None = None,
    ) -> NotKept:
        self._prepare_trash(spot)
        side, inner = self._existing_side(spot)
        return side.create(inner, data, mode, temporary, metadata)

    def replace(  # noqa: PLR0913  the protocol's parameters
        self,
        spot: Spot,
        data: bytes | StreamedContent,
        stat: Stat,
        mode: int | None,
        temporary: str,
        before: bytes | None = None,
        metadata: Metadata | None = None,
    ) -> NotKept:
        side, inner = self._existing_side(spot)
        # Checked here in the task store, because the message would name the path on that side.
        if isinstance(spot, TaskSpot) and not side.traits.quarantines:
            check_content(self, spot, before)
            before = None
        return side.replace(inner, data, stat, mode, temporary, before, metadata)

    def remove(self, spot: Spot, change: Delete, temporary: str) -> Iterator[str | FailedEntry]:
        side, inner = self._existing_side(spot)
        if not isinstance(spot, TaskSpot):
            yield from side.remove(inner, change, temporary)
            return
        head = f"{spot.prefix}/" if spot.prefix else ""
        for step in side.remove(inner, in_store(change, head), temporary):
            yield in_workspace_tree(step, head)

    def use_facts(self, facts: object) -> None:
        """Let the workspace's backend store facts about its server there."""
        use: Callable[[object], None] = getattr(self._main, "use_facts", lambda _: None)
        use(facts)

    def forget_content(self) -> None:
        """Drop content of the workspace that an earlier call read."""
        forget: Callable[[], None] = getattr(self._main, "forget_content", lambda: None)
        forget()

    def begin_call(self, *, changes: bool) -> None:
        """Tell the workspace's backend that a call begins, and whether it may change something."""
        begin: Callable[..., None] = getattr(self._main, "begin_call", lambda **_: None)
        begin(changes=changes)

    def take_resolved(self) -> tuple[str, ...]:
        """Return the resolved paths of workspace, store and trash, as paths in the joined tree."""
        found: list[str] = []
        for side, prefix in ((self._main, ""), (self._store, TASKS), (self._trash, IN_TRASH)):
            taken: tuple[str, ...] = getattr(side, "take_resolved", tuple)()
            found += [f"{prefix}/{path}".lstrip("/") for path in taken]
        return tuple(found)

    def quarantine(self, spot: Spot, change: Delete, name: str) -> Iterator[str | FailedEntry]:
        yield from self._main.quarantine(spot, change, name)

    def discard(self, name: str) -> None:
        self._main.discard(name)

    def quarantine_beside(self, state: str, *, make: bool = True) -> None:
        self._main.quarantine_beside(state, make=make)

    @property
    def quarantine_name(self) -> str | None:
        return self._main.quarantine_name

    def move(self, source: Spot, destination: Spot, change: Move) -> NotKept:
        if not isinstance(source, TaskSpot) or not isinstance(destination, TaskSpot):
            if isinstance(source, TaskSpot) or isinstance(destination, TaskSpot):
                raise CallError("invalid_move", "Nothing moves between the workspace and the task store")
            return self._main.move(source, destination, change)
        self._prepare_trash(destination)
        origin, target = self._existing_side(source), self._existing_side(destination)
        if _is_local(origin[0]):
            # Both are directories of this machine, and a rename needs only their descriptors.
            return origin[0].move(origin[1], target[1], change)
        return move_between(origin[0], target[0], source, destination, change)

    def make_directory(self, spot: Spot) -> None:
        side, inner = self._existing_side(spot)
        side.make_directory(inner)

    def remove_directory(self, spot: Spot) -> None:
        side, inner = self._existing_side(spot)
        side.remove_directory(inner)

    def make_link(self, spot: Spot, target: str) -> None:
        side, inner = self._existing_side(spot)
        side.make_link(inner, target)

    def set_metadata(self, spot: Spot, mode: int | None, metadata: Metadata | None) -> NotKept:
        side, inner = self._existing_side(spot)
        return side.set_metadata(inner, mode, metadata)

    def set_mode(self, spot: Spot, stat: Stat, mode: int) -> None:
        side, inner = self._existing_side(spot)
        side.set_mode(inner, stat, mode)

    def sweep(self, spot: Spot, temporary: str) -> None:
        side, inner = self._side_of(spot)
        if side is not None:
            side.sweep(inner, temporary)

    def early(self, spot: Spot, change: Write, temporary: str) -> AbstractContextManager[None]:
        side, inner = self._side_of(spot)
        return nullcontext() if side is None else side.early(inner, change, temporary)

    def sync_once(self) -> AbstractContextManager[None]:
        return self._main.sync_once()

    # ------------------------------------------------------------------- inside

    def _resolve_quarantined(self, names: tuple[str, ...]) -> Spot:
        """Return the spot of a quarantined entry, on the side that has it."""
        with suppress(CallError):  # entries in the workspace are found even without a store
            self._opened_store()
        for side in (self._store, self._opened_trash()):
            if side is None or not _is_local(side):
                continue
            inner = side.resolve(names, follow=False)
            if side.stat(inner) is not None:
                return TaskSpot(side, inner, "")
            side.release(inner)
        return self._main.resolve(names, follow=False)

    def _side_of(self, spot: Spot) -> tuple[WritableTree | None, Spot]:
        if isinstance(spot, TaskSpot):
            return spot.side, spot.inner
        return self._main, spot

    def _existing_side(self, spot: Spot) -> tuple[WritableTree, Spot]:
        side, inner = self._side_of(spot)
        if side is None:
            raise CallError("not_found", f"'{spot.path}' does not exist", where=spot.path)
        return side, inner

    def _opened_store(self) -> WritableTree:
        if self._store is None:
            assert self._reopen is not None, "a store, or a function to open it, is given"
            self._store = self._reopen()
        return self._store

    def _opened_trash(self) -> WritableTree | None:
        if self._trash is None:
            self._trash = self._find_trash()
        return self._trash

    def make_trash(self) -> None:
        """Create the trash of the store, accessible only to its owner, unless it exists."""
        self._create_trash()

    def _prepare_trash(self, spot: Spot) -> None:
        """Create the trash on first use, and resolve a spot that was made before the trash."""
        if not isinstance(spot, TaskSpot) or spot.prefix != IN_TRASH:
            return
        if spot.side is None or not _is_local(spot.side):
            self._create_trash()
        if spot.side is None:
            spot.side = self._opened_trash()
            if spot.side is None:
                raise path_changed(IN_TRASH)
            spot.inner = spot_at(spot.side, spot.inner.path)


def _is_local(side: WritableTree) -> bool:
    return side.traits.race_free
