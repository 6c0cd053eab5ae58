"""Files during a recovery: the state of each path, read once, and the changes that a recovery makes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.recovery_states import PathState
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, Delete, Entry, Move, Stat
from ringfence.toolkit.plan.content import hashed, sha256
from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.storage.backend import FailedEntry, Spot, WritableTree, at
from ringfence.toolkit.storage.guarantees import MAX_FILE
from ringfence.toolkit.storage.tree_walk import walk

T = TypeVar("T")

# What is found at a path that leads elsewhere now: it matches no intent, and nothing is changed there.
_ELSEWHERE = PathState("elsewhere")


class RecoveryFiles:
    """The files of a tree; a state that was read or assumed counts until a change or `forget`."""

    def __init__(self, backend: WritableTree) -> None:
        self._backend = backend
        self._now: dict[str, PathState | None] = {}

    def assume(self, path: str, state: PathState | None) -> None:
        """Take `state` as that of the path, as before a later change of the operation."""
        self._now[path] = state

    def forget(self) -> None:
        """Read every state again."""
        self._now.clear()

    def set_metadata(self, path: str, mode: int | None, metadata: Metadata | None) -> None:
        """Set the mode and the metadata of an entry, where given."""
        self.at(path, lambda spot: self._backend.set_metadata(spot, mode, metadata))

    def inode(self, path: str) -> str | None:
        """Return what identifies the entry across renames; None if there is none."""
        try:
            stat = self.at(path, self._backend.stat)
        except CallError as error:
            if error.code != "path_changed":
                raise
            return None
        return None if stat is None else stat.identity.partition(":")[0]

    def remove_if_empty(self, path: str) -> bool:
        """Remove a directory if it is empty; return whether it is gone."""
        if self.state_at(path) is not None:
            with suppress(CallError):
                self.at(path, self._backend.remove_directory)
            self._now.pop(path, None)
        return self.state_at(path) is None

    def size(self, path: str) -> int | None:
        """Return the size in bytes; None if there is no entry."""
        found = self.at(path, self._backend.stat)
        return None if found is None else found.size

    def restore(self, place: str, path: str) -> bool:
        """Restore a quarantined entry to its path, with missing directories; return whether that succeeded.

        It stays in the quarantine if a name on the way is a file now, or leads elsewhere.
        """
        try:
            for above in self.at(path, self._backend.missing):
                self.at(above, self._backend.make_directory)
            self.move(place, path)
        except CallError:
            return False
        return True

    def remove(self, path: str, listed: str, temporary: str, judged: Stat | None = None) -> bool:
        """Delete exactly the entry that is at `path` now, or the `judged` one; return whether all of it is
        gone.

        `listed` is the path whose state changes with it, `temporary` the backend's name for the deletion.
        """
        stat = judged or self.at(path, self._backend.stat)
        if stat is None:
            return True
        entries = tuple(Entry(below, self._stat(below)) for below in self.below(path) if below != path)
        steps = self.at(
            path, lambda spot: list(self._backend.remove(spot, Delete(path, stat, entries), temporary))
        )
        self._now.pop(listed, None)
        return not any(isinstance(step, FailedEntry) for step in steps)

    def move(self, source: str, destination: str) -> None:
        """Move an entry. Raises CallError as the backend does."""
        stat = self._stat(source)
        self.at(
            source,
            lambda here: self.at(
                destination,
                lambda there: self._backend.move(here, there, Move(source, destination, stat)),
            ),
        )
        self._now.clear()

    def state_at(self, path: str) -> PathState | None:
        """Return the state of a path; None if there is no entry."""
        if path not in self._now:
            try:
                self._now[path] = self.at(path, self._entry_state)
            except CallError as error:
                if error.code != "path_changed":
                    raise
                self._now[path] = _ELSEWHERE
        return self._now[path]

    def _entry_state(self, spot: Spot) -> PathState | None:
        stat = self._backend.stat(spot)
        if stat is None:
            return None
        digest = self._digest(spot) if stat.kind == FILE else None
        return PathState(stat.kind, digest, stat.target if stat.kind == LINK else None)

    def _digest(self, spot: Spot) -> str:
        if self._backend.traits.quarantines:
            return hashed(self._backend.chunks(spot))[0]
        try:
            return sha256(self._backend.read(spot, MAX_FILE))
        except CallError as error:
            if error.code != "too_large":
                raise
            return "too large to be what a call left here"

    def _stat(self, path: str) -> Stat:
        found = self.at(path, self._backend.stat)
        if found is None:
            raise CallError("path_changed", f"'{path}' went away", where=path)
        return found

    def below(self, path: str) -> list[str]:
        """Return `path` and everything in it, parents first."""
        found = [path]
        if self._stat(path).kind != DIRECTORY:
            return found

        with at(self._backend, path) as spot:
            return found + [entry.path for entry, _ in walk(self._backend, spot, path)]

    def at(self, path: str, act: Callable[[Spot], T]) -> T:
        """Return what `act` returns for the spot of a path."""
        with at(self._backend, path) as spot:
            return act(spot)
