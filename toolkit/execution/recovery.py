"""Recovery of operations that dead processes left open: compares each intent with the files.

Concludes done, aborted or unknown, and never guesses. Removes temporary files that an intent names, completes
or reverts quarantined deletions, and removes no content that the history does not have.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.recovery_states import Found, by_stage, was
from ringfence.toolkit.history.records import ABORTED, DONE, GONE, PENDING, UNKNOWN, UNSEEN, ItemRow
from ringfence.toolkit.history.store import History
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, Delete, Entry, Move, Stat, octal
from ringfence.toolkit.plan.content import hashed, sha256
from ringfence.toolkit.plan.impact import Step, made, usage
from ringfence.toolkit.plan.metadata import Metadata, unpacked
from ringfence.toolkit.protected_paths import OWN_DIRECTORY, QUARANTINED_PREFIX
from ringfence.toolkit.storage.backend import Missed, Spot, at, traits_at
from ringfence.toolkit.storage.guarantees import MAX_FILE
from ringfence.toolkit.storage.tree_walk import walk
from ringfence.toolkit.workspace.workspace import Workspace

T = TypeVar("T")

# What is found at a path that leads elsewhere now: it matches no intent, and nothing is changed there.
_ELSEWHERE = Found("elsewhere")
# A quarantined tree is deleted under a second name, so that another crash is noticed, too.
_OTHER_HALF = ".again"


@dataclass(frozen=True, slots=True)
class Settled:
    """A call that was left open, and its outcome."""

    call: str
    tool: str
    outcome: str


def settle(history: History, workspace: Workspace) -> list[Settled]:
    """Recover every intent whose process is dead. An intent whose files cannot be read now stays open."""
    done = []
    for op in history.orphans():
        if not history.adopt(op):
            continue  # another process was faster
        items = list(history.items("op.id = ?", (op,)))
        settling = _Settling(workspace, items)
        try:
            # The states that were known when the others were left open stay.
            states = settling.run() | {i.n: i.state for i in items if i.state != PENDING}
            _overtaken(history, items, states, settling)
        except CallError:
            history.abandon(op)
            continue
        for path, name in settling.left:
            _warn(path, name, workspace.writable().quarantine_name)
        seen = {
            (item.session, path): digest
            for item in items
            if states[item.n] == DONE
            for path, digest in known(item)
        }
        # An item of unknown state counts against limits as if it was done.
        changed = usage(_steps(items, states, DONE, UNKNOWN))
        begun = history.begun(op)
        record = _record(begun, items, states)
        if settling.left:
            record["left"] = [{"path": path, "caught": name} for path, name in settling.left]
        outcome = history.finish(op, states, seen, record, changed)
        done.append(Settled(begun["call"], begun["tool"], outcome))
    return done


def verdicts(workspace: Workspace, items: list[ItemRow]) -> tuple[dict[int, str], list[tuple[str, str]]]:
    """Return the state of each item of an operation, by number, after removing its temporary files.

    Also returns the quarantined entries that could not be restored: the path, and the name in the quarantine.
    """
    settling = _Settling(workspace, items)
    return settling.run(), settling.left


def _overtaken(history: History, items: list[ItemRow], states: dict[int, str], settling: _Settling) -> None:
    """Mark a change as aborted if another call, whose plan was made earlier, changed its path.

    The intents of both were never open at the same time: if this change had been made, the file would differ
    from the other call's result.
    """
    at = Counter(item.path for item in items)
    for item in items:
        if states[item.n] == UNKNOWN and at[item.path] == 1:
            last = history.last(item.path, item.op)
            if last is not None and settling.is_left_by(last, item.path):
                states[item.n] = ABORTED


class _Settling:
    """Recovery of one operation's items, last change first; a later change is reverted in `_now` only, not on
    disk.
    """

    def __init__(self, workspace: Workspace, items: list[ItemRow]) -> None:
        self._backend = workspace.writable()
        self._items = items
        self._now: dict[str, Found | None] = {}
        self._states: dict[int, str] = {}
        self.left: list[
            tuple[str, str]
        ] = []  # entries that could not be restored: the path and the name in the quarantine

    def run(self) -> dict[int, str]:
        self._finish_links()
        for group in reversed(list(_groups(self._items))):
            top = group[0]
            match top.kind:
                case "write":
                    self._sweep(top)
                    self._put(top, self._written(top))
                case "delete":
                    self._deleted(group)
                case "move":
                    self._moved(group)
                case "mode":
                    self._states[top.n] = self._mode_set(top)
                case _:
                    self._put(top, self._made(top))
        if set(self._states.values()) not in ({DONE}, {ABORTED}) and not self.left and len(self._items) > 1:
            self._now.clear()
            self._states |= by_stage(self._items, self._look) or {}
        self._never_returned()
        self._modes_of_moved()
        if set(self._states.values()) == {DONE}:
            self._dress()
        return self._states

    def _never_returned(self) -> None:
        """Mark the restore of a quarantined tree as aborted while the tree is in the quarantine.

        It is one rename, so what is at its path now is somebody else's.
        """
        for top in self._items:
            if _is_returned(top) and self._look(f"{OWN_DIRECTORY}/{top.temporary}") is not None:
                inside = [item for item in self._items if paths.is_below(item.path, top.path)]
                self._states.update((item.n, ABORTED) for item in [top, *inside] if item.kind != "delete")

    def _dress(self) -> None:
        """Set mode, times and metadata of restored directories and links, after everything else."""
        for item in reversed(self._items):
            metadata = unpacked(item.metadata)
            if item.kind in ("directory", "link") and (item.mode is not None or metadata):
                self._set_metadata(item.path, item.mode, metadata)

    def _set_metadata(self, path: str, mode: int | None, metadata: Metadata | None) -> None:
        self._at(path, lambda spot: self._backend.set_metadata(spot, mode, metadata))

    def _put(self, item: ItemRow, state: str) -> None:
        self._states[item.n] = state
        if state == DONE:
            self._now[item.path] = was(item)

    # -------------------------------------------------------------- one change

    def _written(self, item: ItemRow) -> str:
        now = self._look(item.path)
        if now == was(item):
            # Writing the same content again has the same result as not writing it.
            return DONE if item.before == item.after else ABORTED
        return DONE if now == Found(FILE, item.after) else UNKNOWN

    def _made(self, item: ItemRow) -> str:
        now = self._look(item.path)
        if now is None:
            return ABORTED
        return DONE if now == Found(item.type, target=item.target) else UNKNOWN

    def _mode_set(self, item: ItemRow) -> str:
        try:
            stat = self._at(item.path, self._backend.stat)
        except CallError as error:
            if error.code != "path_changed":
                raise
            return UNKNOWN
        now = octal(stat.mode) if stat is not None and stat.kind == FILE and stat.mode is not None else None
        return {item.after: DONE, item.before: ABORTED}.get(now, UNKNOWN)

    def _modes_of_moved(self) -> None:
        """Mark the mode of a file as not set if the file was not moved to that path yet."""
        undone = {i.path2 for i in self._items if i.kind == "move" and self._states[i.n] == ABORTED}
        for item in self._items:
            if item.kind == "mode" and item.path in undone:
                self._states[item.n] = ABORTED

    def _moved(self, group: list[ItemRow]) -> None:
        top = group[0]
        # On disk a directory moves in one step; a store copies its entries one by one, and then deletes them.
        in_one = top.type != DIRECTORY or self._backend.traits.rename
        states = dict.fromkeys([i.n for i in group], self._move_of(top)) if in_one else self._copied(group)
        for item in reversed(group):
            self._states[item.n] = one = states[item.n]
            if one == DONE and item.path2 is not None:
                self._now[item.path] = Found(item.type, item.after)
                self._now[item.path2] = was(item) if item is top else None

    def _finish_links(self) -> None:
        """Remove the old names of files that were linked to their new ones and not yet unlinked.

        Before anything is compared: a later change of the operation may be about to put the same content at
        the old name.
        """
        for item in self._items:
            if item.type != FILE or not traits_at(self._backend, item.path).race_free:
                continue
            if item.kind == "move" and was(item) is None:
                old, new = item.path, str(item.path2)
            elif _is_returned(item):
                old, new = f"{OWN_DIRECTORY}/{item.temporary}", item.path
            else:
                continue
            inode = self._inode(old)
            if inode is not None and inode == self._inode(new):
                self._remove(old, old, f".ringfence-taken-{item.op}-{item.n}")

    def _inode(self, path: str) -> str | None:
        try:
            stat = self._at(path, self._backend.stat)
        except CallError as error:
            if error.code != "path_changed":
                raise
            return None
        return None if stat is None else stat.identity.partition(":")[0]

    def _move_of(self, item: ItemRow) -> str:
        assert item.path2 is not None
        taken = f".ringfence-taken-{item.op}-{item.n}"
        if self._look(f"{OWN_DIRECTORY}/{taken}") is not None:
            self._remove(f"{OWN_DIRECTORY}/{taken}", item.path, f"{taken}{_OTHER_HALF}")
        here, there = self._look(item.path), self._look(item.path2)
        moved = there is not None and there.kind == item.type and item.after in (None, there.digest)
        if here is None:
            return DONE if moved else UNKNOWN
        if not moved or there == was(item):
            return ABORTED if here.kind == item.type and item.after in (None, here.digest) else UNKNOWN
        if traits_at(self._backend, item.path).race_free:
            # A rename leaves nothing at the old path, so one of the two is somebody else's.
            return ABORTED if self._inode(item.path) == item.identity.partition(":")[0] else UNKNOWN
        if here == there and item.type == FILE and self._remove(item.path, item.path, taken):
            # Copied, and not yet removed at the old path.
            return DONE
        return UNKNOWN

    def _copied(self, group: list[ItemRow]) -> dict[int, str]:
        """Complete the move of a tree if all copies were made, else remove the copies again."""
        pairs = [(self._look(item.path), self._look(str(item.path2))) for item in group]
        whole = all(there is not None and here in (None, there) for here, there in pairs)
        settle = self._finished if whole else self._put_back
        return {item.n: settle(item) for item in reversed(group)}

    def _finished(self, item: ItemRow) -> str:
        if self._look(item.path) is None:
            return DONE
        gone = self._emptied(item.path) if item.type == DIRECTORY else self._remove(item.path, item.path, "")
        return DONE if gone else UNKNOWN

    def _put_back(self, item: ItemRow) -> str:
        here, there = self._look(item.path), self._look(str(item.path2))
        if item.type == DIRECTORY:
            self._emptied(str(item.path2))
        elif here is None and there is not None and self._size(str(item.path2)) == item.size:
            self._move(str(item.path2), item.path)  # the copy is the only one left
        elif here is not None and here == there:
            self._remove(str(item.path2), str(item.path2), "")
        now = self._look(item.path)
        return ABORTED if now is not None and now.kind == item.type else UNKNOWN

    def _emptied(self, path: str) -> bool:
        """Remove a directory if it is empty; return whether it is gone."""
        if self._look(path) is not None:
            with suppress(CallError):
                self._at(path, self._backend.remove_directory)
            self._now.pop(path, None)
        return self._look(path) is None

    def _size(self, path: str) -> int | None:
        found = self._at(path, self._backend.stat)
        return None if found is None else found.size

    # ----------------------------------------------------------------- deletion

    def _deleted(self, group: list[ItemRow]) -> None:
        top = group[0]
        names = [top.temporary, f"{top.temporary}{_OTHER_HALF}"] if top.temporary else []
        caught = next((name for name in names if self._look(f"{OWN_DIRECTORY}/{name}") is not None), None)
        left: set[str] | None = set()
        if caught is not None and self._backend.traits.rename:
            left = self._discard_or_put_back(group, caught, next(name for name in names if name != caught))
        for item in reversed(group):
            now = self._look(item.path)
            if left is not None and item.path in left:
                state = UNKNOWN
            elif now is None and caught is None and (top.temporary or "").startswith(QUARANTINED_PREFIX):
                state = UNKNOWN  # if this call had removed it, it would be in the quarantine
            elif now is None:
                state = DONE
            else:
                # A restored entry is not deleted, whatever its content is now.
                state = ABORTED if left is None or now == was(item) else UNKNOWN
            self._put(item, state)

    def _discard_or_put_back(self, group: list[ItemRow], caught: str, other: str) -> set[str] | None:
        """Complete a deletion if the quarantined entry is exactly as recorded; else restore it.

        Returns the paths that could neither be deleted nor restored, and stay in the quarantine; None if all
        were restored.
        """
        top = group[0]
        place = f"{OWN_DIRECTORY}/{caught}"
        recorded = {item.path: was(item) for item in group}
        shown = {path: top.path + path[len(place) :] for path in self._below(place)}
        same = all(path in recorded and self._look(real) == recorded[path] for real, path in shown.items())
        if same and (caught.startswith(QUARANTINED_PREFIX) or self._remove(place, top.path, other)):
            return set()
        self._now.clear()
        if self._look(top.path) is None and self._move_back(place, top.path):
            return None
        self.left.append((top.path, caught))
        return set(shown.values())

    def _move_back(self, place: str, path: str) -> bool:
        """Restore a quarantined entry to its path, with missing directories; return whether that succeeded.

        It stays in the quarantine if a name on the way is a file now, or leads elsewhere.
        """
        try:
            for above in self._at(path, self._backend.missing):
                self._at(above, self._backend.make_directory)
            self._move(place, path)
        except CallError:
            return False
        return True

    def _remove(self, path: str, shown: str, temporary: str) -> bool:
        """Delete exactly the entry that is at `path` now; return whether all of it is gone."""
        stat = self._at(path, self._backend.stat)
        if stat is None:
            return True
        entries = tuple(Entry(below, self._stat(below)) for below in self._below(path) if below != path)
        steps = self._at(
            path, lambda spot: list(self._backend.remove(spot, Delete(path, stat, entries), temporary))
        )
        self._now.pop(shown, None)
        return not any(isinstance(step, Missed) for step in steps)

    def _move(self, source: str, destination: str) -> None:
        stat = self._stat(source)
        self._at(
            source,
            lambda here: self._at(
                destination,
                lambda there: self._backend.move(here, there, Move(source, destination, stat)),
            ),
        )
        self._now.clear()

    def _sweep(self, item: ItemRow) -> None:
        if item.temporary is None or item.temporary.startswith(QUARANTINED_PREFIX):
            return  # a quarantined tree that was to be restored is no temporary file
        above = paths.parent(item.path)
        if above == paths.ROOT or self._look(above) == Found(DIRECTORY):
            self._at(item.path, lambda spot: self._backend.sweep(spot, str(item.temporary)))

    # ------------------------------------------------------------------ looking

    def is_left_by(self, item: ItemRow, path: str) -> bool:
        """Whether the entry at `path` is the result of this change."""
        if item.path == path and item.kind in ("delete", "move"):
            return self._look(path) is None
        return item.after is not None and self._look(path) == Found(FILE, item.after)

    def _look(self, path: str) -> Found | None:
        if path not in self._now:
            try:
                self._now[path] = self._at(path, self._found)
            except CallError as error:
                if error.code != "path_changed":
                    raise
                self._now[path] = _ELSEWHERE
        return self._now[path]

    def _found(self, spot: Spot) -> Found | None:
        stat = self._backend.stat(spot)
        if stat is None:
            return None
        digest = self._digest(spot) if stat.kind == FILE else None
        return Found(stat.kind, digest, stat.target if stat.kind == LINK else None)

    def _digest(self, spot: Spot) -> str:
        if self._backend.traits.catches:
            return hashed(self._backend.chunks(spot))[0]
        try:
            return sha256(self._backend.read(spot, MAX_FILE))
        except CallError as error:
            if error.code != "too_large":
                raise
            return "too large to be what a call left here"

    def _stat(self, path: str) -> Stat:
        found = self._at(path, self._backend.stat)
        if found is None:
            raise CallError("path_changed", f"'{path}' went away", where=path)
        return found

    def _below(self, path: str) -> list[str]:
        """Yield `path` and everything in it, parents first."""
        found = [path]
        if self._stat(path).kind != DIRECTORY:
            return found

        with at(self._backend, path) as spot:
            return found + [entry.path for entry, _ in walk(self._backend, spot, path)]

    def _at(self, path: str, act: Callable[[Spot], T]) -> T:
        with at(self._backend, path) as spot:
            return act(spot)


def _is_returned(item: ItemRow) -> bool:
    """Whether an item restores a quarantined entry with one rename."""
    return item.kind != "delete" and (item.temporary or "").startswith(QUARANTINED_PREFIX)


def _warn(path: str, name: str, folder: str | None) -> None:
    import logging  # slow to import, and seldom needed

    where = f"{folder}/" if folder is not None else "the directory `quarantine` of the state"
    logging.getLogger("ringfence").warning(
        "'%s' was being deleted when its process ended, has changed since and cannot be put back: it is kept"
        " in %s as '%s'",
        path,
        where,
        name,
    )


def _groups(items: list[ItemRow]) -> Iterator[list[ItemRow]]:
    """Group items by change: a tree's entries follow the tree."""
    group: list[ItemRow] = []
    for item in items:
        top = group[0] if group else None
        if top is not None and _belongs(item, top):
            group.append(item)
            continue
        if group:
            yield group
        group = [item]
    if group:
        yield group


def _belongs(item: ItemRow, top: ItemRow) -> bool:
    if item.kind != top.kind or top.type != DIRECTORY or not paths.is_below(item.path, top.path):
        return False
    return item.kind == "move" or (item.kind == "delete" and item.temporary == top.temporary)


def known(item: ItemRow) -> Iterator[tuple[str, str]]:
    """Yield what the session knows by path after the item: a digest, or that it is deleted."""
    if item.kind in ("delete", "move"):
        yield item.path, GONE
    if item.kind == "move" and item.path2 is not None:
        yield item.path2, item.after or UNSEEN
    if item.kind == "write" and item.after is not None:
        yield item.path, item.after


def _steps(items: list[ItemRow], states: dict[int, str], *kinds: str) -> Iterator[Step]:
    """Yield the steps of the items that ended in one of the given states, as in their plan."""
    for item in items:
        if states[item.n] not in kinds:
            continue
        # The entries of a moved directory are recorded with their size only.
        own = item.kind == "write" or (item.kind == "move" and bool(item.identity))
        over = item.size if own and item.kind == "move" else 0
        yield Step(item.kind, item.type, item.grown if own else item.size, over)


def _record(begun: dict[str, Any], items: list[ItemRow], states: dict[int, str]) -> dict[str, Any]:
    """Return the audit record of a call whose process ended before it could write one."""
    done = made(_steps(items, states, DONE))
    outcomes = set(states.values()) or {DONE}  # an operation without items is done
    return {
        "time": time.time(),
        "event": "settled",
        **begun,
        "paths": list(dict.fromkeys(path for i in items[:100] for path in (i.path, i.path2) if path)),
        "outcome": outcomes.pop() if len(outcomes) == 1 else "partial",
        "files": done.files,
        "written": done.written,
        "freed": done.freed,
        "counts": {state: list(states.values()).count(state) for state in sorted(set(states.values()))},
    }
