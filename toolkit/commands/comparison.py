"""Comparison of a command's effects with the workspace: what is new, replaced, deleted, and what is left out.

Only reads, each directory once and each content at most once. The effects are hostile, the workspace may
change meanwhile: what changed since the command started is a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

from ringfence.policy.patterns.matcher import Matcher, MatcherState
from ringfence.toolkit import paths
from ringfence.toolkit.commands.effects import GONE, ChangedFolder, Effect, Scratch, check_name
from ringfence.toolkit.plan.changes import (
    DIRECTORY,
    EXECUTABLE,
    LINK,
    OTHER,
    SET_ID,
    Entry,
    SetMode,
    Stat,
    Write,
)
from ringfence.toolkit.plan.content import StreamedContent, hashed, held
from ringfence.toolkit.storage.backend import Folder, at
from ringfence.toolkit.storage.tree_walk import walk
from ringfence.toolkit.workspace.workspace import Workspace

SMALL = 64 << 10  # up to this many bytes, content is compared in memory
_IN_MEMORY = 32 << 20  # bytes of new contents that stay in memory until they are written
_MODE = 0o777
_TICK = 20_000_000  # nanoseconds; a file's times follow a clock that is coarser than the system's
_NAMED = 20  # discarded names that a result lists


class ComparisonInput(NamedTuple):
    """What is compared with what: `discard` are patterns, `through` and `hidden` are canonical paths.

    `known` are the identities of files before the command, by path, as far as they were recorded.
    """

    workspace: Workspace
    started_ns: int
    discard: Sequence[str] = ()
    through: Collection[str] = ()
    hidden: Collection[str] = ()
    known: Mapping[str, str] = {}
    check: Callable[[], None] = lambda: None


@dataclass(slots=True)
class Created:
    """A new file. Its content is read once; `data` is that of a small one."""

    effect: Effect
    scratch: Scratch
    data: bytes | None = None
    _digest: str | None = None

    @property
    def mode(self) -> int:
        """The mode of the new file, without set-id bits."""
        return self.effect.mode & _MODE

    def digest(self) -> str:
        """Return the digest of the content, computed once."""
        if self._digest is None:
            content = self.scratch.pieces(self.effect) if self.data is None else iter((self.data,))
            self._digest = hashed(content)[0]
        return self._digest

    def content(self) -> bytes | StreamedContent:
        """Return the content for a plan."""
        if self.data is None:
            return self.scratch.stream(self.effect, self.digest())
        return self.data if self._digest is None else held(self.data, self._digest)


@dataclass(slots=True)
class Deletion:
    """A deleted entry of the workspace, with everything below it."""

    path: str
    stat: Stat
    entries: tuple[Entry, ...] = ()


@dataclass(slots=True)
class Differences:
    """The differences by path, and what is left out; `dropped` are pairs of a path and the reason."""

    created: dict[str, Created] = field(default_factory=dict)
    links: dict[str, Effect] = field(default_factory=dict)
    directories: dict[str, Effect] = field(default_factory=dict)
    deletions: dict[str, Deletion] = field(default_factory=dict)
    replaced: list[Write] = field(default_factory=list)
    modes: list[SetMode] = field(default_factory=list)
    discarded: int = 0
    discarded_names: list[str] = field(default_factory=list)
    dropped: list[tuple[str, str]] = field(default_factory=list)
    stripped: list[str] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)


def compare(scratch: Scratch, given: ComparisonInput) -> Differences:
    """Return the differences between a scratch and the workspace as it is now.

    Raises CallError for effects that no plan can have: beyond a bound, or with a name that is refused.
    """
    comparison = _Comparison(scratch, given)
    comparison.run()
    return comparison.found


class _Comparison:
    def __init__(self, scratch: Scratch, given: ComparisonInput) -> None:
        self.found = Differences()
        self._scratch = scratch
        self._around = given
        self._backend = given.workspace.backend
        self._lanes = Matcher(given.discard, given.workspace.fold) if given.discard else None
        self._through = set(given.through)
        self._hidden = set(given.hidden) if scratch.copied else set()
        self._room = _IN_MEMORY
        # Directories to look at: the path, whether the workspace has it, and whether it was made anew.
        self._todo: list[tuple[str, bool, bool]] = [(paths.ROOT, True, scratch.copied)]
        self._by_inode: dict[int, Created] = {}

    def run(self) -> None:
        while self._todo:
            self._around.check()
            self._directory(*self._todo.pop())

    def _directory(self, path: str, is_there: bool, anew: bool) -> None:
        state = self._lanes.inside(path) if self._lanes is not None else None
        with ExitStack() as stack:
            changed = stack.enter_context(self._scratch.folder(path))
            folder = None
            if is_there:
                spot = stack.enter_context(at(self._backend, path))
                folder = stack.enter_context(self._backend.folder(spot))
            anew = anew or changed.whole
            listed = dict(folder.scan()) if folder is not None and anew else None
            for effect in changed.effects:
                name = effect.name
                if listed is not None:
                    stat = listed.pop(name, None)
                else:
                    stat = self._stat(folder, name) if folder is not None else None
                if not self._is_left_out(effect.path, effect.kind, stat, state):
                    self._one(effect, stat, changed, folder, anew)
            for name, found in (listed or {}).items():
                missing, own = paths.child(path, name), self._around.workspace.hides(path, name)
                if not own and not self._is_left_out(missing, GONE, found, state):
                    self._note_deletion(missing, found)

    def _stat(self, folder: Folder, name: str) -> Stat | None:
        return self._backend.stat(folder.spot(name))

    # -------------------------------------------------------------------- lanes

    def _is_left_out(self, path: str, kind: str, stat: Stat | None, state: MatcherState | None) -> bool:
        """Whether an entry is in a lane of its own; counts it if it is discarded."""
        if path in self._through or (kind == GONE and path in self._hidden):
            return True
        if self._lanes is None or state is None:
            return False
        directory = (stat is not None and stat.kind == DIRECTORY) if kind == GONE else kind == DIRECTORY
        there = self._lanes.step(state, path.rpartition("/")[2])
        if not (there.directory if directory else there.file).last:
            return False
        count = self._changed_in(path, kind) if kind != GONE or stat is not None else 0
        if count and len(self.found.discarded_names) < _NAMED:
            self.found.discarded_names.append(path)
        self.found.discarded += count
        return True

    def _changed_in(self, path: str, kind: str) -> int:
        """Return how many discarded entries were changed; a copy has the others too."""
        since = self._around.started_ns - _TICK if self._scratch.copied else 0
        return self._scratch.changed_in(path, since) if kind == DIRECTORY else 1

    # ------------------------------------------------------------------ entries

    def _one(
        self, effect: Effect, stat: Stat | None, changed: ChangedFolder, folder: Folder | None, anew: bool
    ) -> None:
        kind, path = effect.kind, effect.path
        if kind == GONE:
            if stat is not None:
                self._note_deletion(path, stat)
            return
        if kind == OTHER:
            self.found.dropped.append((path, f"{effect.special} is not made"))
            if stat is not None:
                self._note_deletion(path, stat)
            return
        if stat is not None and stat.kind == kind:
            self._both(effect, stat, changed, folder, anew)
            return
        if stat is not None:
            self._note_deletion(path, stat)
        check_name(path)
        if kind == DIRECTORY:
            self.found.directories[path] = effect
            self._todo.append((path, False, False))
        elif kind == LINK:
            self.found.links[path] = effect
        else:
            self._created(effect, changed)

    def _both(
        self, effect: Effect, stat: Stat, changed: ChangedFolder, folder: Folder | None, anew: bool
    ) -> None:
        """Compare an entry with one of the same kind in the workspace."""
        path = effect.path
        if effect.kind == DIRECTORY:
            if (self._scratch.copied or not anew) and (effect.mode ^ (stat.mode or 0)) & _MODE:
                self.found.dropped.append((path, "the mode of a directory is not changed"))
            self._todo.append((path, True, anew and path not in self._hidden))
        elif effect.kind == LINK:
            if effect.target != stat.target:
                check_name(path)
                self._note_deletion(path, stat)
                self.found.links[path] = effect
        elif folder is not None and not self._is_untouched(effect, stat):
            self._file(effect, stat, changed, folder)

    def _is_untouched(self, effect: Effect, stat: Stat) -> bool:
        """Whether the file of a copy is as it was copied: nothing can set back its time of change."""
        if not self._scratch.copied or effect.changed >= self._around.started_ns - _TICK:
            return False
        return (effect.size, effect.mode) == (stat.size, stat.mode) and not self._is_late(stat)

    def _file(self, effect: Effect, stat: Stat, changed: ChangedFolder, folder: Folder) -> None:
        old, new = effect.path, self._handle(effect, changed)
        before: bytes | StreamedContent
        if (stat.size or 0) <= SMALL:
            before = self._backend.read(folder.spot(effect.name), None, stat)
            same = before == new.data
        else:
            before = self._lower(old, stat)
            same = before.size == effect.size and before.digest == new.digest()
        if same:
            self._mode(effect, stat, new)
            return
        if self._is_late(stat, old):
            self.found.conflicts.append(old)
            return
        check_name(old)
        mode = self._mode_of_both(effect, stat)
        self._keep(new)
        self.found.replaced.append(Write(old, new.content(), before, stat, mode))

    def _mode(self, effect: Effect, stat: Stat, new: Created) -> None:
        """Compare the modes of a file whose content is the same."""
        path, mode = effect.path, self._mode_of_both(effect, stat)
        if (effect.mode ^ (stat.mode or 0)) & _MODE & ~EXECUTABLE:
            self.found.dropped.append((path, "only the executable bits of a mode are changed"))
        if mode is None:
            return
        if (stat.mode or 0) & SET_ID:
            self.found.dropped.append((path, "the mode of a file with a set-id bit is not changed"))
        elif stat.links > 1:
            # The other names keep their mode, as they keep their content.
            before = new.content()
            self._keep(new)
            self.found.replaced.append(Write(path, new.content(), before, stat, mode))
        else:
            self.found.modes.append(SetMode(path, stat, mode))

    def _mode_of_both(self, effect: Effect, stat: Stat) -> int | None:
        """Return the old mode with the new executable bits; None if they are the same."""
        old = stat.mode or 0
        if effect.mode & SET_ID & ~old:
            self.found.stripped.append(effect.path)
        if not (effect.mode ^ old) & EXECUTABLE:
            return None
        return (old & ~EXECUTABLE & ~SET_ID) | (effect.mode & EXECUTABLE)

    def _created(self, effect: Effect, changed: ChangedFolder) -> None:
        if effect.mode & SET_ID:
            self.found.stripped.append(effect.path)
        new = self._handle(effect, changed)
        self._keep(new)
        self.found.created[effect.path] = new

    # ----------------------------------------------------------------- contents

    def _handle(self, effect: Effect, changed: ChangedFolder) -> Created:
        """Return a file's content; files that are one inode share it."""
        self._scratch.take(effect)
        shared = self._by_inode.get(effect.inode)
        if shared is not None:
            return Created(effect, self._scratch, shared.data, shared.digest())
        data = changed.read(effect) if effect.size <= SMALL else None
        new = Created(effect, self._scratch, data)
        if effect.links > 1:
            self._by_inode[effect.inode] = new
        return new

    def _keep(self, new: Created) -> None:
        """Let small content stay in memory while there is room."""
        if new.data is not None:
            self._room -= len(new.data)
            if self._room < 0:
                new.digest()
                new.data = None

    def _lower(self, path: str, stat: Stat) -> StreamedContent:
        def pieces() -> Iterator[bytes]:
            with at(self._backend, path) as spot:
                yield from self._backend.chunks(spot, stat)

        return StreamedContent(*hashed(pieces()), pieces)

    # ---------------------------------------------------------------- deletions

    def _note_deletion(self, path: str, stat: Stat) -> None:
        if stat.kind == OTHER:
            if self._scratch.copied:
                return  # nobody copies one
            self.found.dropped.append((path, "what is neither a file, a directory nor a link is not deleted"))
            return
        entries: tuple[Entry, ...] = ()
        if stat.kind == DIRECTORY:
            # All of it, also what the command could not see.
            with at(self._backend, path) as spot:
                found = []
                for entry, _ in walk(self._backend, spot, path):
                    self._scratch.count(1)
                    found.append(entry)
            entries = tuple(found)
        late = [
            entry.path for entry in (Entry(path, stat), *entries) if self._is_late(entry.stat, entry.path)
        ]
        self.found.conflicts += late
        if not late:
            self.found.deletions[path] = Deletion(path, stat, entries)

    def _is_late(self, stat: Stat, path: str | None = None) -> bool:
        """Whether an entry of the workspace changed since the command started."""
        known = self._around.known.get(path) if path is not None else None
        if known is not None and stat.kind != DIRECTORY:
            return known != stat.identity
        changed = stat.identity.rpartition(":")[2]
        return changed.isdigit() and int(changed) >= self._around.started_ns
