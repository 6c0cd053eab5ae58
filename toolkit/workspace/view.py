"""View: a tool's read-only access to the workspace, limited to what the agent may read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from ringfence.policy import Effect, Need
from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Change, Entry, MakeDirectory, Place, Stat
from ringfence.toolkit.plan.command_run import CommandRun
from ringfence.toolkit.plan.content import StreamedContent
from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.protected_paths import TASKS
from ringfence.toolkit.storage.backend import Folder, Spot, Tree, at
from ringfence.toolkit.storage.guarantees import MAX_FILE, is_restorable, is_streamed
from ringfence.toolkit.storage.read_ahead import ReadAhead, ahead_of_walk
from ringfence.toolkit.storage.tree_walk import Choose, OnError, Refuse, raise_error, walk_in_runs
from ringfence.toolkit.text import escape
from ringfence.toolkit.workspace import readable_paths as readable
from ringfence.toolkit.workspace.ignored_names import IgnoredNames
from ringfence.toolkit.workspace.readable_paths import Wanted
from ringfence.toolkit.workspace.screened import Screen, Screened
from ringfence.toolkit.workspace.workspace import _LARGE, Workspace

# Reads a file in an open directory by its name: with a limit, and only the known version.
ReadIn = Callable[[str, int | None, Stat | None], bytes]


def _no_commands(_: dict[str, Any]) -> CommandRun:
    raise CallError("command_failed", "This tool runs no commands")


@dataclass(slots=True)
class View:
    """A tool's read-only access to the workspace during one call.

    `effect` judges (action, path, directory), `within` the names in a directory. Reads that need approval are
    collected in `asked`.
    """

    workspace: Workspace
    effect: Callable[[str, str, bool], Effect]
    # From a directory's path to a function that judges reading (name directly in it, is it a directory).
    within: Callable[[str], Callable[[str, bool], Effect]]
    places: dict[str, tuple[Place, Spot]] = field(default_factory=dict)
    # Why paths of a list have no place, by the key that the place would have.
    failed: Mapping[str, CallError] = field(default_factory=dict)
    asked: list[Need] = field(default_factory=list)
    # A task tool's ids, and those that were repeated.
    task_ids: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    # Names in a store that are invalid in paths, so not listed: the directory, and the name.
    left_out: list[tuple[str, str]] = field(default_factory=list)
    # Directories that a walk listed and did not enter, with the reason: a value of NOT_ENTERED.
    not_entered: list[tuple[str, str]] = field(default_factory=list)
    # How many names a walk left out because `.gitignore` files exclude them, and such files that it did not
    # use: only what the agent may read.
    ignored: int = 0
    unused_gitignores: list[str] = field(default_factory=list)
    # Raises CallError `cancelled` if the caller has given up.
    check: Callable[[], None] = lambda: None
    # Whether reading all files with these names directly in a directory is allowed; False may be wrong.
    allows_files: Callable[[str, Collection[str]], bool] = lambda *_: False
    # Whether reading anything below a directory is allowed or asks.
    opens_below: Callable[[str], bool] = lambda _: False
    # Runs the command of a call's arguments.
    run: Callable[[dict[str, Any]], CommandRun] = _no_commands
    # Hides what the policy's detectors find in content; None if the policy has no detectors.
    screen: Screen | None = None
    # Whether the rules for reading, without a key of the tool, allow reading a path without asking.
    reads: Callable[[str], bool] = lambda _: True
    # Whether limits count what the agent reads: then an answer about a change or an error gives no content.
    limits_reading: Callable[[], bool] = lambda: False
    # Content of places that came with the first look at them, by canonical path.
    contents: Mapping[str, bytes] = field(default_factory=dict)
    # The directory whose entries a walk is yielding: its path, and the open directory.
    _walking: tuple[str, Folder] | None = None
    _ahead: ReadAhead | None = None

    @classmethod
    def unjudged(cls, workspace: Workspace) -> View:
        """Return a view without a policy, for a person."""
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
        """Whether nothing in the workspace can be changed, as far as the store reports."""
        return self._backend.traits.read_only

    def place(self, parameter: str) -> Place:
        """Return the place of the argument `parameter`, resolved and judged."""
        return self.places[parameter][0]

    def list(self, place: Place, *, kinds_only: bool = False) -> list[Entry]:
        """Return a directory's entries that the agent may read, or below which it may read something, by
        name. With `kinds_only`, the kind may be all that an entry's stat says.

        Raises CallError `not_found` or `not_a_directory`.
        """
        self._directory(place)
        with self._backend.folder(self._spot(place)) as folder:
            return list(readable.listed(self, place.real, folder, kinds_only=kinds_only))

    def walk(
        self,
        place: Place,
        *,
        include_ignored: bool = True,
        kinds_only: bool = False,
        wanted: Wanted | None = None,
    ) -> Iterator[Entry]:
        """Return all readable descendants and the directories on the way, parents first, by name. Links are
        listed and not followed.

        A directory that cannot be read, or is too deep for a call to name, is added to `not_entered`. Without
        `include_ignored`, what `.gitignore` files exclude is left out, and `.git`. With `kinds_only`, the
        kind may be all that an entry's stat says. Files that are not `wanted` may be left out, too.
        """
        self._directory(place)
        names = None
        if not include_ignored:
            names = IgnoredNames(self.workspace, self._note_unused)
            names.begin(place.real)
        look = readable.Look(names, kinds_only, wanted)
        return readable.below(self, self._spot(place), place.real, look)

    def _note_unused(self, gitignore: str) -> None:
        if self.may_read(gitignore):
            self.unused_gitignores.append(gitignore)

    def first(self, place: Place) -> Need | None:
        """Return the need of the first allowed entry below a directory, else of the first that asks."""
        found = readable.first_below(self, self._spot(place), place.real)
        return None if found is None else found[0]

    def tree(self, place: Place) -> tuple[Entry, ...]:
        """Return every descendant, readable or not, parents before children: what a change would touch.

        Raises CallError `directory_not_empty` if it contains a name that is invalid in paths.
        """
        self._directory(place)
        found = tuple(self.visit(self._spot(place), place.real, self._all))
        self._refuse_unnamed(place)
        return found

    def read(self, what: Place | Entry, limit: int | None = MAX_FILE, known: Stat | None = None) -> bytes:
        """Return the bytes of a regular file that the agent may read or the plan changes; with `known`, only
        of that file.

        An entry that a walk has just yielded is read through its open directory.

        Raises CallError `not_found`, `is_directory`, `not_regular_file`, `too_large` (over `limit`
        bytes) or `permission_denied`.
        """
        if isinstance(what, Place):
            held = self.contents.get(what.real)
            if held is not None and (limit is None or len(held) <= limit) and known in (None, what.stat):
                return held
            return self._backend.read(self._spot(what), limit, known)
        if self._ahead is not None and self._ahead.turn is what:
            return self._ahead.content(what)
        if self._walking is not None:
            above, _, name = what.path.rpartition("/")
            if (above or paths.ROOT) == self._walking[0]:
                folder = self._walking[1]
                read: ReadIn | None = getattr(folder, "read", None)
                if read is not None:
                    return read(name, limit, known)
                return self._backend.read(folder.spot(name), limit, known)
        with at(self._backend, what.path) as spot:
            return self._backend.read(spot, limit, known)

    def in_open_directories(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the entries of a tree. On a disk each is read in its open directory, which is opened once for
        neighbours.
        """
        if not self._backend.traits.race_free:
            yield from entries  # a store has no directories to open
            return
        with ExitStack() as opened:
            for entry in entries:
                above = paths.parent(entry.path)
                if self._walking is None or self._walking[0] != above:
                    self._walking = None
                    opened.close()
                    with at(self._backend, above) as spot:
                        self._walking = above, opened.enter_context(self._backend.folder(spot))
                    opened.callback(self._leave)
                yield entry

    def _leave(self) -> None:
        self._walking = None

    def reading_ahead(
        self, entries: Iterator[Entry], limit: int, *, exactly: bool = False
    ) -> AbstractContextManager[Iterator[Entry]]:
        """Return a context with the entries of a walk whose files up to `limit` bytes are read in their
        order: several at a time, where the store answers several requests at once. `exactly` is for reading
        with `known`.
        """
        self._ahead = ahead_of_walk(self._backend, entries, limit, self.asked, exactly=exactly)
        return self._ahead or nullcontext(entries)

    def shown(self, what: Place | Entry, data: bytes, *, alone: bool = True) -> bytes:
        """Return a file's whole content as an answer may have it, before it is cut.

        Raises CallError `denied_by_policy` if the policy refuses such content; if it asks, the call asks. A
        file that is not `alone` in its answer is left out of it then: the call itself is not denied.
        """
        if self.screen is None:
            return data
        how = "refuse" if isinstance(what, Place) and alone else "leave out"
        shown = self.screen(self._names_of(what), data, how).data
        assert shown is not None, "what is refused is raised"
        return shown

    def excerpt(self, what: Place | Entry, data: bytes) -> Screened:
        """Return a file's whole content for an answer that is about something else, such as a diff: what the
        policy would refuse or ask about is hidden.
        """
        if self.screen is None:
            return Screened(data)
        return self.screen(self._names_of(what), data, "hide")

    def words(self, path: str, text: str | None) -> str | None:
        """Return a text from a file at `path` as an answer may have it; None if it is hidden."""
        if self.screen is None or not text:
            return text
        shown = self.screen((path,), text.encode("utf-8", "surrogateescape"), "hide").data
        return None if shown is None else shown.decode("utf-8", "surrogateescape")

    def _names_of(self, what: Place | Entry) -> tuple[str, ...]:
        """Return all names of a file in this call, its real path first."""
        if isinstance(what, Place):
            return tuple(dict.fromkeys((what.real, what.named, *self.names(what.real))))
        return tuple(dict.fromkeys(self.names(what.path)))

    def copied(self, place: Place) -> Metadata | None:
        """Return the metadata that a copy of a file gets; call it after reading the file."""
        assert place.stat is not None, "only what is there is copied"
        return self._backend.metadata(self._spot(place), place.stat, copied=True)

    def replaced(self, place: Place) -> bytes | StreamedContent | None:
        """Return the content of a file to replace, as a stream if it is large and the backend supports that.

        None if there is no file, or its content is too large to store.
        """
        from ringfence.toolkit.plan.content import hashed

        stat, backend = place.stat, self._backend
        if stat is None or not is_restorable(place.real, stat, backend.traits):
            return None
        if (stat.size or 0) <= _LARGE or not is_streamed(place.real, backend.traits):
            return self.read(place)
        spot = self._spot(place)
        return StreamedContent(*hashed(backend.chunks(spot, stat)), lambda: backend.chunks(spot, stat))

    def may_read(self, path: str, directory: bool = False) -> bool:
        """Whether the policy allows reading `path` without asking."""
        return self.read_effect(path, directory) == Effect.ALLOW

    def readable(self, files: Iterable[str]) -> set[str]:
        """Return those of these files that the policy allows reading without asking."""
        return readable.readable_files(self, files)

    def may_show(self, place: Place) -> bool:
        """Whether an answer that is about something else may have content of a file: the agent could read it
        without asking, and nothing counts what it reads.
        """
        return not self.limits_reading() and all(map(self.reads, self.names(place.real)))

    def may_know(self, target: str) -> bool:
        """Whether the agent may know that a link leads to a path of the workspace.

        It may if it may read that path both as a file and as a directory, and no other link is on the way.
        """
        if not (self.may_read(target) and self.may_read(target, directory=True)):
            return False
        try:
            with self._at(target):
                return True
        except CallError:
            return False

    def parents(self, place: Place) -> tuple[MakeDirectory, ...]:
        """Return the missing directories above `place`, outermost first."""
        return tuple(
            MakeDirectory(path, incidental=True) for path in self._backend.missing(self._spot(place))
        )

    def rights(self, place: Place) -> tuple[bool, bool]:
        """Return whether the entry can be read and can be written, by its mode."""
        return (True, True) if place.stat is None else self._backend.rights(self._spot(place), place.stat)

    def changeable(self, change: Change) -> bool:
        """Whether the system might permit a change, by the rights of its directories."""
        from ringfence.toolkit.workspace.permissions import refused

        return refused(self._backend, (change,), {}) is None

    # ------------------------------------------------- the task store, by path

    def shows(self, task: str) -> bool:
        """Whether the agent may see a task's metadata. A read that asks makes the call ask."""
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
        """Return the entries of a directory of the task store; none if it does not exist."""
        with self._at(path) as spot:
            found = self._backend.stat(spot)
            if found is None or found.kind != DIRECTORY:
                return ()
            with self._backend.folder(spot) as folder:
                return tuple(Entry(paths.child(path, name), stat) for name, stat in folder.scan())

    def tree_at(self, path: str) -> tuple[Entry, ...]:
        """Return every descendant of a directory of the task store, parents first."""
        with self._at(path) as spot:
            return tuple(self.visit(spot, path, self._all))

    @contextmanager
    def opened(self, path: str) -> Iterator[tuple[tuple[Entry, ...], Callable[[str], Iterator[bytes]]]]:
        """Open a directory of the task store: all its descendants, and a function that reads a file directly
        in it.
        """
        backend = self._backend
        with self._at(path) as spot, backend.folder(spot) as folder:
            found = tuple(self.visit(spot, path, self._all))
            yield found, lambda name: backend.chunks(folder.spot(name))

    def chunks(self, path: str) -> Iterator[bytes]:
        """Yield the content of a file of the task store, piece by piece."""
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
        self,
        spot: Spot,
        path: str,
        choose: Choose,
        refuse: Refuse = lambda _: None,
        on_error: OnError = raise_error,
    ) -> Generator[Entry, None, None]:
        """Yield each chosen entry below a directory; it can be read in its open directory until the next one
        is yielded.
        """
        try:
            for run, folder in walk_in_runs(
                self._backend, spot, path, choose, refuse=refuse, on_error=on_error
            ):
                self.check()
                self._walking = paths.parent(run[0].path), folder
                yield from run
                self._walking = None  # the directory may be closed next, and its descriptor reused
        finally:
            self._walking = None

    def _refuse_unnamed(self, place: Place) -> None:
        """Refuse to delete or move a directory with names that are invalid in paths."""
        if not self.left_out:
            return
        path, name = self.left_out[0]
        named = paths.child(path, "/".join(part for part in name.split("/") if part not in ("", ".", "..")))
        shown = f": '{escape(paths.child(path, '') + name)}'" if self.may_read(named.rstrip("/")) else ""
        raise CallError(
            "directory_not_empty",
            f"'{escape(place.named)}' has content that no path can name{shown}",
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
        """Whether reading something below a directory is allowed or asks, under each of its names in this
        call.
        """
        return all(self.opens_below(name) for name in self.names(path))

    def names(self, path: str) -> tuple[str, ...]:
        """Return a canonical path's names in this call: its own, and the one through an argument's link."""
        aliases = (readable.aliased(place, path) for place, _ in self.places.values())
        return (path, *(alias for alias in aliases if alias not in (None, path)))
