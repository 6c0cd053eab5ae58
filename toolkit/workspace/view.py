"""View: what a tool sees of the workspace. It can look, and it cannot change."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from ringfence.policy import Effect, Need
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Change, Entry, MakeDirectory, Place, Stat
from ringfence.toolkit.plan.content import StreamedContent
from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.protected_paths import TASKS
from ringfence.toolkit.storage.backend import Folder, Spot, Tree, at
from ringfence.toolkit.storage.guarantees import MAX_FILE, in_pieces, is_kept
from ringfence.toolkit.storage.tree_walk import Choose, Missed, Refuse, fail, walk
from ringfence.toolkit.text import escape
from ringfence.toolkit.workspace import readable_paths as readable
from ringfence.toolkit.workspace.workspace import _LARGE, Workspace


@dataclass(slots=True)
class View:
    """What a tool sees of the workspace; it can look and it cannot change.

    `effect` judges (action, path, directory), `within` all that is in a directory. What needs a person's yes
    to be read is kept in `asked`.
    """

    workspace: Workspace
    effect: Callable[[str, str, bool], Effect]
    # Gives what judges a read of a name directly in a directory, and whether the name is one.
    within: Callable[[str], Callable[[str, bool], Effect]]
    places: dict[str, tuple[Place, Spot]] = field(default_factory=dict)
    asked: list[Need] = field(default_factory=list)
    # The ids a task tool was given, and those that were named more than once.
    task_ids: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    # Names in a store that no path can have, which are not shown: the directory, and the name.
    left_out: list[tuple[str, str]] = field(default_factory=list)
    # Directories that a walk showed and did not enter, each with the reason: a value of readable.NOT_ENTERED.
    not_entered: list[tuple[str, str]] = field(default_factory=list)
    # Raises CallError `cancelled` once nobody waits for the answer.
    check: Callable[[], None] = lambda: None
    # Whether anything below a directory may be read, or asks.
    opens_below: Callable[[str], bool] = lambda _: False
    # The entry that a walk has just given, and the open directory that it was listed in.
    _walking: tuple[Entry, Folder] | None = None

    @classmethod
    def unjudged(cls, workspace: Workspace) -> View:
        """A view for a person, to whom everything is shown."""
        return cls(workspace, lambda *_: Effect.ALLOW, lambda _: lambda *_: Effect.ALLOW)

    @property
    def root_name(self) -> str:
        """The name of the root directory, without its path on the host."""
        return self.workspace.root_name

    @property
    def found_by(self) -> str:
        """How the root was found."""
        return self.workspace.found_by

    @property
    def read_only(self) -> bool:
        """Whether nothing in the workspace can be changed, as far as its store tells."""
        return self._backend.traits.read_only

    def place(self, parameter: str) -> Place:
        """The argument `parameter`, resolved and already judged."""
        return self.places[parameter][0]

    def list(self, place: Place) -> list[Entry]:
        """The entries of a directory that the agent may read, or that lead to something it may, by name.

        Raises CallError `not_found` or `not_a_directory`.
        """
        self._directory(place)
        with self._backend.folder(self._spot(place)) as folder:
            return list(readable.listed(self, place.real, folder))

    def walk(self, place: Place) -> Iterator[Entry]:
        """All readable descendants and the directories on the way to them, parents first, by name; links are
        shown and not followed.

        A directory that cannot be read, or is deeper than a call can name, is noted in `not_entered`.
        """
        self._directory(place)
        yield from readable.below(self, self._spot(place), place.real)

    def first(self, place: Place) -> Need | None:
        """The first thing below a directory that may be read, else the first that asks."""
        found = readable.first_below(self, self._spot(place), place.real)
        return None if found is None else found[0]

    def tree(self, place: Place) -> tuple[Entry, ...]:
        """Every descendant, whoever may read it, parents before children: what a change would touch.

        Raises CallError `directory_not_empty` where something is in it that no path can name.
        """
        self._directory(place)
        found = tuple(self.visit(self._spot(place), place.real, self._all))
        self._refuse_unnamed(place)
        return found

    def read(self, what: Place | Entry, limit: int | None = MAX_FILE, known: Stat | None = None) -> bytes:
        """The bytes of a regular file that the agent may read or the plan changes; only the `known` one.

        An entry that a walk has just given is read in the open directory that it was listed in.

        Raises CallError `not_found`, `is_directory`, `not_regular_file`, `too_large` (over `limit`
        bytes) or `permission_denied`.
        """
        if isinstance(what, Place):
            return self._backend.read(self._spot(what), limit, known)
        if self._walking is not None and self._walking[0] is what:
            folder = self._walking[1]
            return self._backend.read(folder.spot(what.name), limit, known)
        with at(self._backend, what.path) as spot:
            return self._backend.read(spot, limit, known)

    def copied(self, place: Place) -> Metadata | None:
        """The metadata that a copy of a file takes along; asked once the file was read."""
        assert place.stat is not None, "only what is there is copied"
        return self._backend.metadata(self._spot(place), place.stat, copied=True)

    def replaced(self, place: Place) -> bytes | StreamedContent | None:
        """What a file holds that is about to be replaced, piece by piece where it is large and that can be.

        None where there is none, or none that can be kept.
        """
        from ringfence.toolkit.plan.content import hashed

        stat, backend = place.stat, self._backend
        if stat is None or not is_kept(place.real, stat, backend.traits):
            return None
        if (stat.size or 0) <= _LARGE or not in_pieces(place.real, backend.traits):
            return self.read(place)
        spot = self._spot(place)
        return StreamedContent(*hashed(backend.chunks(spot, stat)), lambda: backend.chunks(spot, stat))

    def may_read(self, path: str, directory: bool = False) -> bool:
        """Whether the policy allows reading `path` without asking."""
        return self.read_effect(path, directory) == Effect.ALLOW

    def may_know(self, target: str) -> bool:
        """Whether the agent may be told that a link leads to a path of the workspace.

        It may where it may read that path whatever is there, and no other link is on the way to it.
        """
        if not (self.may_read(target) and self.may_read(target, directory=True)):
            return False
        try:
            with self._at(target):
                return True
        except CallError:
            return False

    def parents(self, place: Place) -> tuple[MakeDirectory, ...]:
        """The directories that are missing above `place`, outermost first."""
        return tuple(
            MakeDirectory(path, incidental=True) for path in self._backend.missing(self._spot(place))
        )

    def rights(self, place: Place) -> tuple[bool, bool]:
        """Whether what is there may be read and may be written, going by its mode."""
        return (True, True) if place.stat is None else self._backend.rights(self._spot(place), place.stat)

    def changeable(self, change: Change) -> bool:
        """Whether the system might permit a change, by the rights of the directories it is made in."""
        from ringfence.toolkit.workspace.permissions import refused

        return refused(self._backend, (change,), {}) is None

    # ------------------------------------------------- the task store, by path

    def shows(self, task: str) -> bool:
        """Whether what a task folder says may be told to the agent; where that asks, the call asks."""
        path = f"{TASKS}/{task.lower()}"
        effect = self.effect("read", path, True)
        if effect == Effect.ASK:
            self.asked.append(Need("read", path, True))
        return effect != Effect.DENY

    def stat_at(self, path: str) -> Stat | None:
        """Return what is at a path of the task store; None if nothing is."""
        with self._at(path) as spot:
            return self._backend.stat(spot)

    def entries_at(self, path: str) -> tuple[Entry, ...]:
        """What is directly in a directory of the store; nothing where there is none."""
        with self._at(path) as spot:
            found = self._backend.stat(spot)
            if found is None or found.kind != DIRECTORY:
                return ()
            with self._backend.folder(spot) as folder:
                return tuple(Entry(paths.child(path, name), stat) for name, stat in folder.scan())

    def tree_at(self, path: str) -> tuple[Entry, ...]:
        """Every descendant of a directory of the store, parents first."""
        with self._at(path) as spot:
            return tuple(self.visit(spot, path, self._all))

    @contextmanager
    def opened(self, path: str) -> Iterator[tuple[tuple[Entry, ...], Callable[[str], Iterator[bytes]]]]:
        """All that is in a directory of the store, and how to read the files directly in it."""
        backend = self._backend
        with self._at(path) as spot, backend.folder(spot) as folder:
            found = tuple(self.visit(spot, path, self._all))
            yield found, lambda name: backend.chunks(folder.spot(name))

    def chunks(self, path: str) -> Iterator[bytes]:
        """The content of a file of the store, piece by piece."""
        with self._at(path) as spot:
            yield from self._backend.chunks(spot)

    def _at(self, path: str) -> AbstractContextManager[Spot]:
        return at(self._backend, path)

    @property
    def _backend(self) -> Tree:
        return self.workspace.backend

    def _spot(self, place: Place) -> Spot:
        for held, spot in self.places.values():
            if held is place:
                return spot
        raise LookupError("a place of another call")

    def _directory(self, place: Place) -> None:
        if place.stat is None:
            raise CallError("not_found", f"Directory '{place.argument}' does not exist", where=place.named)
        if place.stat.kind != DIRECTORY:
            raise CallError("not_a_directory", f"'{place.argument}' is not a directory", where=place.named)

    def visit(
        self, spot: Spot, path: str, choose: Choose, refuse: Refuse = lambda _: None, missed: Missed = fail
    ) -> Generator[Entry, None, None]:
        """Each entry below a directory that `choose` gives, to be read while it is the last one given."""
        try:
            for found in walk(self._backend, spot, path, choose, refuse=refuse, missed=missed):
                self.check()
                self._walking = found
                yield found[0]
                self._walking = None  # the directory may be closed next, and its number another's soon
        finally:
            self._walking = None

    def _refuse_unnamed(self, place: Place) -> None:
        """What can neither be looked at nor kept is not removed or moved along with a directory."""
        if not self.left_out:
            return
        path, name = self.left_out[0]
        named = paths.child(path, "/".join(part for part in name.split("/") if part not in ("", ".", "..")))
        shown = f": '{escape(paths.child(path, '') + name)}'" if self.may_read(named.rstrip("/")) else ""
        raise CallError(
            "directory_not_empty",
            f"'{escape(place.named)}' holds what no path can name{shown}",
            where=place.named,
            hint="a person has to move or delete it with a client of the store",
        )

    def _all(self, path: str, folder: Folder) -> Iterator[Entry]:
        hides, above = self.workspace.hides, paths.child(path, "")
        found = folder.scan()
        self.left_out += [(path, name) for name in getattr(folder, "left_out", ())]
        return (Entry(above + name, stat) for name, stat in found if not hides(path, name))

    def read_effect(self, path: str, directory: bool) -> Effect:
        """Return the effect of reading a path: the strictest over all names that lead there."""
        return max(self.effect("read", name, directory) for name in self.names(path))

    def opens(self, path: str) -> bool:
        """Whether something below a directory may be read, or asks, by each name that it has in this call."""
        return all(self.opens_below(name) for name in self.names(path))

    def names(self, path: str) -> tuple[str, ...]:
        """What a canonical path is called in this call: its own name, and that through a link given."""
        return (path, *(
            alias for place, _ in self.places.values() if (alias := aliased(place, path)) not in (None, path)
        ))  # fmt: skip


def aliased(place: Place, path: str) -> str | None:
    """`path` as it is called when reached through `place`, None where it is not reached through it."""
    if place.real == place.named:
        return None
    if path == place.real:
        return place.named
    if paths.is_below(path, place.real):
        tail = path if place.real == paths.ROOT else path[len(place.real) + 1 :]
        return paths.child(place.named, tail)
    return None
