"""Changes of a plan, one by one or in parallel: each path is checked to be unchanged since it was judged.

The intent of the changes is committed before the first of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.intent import Intent
from ringfence.toolkit.execution.outcome import _STATES, Outcome
from ringfence.toolkit.history.quarantined_trees import changed_in
from ringfence.toolkit.history.records import ABORTED, DONE, GONE, PENDING, UNSEEN
from ringfence.toolkit.history.store import History
from ringfence.toolkit.plan.changes import (
    DIRECTORY,
    Change,
    Delete,
    MakeDirectory,
    MakeLink,
    Move,
    QuarantinedTree,
    SetMode,
    Stat,
    Write,
    items_of,
    numbered,
    path_of,
)
from ringfence.toolkit.plan.content import StreamedContent, hashed
from ringfence.toolkit.plan.metadata import NotKept
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.storage.ambiguous_outcome import AMBIGUOUS
from ringfence.toolkit.storage.backend import FailedEntry, Spot, at, spot_at
from ringfence.toolkit.workspace.workspace import Workspace

_SIDE_BY_SIDE = 8


def _note_failure(change: Change, numbers: range, error: CallError, outcome: Outcome) -> None:
    """Record a change's error, and the state of those of its steps that have none yet."""
    for path in _paths(change):
        if error.code in _STATES:
            outcome.seen[path] = UNSEEN
    outcome.unsure.update(numbers if error.code in AMBIGUOUS else ())
    for n in numbers:
        outcome.states.setdefault(n, _STATES.get(error.code, ABORTED))
    outcome.failures.append(FailedEntry(path_of(change), error.message, error.code))
    outcome.raised[path_of(change)] = error
    if "caught" in error.data:
        outcome.left.append((path_of(change), error.data["caught"]))


def _note(outcome: Outcome, path: str, not_kept: NotKept) -> None:
    if not_kept:
        outcome.not_kept[path] = not_kept


class ChangeMaker:
    """Makes the changes of one plan; `spots` are the handles of the judged places, by canonical path."""

    def __init__(
        self,
        workspace: Workspace,
        spots: dict[str, Spot],
        progress: Progress,
        history: History,
        quarantined: Mapping[str, QuarantinedTree],
    ) -> None:
        self._workspace = workspace
        self._history = history
        self._backend = workspace.writable()
        self._below = workspace.below
        self._spots = spots
        self._own_spots: list[Spot] = []
        self._check_lock = history.check
        self._progress = progress
        self.intent = Intent(workspace.backend, spots, progress, quarantined)
        self._quarantined = quarantined
        # The changes that restoring a quarantined tree makes, by path, with the numbers of their items.
        self._with_tree = {path: -1 for top, tree in quarantined.items() for path in _paths_in(top, tree)}
        self._made: set[str] = set()
        self._changed_directories: set[str] = set()
        self._arrived: set[str] = set()
        self._restored: list[MakeDirectory | MakeLink] = []

    def release(self) -> None:
        """Release the handles resolved so far: a tree may need more descriptors than a process has."""
        while self._own_spots:
            self._backend.release(self._own_spots.pop())

    def number(self, changes: tuple[Change, ...]) -> list[tuple[Change, int]]:
        """Return each change with the number of its first item."""
        found = [(change, numbers) for change, numbers in numbered(changes)]
        self._progress.start(2 * found[-1][1].stop if found else 0)  # each entry is stored, and then changed
        if self._with_tree:
            starts = {path_of(change): numbers.start for change, numbers in found}
            self._with_tree = {path: starts[path] for path in self._with_tree}
        return [(change, numbers.start) for change, numbers in found]

    def one_by_one(self, changes: tuple[Change, ...]) -> Iterator[Change]:
        """Yield the changes that no restored quarantined tree makes."""
        return (change for change in changes if path_of(change) not in self._with_tree)

    def kept_in(self, changes: tuple[Change, ...]) -> str | None:
        """Return the workspace's directory in which deleted entries stay, or None."""
        stays = any(isinstance(change, Delete) and self.intent.stays(change) for change in changes)
        return self._backend.quarantine_name if stays else None

    # ------------------------------------------------------------------- change

    def make_apart(
        self, numbered: list[tuple[Change, int]], outcome: Outcome, after: Mapping[str, str]
    ) -> None:
        """Make independent changes, in parallel if the backend supports it. A change that depends on another
        is made last, and only if the other was made.
        """
        self._make_side_by_side([row for row in numbered if path_of(row[0]) not in after], outcome)
        items = {path_of(change): range(first, first + items_of(change)) for change, first in numbered}
        ready = []
        for change, first in numbered:
            before = after.get(path_of(change))
            if before is None:
                continue
            if all(outcome.states[n] == DONE for n in items[before]):
                ready.append((change, first))
            else:
                outcome.states.update(dict.fromkeys(items[path_of(change)], ABORTED))
        self._make_side_by_side(ready, outcome)

    def _make_side_by_side(self, numbered: list[tuple[Change, int]], outcome: Outcome) -> None:
        """Make changes that do not depend on each other; directories first."""

        def one(row: tuple[Change, int]) -> None:
            started = time.perf_counter()
            self.make(*row, outcome, apart=True)
            outcome.seconds[path_of(row[0])] = round(time.perf_counter() - started, 6)

        first = [row for row in numbered if isinstance(row[0], MakeDirectory)]
        rest = [row for row in numbered if not isinstance(row[0], MakeDirectory)]
        for row in first:
            one(row)
        # Parallel requests help with a remote store, not with a local disk.
        if len(rest) < _SIDE_BY_SIDE or self._backend.traits.race_free:
            for row in rest:
                one(row)
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            for _ in pool.map(one, rest):
                pass

    def make(self, change: Change, first: int, outcome: Outcome, *, apart: bool = False) -> None:
        """Make one change, or mark it aborted when an earlier one failed."""
        count = items_of(change)
        numbers = range(first, first + count)
        if outcome.states.get(first) == DONE:  # restored together with its directory
            self._note_made(change, outcome)
            self._progress.step("changing")
            return
        if outcome.error is not None:
            outcome.states.update(dict.fromkeys(numbers, ABORTED))
            return
        deleted = 0
        try:
            self._check_lock()
            if isinstance(change, Delete):
                for _ in self._delete(change, first, outcome):
                    deleted += 1
                    self._progress.step("deleting")
            else:
                self._make_one(change, outcome)
                outcome.states.update(dict.fromkeys(numbers, DONE))
            failed = None
        except CallError as error:
            failed = error
            _note_failure(change, numbers, error, outcome)
        if any(outcome.states[n] == PENDING for n in numbers) and self._resolve_lost_reply(
            change, numbers, outcome
        ):
            failed = None
        if failed is not None and (not apart or isinstance(change, MakeDirectory)):
            outcome.error = failed
        self._changed_directories.update(map(paths.parent, _paths(change)))
        self._progress.step("changing", count - deleted)

    def _resolve_lost_reply(self, change: Change, numbers: range, outcome: Outcome) -> bool:
        """After a lost reply, read which items of the change were done; return whether all of them were.

        Other items stay open, because the store may still carry them out.
        """
        from ringfence.toolkit.execution.item_recovery import known, verdicts

        items = [i for i in self._history.items("op.id = ?", (outcome.op,)) if i.n in numbers]
        with suppress(CallError):
            found, left = verdicts(self._workspace, items)
            outcome.left.extend(left)
            done = [i for i in items if (outcome.states[i.n], found[i.n]) == (PENDING, DONE)]
            outcome.states.update({item.n: DONE for item in done})
            outcome.seen.update(row for item in done for row in known(item))
            done_paths = {item.path for item in done}
            outcome.resolved.extend(done_paths)
            for missed in [missed for missed in outcome.failures if missed.path in done_paths]:
                outcome.failures.remove(missed)  # one by one: other threads add failures in parallel
            self._made |= done_paths if isinstance(change, MakeDirectory) else set()
        return all(outcome.states[n] == DONE for n in numbers)

    def set_restored_metadata(self, outcome: Outcome) -> None:
        """Set mode, times and metadata of restored directories and links, once everything is in them."""
        for change in reversed(self._restored):
            if change.path in self._with_tree and change.path not in self._changed_directories:
                continue  # it has them from before the quarantine
            mode = change.mode if isinstance(change, MakeDirectory) else None
            try:
                spot = self._resolved(change.path)
                _note(outcome, change.path, self._backend.set_metadata(spot, mode, change.metadata))
            except CallError as error:
                # Somebody else has moved it away meanwhile; the change itself was made.
                outcome.failures.append(FailedEntry(change.path, error.message, error.code))
            self.release()

    def _make_one(self, change: Write | Move | MakeDirectory | MakeLink | SetMode, outcome: Outcome) -> None:
        backend = self._backend
        if isinstance(change, Move):
            self._move(change, outcome)
            return
        spot = self._new_spot(change.path)
        backend.check(spot)
        if change.path in self._quarantined:
            self._restore_tree(change.path, spot, outcome)
            self._note_made(change, outcome)
            return
        self._at_spot(change, spot, outcome)

    def _at_spot(
        self, change: Write | MakeDirectory | MakeLink | SetMode, spot: Spot, outcome: Outcome
    ) -> None:
        backend = self._backend
        match change:
            case Write():
                _note(outcome, change.path, self._write(spot, change))
                outcome.seen[change.path] = change.after_digest
            case MakeDirectory():
                try:
                    backend.make_directory(spot)
                    outcome.made.append(change.path)
                except CallError as error:
                    # A parent that somebody else made meanwhile is as good.
                    if not (change.incidental and error.code == "already_exists"):
                        raise
                self._made.add(change.path)
                if change.mode is not None or change.metadata:
                    self._restored.append(change)
            case MakeLink():
                backend.make_link(spot, change.target)
                outcome.made.append(change.path)
                if change.metadata:
                    self._restored.append(change)
            case SetMode():
                backend.set_mode(spot, self._moved_here(change, spot), change.mode)

    def _move(self, change: Move, outcome: Outcome) -> None:
        source, destination = self._spot(change.source), self._new_spot(change.destination)
        self._backend.check(source)
        self._backend.check(destination)
        self._check_tree(source, change)
        not_kept = self._backend.move(source, destination, self._current(change, source))
        _note(outcome, change.destination, not_kept)
        self._note_moved(change, outcome)
        self._arrived.add(change.destination)

    def _moved_here(self, change: SetMode, spot: Spot) -> Stat:
        """Return the stat of the file whose mode is set; a rename by this plan has changed its identity."""
        now = self._backend.stat(spot) if change.path in self._arrived else None
        same = now is not None and (now.kind, now.size, now.modified, now.mode) == (
            change.stat.kind, change.stat.size, change.stat.modified, change.stat.mode
        )  # fmt: skip
        return now if now is not None and same else change.stat

    def _restore_tree(self, path: str, spot: Spot, outcome: Outcome) -> None:
        """Restore a quarantined tree with one rename, if it is unchanged; then all changes in it are done."""
        backend, tree = self._backend, self._quarantined[path]
        hidden = f"{OWN_DIRECTORY}/{tree.name}"
        with at(backend, hidden) as source:
            if backend.stat(source) is None:
                message = f"What was deleted at '{path}' has been pruned meanwhile"
                raise CallError("not_recoverable", message, where=path)
            backend.move(source, spot, Move(hidden, path, tree.stat))
            try:
                if (differs := changed_in(backend, spot, path, tree)) is not None:
                    message = f"'{path}' changed before it was moved back"
                    raise CallError("path_changed", message, where=differs)
            except BaseException:
                # Somebody else changed it in the last moment, so it does not agree with the intent.
                now = backend.stat(spot)
                if now is not None:
                    backend.move(spot, source, Move(path, hidden, now))
                raise
        outcome.states.update((self._with_tree[below], DONE) for below in _paths_in(path, tree))

    def _note_made(self, change: Change, outcome: Outcome) -> None:
        match change:
            case Write():
                outcome.seen[change.path] = change.after_digest
            case MakeDirectory():
                outcome.made.append(change.path)
                self._made.add(change.path)
                self._restored.append(change)
            case MakeLink():
                outcome.made.append(change.path)

    def _check_tree(self, source: Spot, change: Move) -> None:
        """Refuse a rename of a directory that changed since it was listed: new entries were not judged."""
        if change.stat.kind != DIRECTORY or not self._backend.traits.rename:
            return
        listed = {entry.path: entry.stat.kind for entry in change.entries}
        if {entry.path: entry.stat.kind for entry in self._below(source, change.source)} != listed:
            raise CallError("path_changed", f"'{change.source}' changed after it was listed")

    def _current(self, change: Move, source: Spot) -> Move:
        """Return the move of a directory in which this plan changed something, with its present times."""
        now = self._backend.stat(source) if change.source in self._changed_directories else None
        inodes = {stat.identity.partition(":")[0] for stat in (now, change.stat) if stat is not None}
        same = len(inodes) == 1 or not self._backend.traits.race_free
        return replace(change, stat=now) if now is not None and same else change

    def _write(self, spot: Spot, change: Write) -> NotKept:
        name, before = self.intent.name(change), change.before
        if change.stat is None:
            return self._backend.create(spot, change.data, change.mode, name, change.metadata)
        if isinstance(before, StreamedContent):
            if hashed(self._backend.chunks(spot)) != (before.digest, before.size):
                message = f"'{change.path}' changed after it was read"
                raise CallError("path_changed", message, where=change.path)
            before = None
        return self._backend.replace(
            spot, change.data, change.stat, change.mode, name, before, change.metadata
        )

    def _delete(self, change: Delete, first: int, outcome: Outcome) -> Iterator[None]:
        spot = self._spot(change.path)
        self._backend.check(spot)
        at = {entry.path: first + 1 + n for n, entry in enumerate(change.entries)}
        at[change.path] = first
        backend, renames = self._backend, self._backend.traits.rename
        remove = backend.quarantine if self.intent.stays(change) else backend.remove
        for step in remove(spot, change, self.intent.name(change)):
            if not renames:
                self._check_lock()
            if isinstance(step, FailedEntry):
                outcome.miss(at[step.path], step)
            else:
                outcome.states[at[step]] = DONE
                outcome.seen[step] = GONE
            yield

    def _note_moved(self, change: Move, outcome: Outcome) -> None:
        outcome.seen[change.source] = GONE
        outcome.seen[change.destination] = self.intent.digests[change.source]
        for entry in change.entries:
            outcome.seen[entry.path] = GONE
            outcome.seen[change.destination + entry.path[len(change.source) :]] = UNSEEN

    # ------------------------------------------------------------------- places

    def _spot(self, path: str) -> Spot:
        """Return the handle of the judged place; a path that the call did not name is resolved without
        following links.
        """
        if path not in self._spots:
            return self._resolved(path)
        return self._spots[path]

    def _new_spot(self, path: str) -> Spot:
        """Return a handle for a new entry; below a directory that was just made, it is resolved again."""
        return self._resolved(path) if paths.parent(path) in self._made else self._spot(path)

    def _resolved(self, path: str) -> Spot:
        spot = spot_at(self._backend, path)
        self._own_spots.append(spot)
        return spot


def _paths_in(top: str, tree: QuarantinedTree) -> Iterator[str]:
    yield top
    yield from (entry.path for entry in tree.entries)


def _paths(change: Change) -> tuple[str, ...]:
    return (change.source, change.destination) if isinstance(change, Move) else (change.path,)
