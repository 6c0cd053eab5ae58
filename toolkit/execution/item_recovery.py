"""Recovery of the items of one operation: compares each with the files, and completes or reverts it.

Concludes done, aborted or unknown for each item, and never guesses. Removes temporary files that an intent
names, and removes no content that the history does not have.
"""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.recovery_files import RecoveryFiles
from ringfence.toolkit.execution.recovery_states import PathState, by_stage, was
from ringfence.toolkit.history.records import ABORTED, DONE, GONE, UNKNOWN, UNSEEN, ItemRow
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, octal
from ringfence.toolkit.plan.metadata import unpacked
from ringfence.toolkit.protected_paths import OWN_DIRECTORY, QUARANTINED_PREFIX
from ringfence.toolkit.storage.backend import traits_at
from ringfence.toolkit.workspace.workspace import Workspace

# A quarantined tree is deleted under a second name, so that another crash is noticed, too.
_OTHER_HALF = ".again"


def verdicts(workspace: Workspace, items: list[ItemRow]) -> tuple[dict[int, str], list[tuple[str, str]]]:
    """Return the state of each item of an operation, by number, after removing its temporary files.

    Also returns the quarantined entries that could not be restored: the path, and the name in the quarantine.
    """
    recovery = ItemRecovery(workspace, items)
    return recovery.run(), recovery.unrestored


class ItemRecovery:
    """Recovery of one operation's items, last change first; a later change is reverted in memory only, not on
    disk.
    """

    def __init__(self, workspace: Workspace, items: list[ItemRow]) -> None:
        self._backend = workspace.writable()
        self._files = RecoveryFiles(self._backend)
        self._items = items
        self._states: dict[int, str] = {}
        # Entries that could not be restored: the path, and the name in the quarantine.
        self.unrestored: list[tuple[str, str]] = []

    def run(self) -> dict[int, str]:
        """Return the state of each item by number, after completing or reverting what was half done."""
        self._finish_links()
        for group in reversed(list(_groups(self._items))):
            top = group[0]
            match top.kind:
                case "write":
                    self._sweep(top)
                    self._conclude(top, self._state_of_write(top))
                case "delete":
                    self._conclude_deletion(group)
                case "move":
                    self._conclude_move(group)
                case "mode":
                    self._states[top.n] = self._state_of_mode(top)
                case _:
                    self._conclude(top, self._state_of_new(top))
        if (
            set(self._states.values()) not in ({DONE}, {ABORTED})
            and not self.unrestored
            and len(self._items) > 1
        ):
            self._files.forget()
            self._states |= by_stage(self._items, self._files.state_at) or {}
        self._abort_if_quarantined()
        self._abort_modes_of_unmoved()
        if set(self._states.values()) == {DONE}:
            self._set_restored_metadata()
        return self._states

    def _abort_if_quarantined(self) -> None:
        """Mark the restore of a quarantined tree as aborted while the tree is in the quarantine.

        It is one rename, so what is at its path now is somebody else's.
        """
        for top in self._items:
            if _is_returned(top) and self._files.state_at(f"{OWN_DIRECTORY}/{top.temporary}") is not None:
                inside = [item for item in self._items if paths.is_below(item.path, top.path)]
                self._states.update((item.n, ABORTED) for item in [top, *inside] if item.kind != "delete")

    def _set_restored_metadata(self) -> None:
        """Set mode, times and metadata of restored directories and links, after everything else."""
        for item in reversed(self._items):
            metadata = unpacked(item.metadata)
            if item.kind in ("directory", "link") and (item.mode is not None or metadata):
                self._files.set_metadata(item.path, item.mode, metadata)

    def _conclude(self, item: ItemRow, state: str) -> None:
        self._states[item.n] = state
        if state == DONE:
            self._files.assume(item.path, was(item))

    # -------------------------------------------------------------- one change

    def _state_of_write(self, item: ItemRow) -> str:
        now = self._files.state_at(item.path)
        if now == was(item):
            # Writing the same content again has the same result as not writing it.
            return DONE if item.before == item.after else ABORTED
        return DONE if now == PathState(FILE, item.after) else UNKNOWN

    def _state_of_new(self, item: ItemRow) -> str:
        now = self._files.state_at(item.path)
        if now is None:
            return ABORTED
        return DONE if now == PathState(item.type, target=item.target) else UNKNOWN

    def _state_of_mode(self, item: ItemRow) -> str:
        try:
            stat = self._files.at(item.path, self._backend.stat)
        except CallError as error:
            if error.code != "path_changed":
                raise
            return UNKNOWN
        now = octal(stat.mode) if stat is not None and stat.kind == FILE and stat.mode is not None else None
        return {item.after: DONE, item.before: ABORTED}.get(now, UNKNOWN)

    def _abort_modes_of_unmoved(self) -> None:
        """Mark the mode of a file as not set if the file was not moved to that path yet."""
        undone = {i.path2 for i in self._items if i.kind == "move" and self._states[i.n] == ABORTED}
        for item in self._items:
            if item.kind == "mode" and item.path in undone:
                self._states[item.n] = ABORTED

    def _conclude_move(self, group: list[ItemRow]) -> None:
        top = group[0]
        # On disk a directory moves in one step; a store copies its entries one by one, and then deletes them.
        in_one = top.type != DIRECTORY or self._backend.traits.rename
        states = (
            dict.fromkeys([i.n for i in group], self._state_of_move(top))
            if in_one
            else self._conclude_copies(group)
        )
        for item in reversed(group):
            self._states[item.n] = one = states[item.n]
            if one == DONE and item.path2 is not None:
                self._files.assume(item.path, PathState(item.type, item.after))
                self._files.assume(item.path2, was(item) if item is top else None)

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
            inode = self._files.inode(old)
            if inode is not None and inode == self._files.inode(new):
                self._files.remove(old, old, f".ringfence-taken-{item.op}-{item.n}")

    def _state_of_move(self, item: ItemRow) -> str:
        assert item.path2 is not None
        taken = f".ringfence-taken-{item.op}-{item.n}"
        if self._files.state_at(f"{OWN_DIRECTORY}/{taken}") is not None:
            self._files.remove(f"{OWN_DIRECTORY}/{taken}", item.path, f"{taken}{_OTHER_HALF}")
        here, there = self._files.state_at(item.path), self._files.state_at(item.path2)
        moved = there is not None and there.kind == item.type and item.after in (None, there.digest)
        if here is None:
            return DONE if moved else UNKNOWN
        if not moved or there == was(item):
            return ABORTED if here.kind == item.type and item.after in (None, here.digest) else UNKNOWN
        if traits_at(self._backend, item.path).race_free:
            # A rename leaves nothing at the old path, so one of the two is somebody else's.
            return ABORTED if self._files.inode(item.path) == item.identity.partition(":")[0] else UNKNOWN
        if here == there and item.type == FILE and self._files.remove(item.path, item.path, taken):
            # Copied, and not yet removed at the old path.
            return DONE
        return UNKNOWN

    def _conclude_copies(self, group: list[ItemRow]) -> dict[int, str]:
        """Complete the move of a tree if all copies were made, else remove the copies again."""
        pairs = [(self._files.state_at(item.path), self._files.state_at(str(item.path2))) for item in group]
        whole = all(there is not None and here in (None, there) for here, there in pairs)
        conclude = self._finish_copy if whole else self._revert_copy
        return {item.n: conclude(item) for item in reversed(group)}

    def _finish_copy(self, item: ItemRow) -> str:
        if self._files.state_at(item.path) is None:
            return DONE
        removed = (
            self._files.remove_if_empty(item.path)
            if item.type == DIRECTORY
            else self._files.remove(item.path, item.path, "")
        )
        return DONE if removed else UNKNOWN

    def _revert_copy(self, item: ItemRow) -> str:
        here, there = self._files.state_at(item.path), self._files.state_at(str(item.path2))
        if item.type == DIRECTORY:
            self._files.remove_if_empty(str(item.path2))
        elif here is None and there is not None and self._files.size(str(item.path2)) == item.size:
            self._files.move(str(item.path2), item.path)  # the copy is the only one left
        elif here is not None and here == there:
            self._files.remove(str(item.path2), str(item.path2), "")
        now = self._files.state_at(item.path)
        return ABORTED if now is not None and now.kind == item.type else UNKNOWN

    # ----------------------------------------------------------------- deletion

    def _conclude_deletion(self, group: list[ItemRow]) -> None:
        top = group[0]
        names = [top.temporary, f"{top.temporary}{_OTHER_HALF}"] if top.temporary else []
        quarantined = next(
            (name for name in names if self._files.state_at(f"{OWN_DIRECTORY}/{name}") is not None), None
        )
        left: set[str] | None = set()
        if quarantined is not None and self._backend.traits.rename:
            left = self._discard_or_restore(
                group, quarantined, next(name for name in names if name != quarantined)
            )
        for item in reversed(group):
            now = self._files.state_at(item.path)
            if left is not None and item.path in left:
                state = UNKNOWN
            elif now is None and quarantined is None and (top.temporary or "").startswith(QUARANTINED_PREFIX):
                state = UNKNOWN  # if this call had removed it, it would be in the quarantine
            elif now is None:
                state = DONE
            else:
                # A restored entry is not deleted, whatever its content is now.
                state = ABORTED if left is None or now == was(item) else UNKNOWN
            self._conclude(item, state)

    def _discard_or_restore(self, group: list[ItemRow], quarantined: str, other: str) -> set[str] | None:
        """Complete a deletion if the quarantined entry is exactly as recorded; else restore it.

        Returns the paths that could neither be deleted nor restored, and stay in the quarantine; None if all
        were restored.
        """
        top = group[0]
        place = f"{OWN_DIRECTORY}/{quarantined}"
        recorded = {item.path: was(item) for item in group}
        listed = {path: top.path + path[len(place) :] for path in self._files.below(place)}
        same = all(
            path in recorded and self._files.state_at(real) == recorded[path] for real, path in listed.items()
        )
        if same and (
            quarantined.startswith(QUARANTINED_PREFIX) or self._files.remove(place, top.path, other)
        ):
            return set()
        self._files.forget()
        if self._files.state_at(top.path) is None and self._files.restore(place, top.path):
            return None
        self.unrestored.append((top.path, quarantined))
        return set(listed.values())

    def _sweep(self, item: ItemRow) -> None:
        if item.temporary is None or item.temporary.startswith(QUARANTINED_PREFIX):
            return  # a quarantined tree that was to be restored is no temporary file
        above = paths.parent(item.path)
        if above == paths.ROOT or self._files.state_at(above) == PathState(DIRECTORY):
            self._files.at(item.path, lambda spot: self._backend.sweep(spot, str(item.temporary)))

    def is_left_by(self, item: ItemRow, path: str) -> bool:
        """Whether the entry at `path` is the result of this change."""
        if item.path == path and item.kind in ("delete", "move"):
            return self._files.state_at(path) is None
        return item.after is not None and self._files.state_at(path) == PathState(FILE, item.after)


def _is_returned(item: ItemRow) -> bool:
    """Whether an item restores a quarantined entry with one rename."""
    return item.kind != "delete" and (item.temporary or "").startswith(QUARANTINED_PREFIX)


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
