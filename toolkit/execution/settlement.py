"""Settlement: makes the logged changes again that a power cut may have taken from the disk.

Writes only over Ringfence's own: the state before the first unsynced change of a path, the result of one, or
what a power cut leaves of it. Everything else stays, and the change's outcome is unknown. May be interrupted.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

from ringfence.toolkit import paths
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.execution.item_recovery import known
from ringfence.toolkit.execution.recovery import Recovered, record_of, warn_of_quarantined
from ringfence.toolkit.execution.recovery_files import RecoveryFiles
from ringfence.toolkit.execution.recovery_states import PathState, was
from ringfence.toolkit.history.records import DONE, PENDING, UNKNOWN, ItemRow
from ringfence.toolkit.history.redo_log import Unsynced
from ringfence.toolkit.history.store import History
from ringfence.toolkit.plan.changes import FILE, Stat
from ringfence.toolkit.protected_paths import OWN_DIRECTORY
from ringfence.toolkit.storage.backend import Spot
from ringfence.toolkit.workspace.workspace import Workspace

LATEST = 24 * 3600.0  # seconds after which a change is not made again
_SECTOR = 512  # bytes that a disk writes as a whole
_OTHER_HALF = ".again"
PLAYED, THERE = "made again", "there"


@dataclass(frozen=True, slots=True)
class Logged:
    """A logged change: its row in the redo log, its only item, and whether it was made in another directory
    than the present workspace's.
    """

    row: Unsynced
    item: ItemRow
    elsewhere: bool

    @property
    def result(self) -> PathState | None:
        """The state of the path after the change."""
        return PathState(FILE, self.item.after) if self.item.kind == "write" else None


def settle(history: History, workspace: Workspace) -> list[Recovered]:
    """Settle the changes that another boot, or a failed sync, has left; return those that made a difference.

    Raises CallError `not_settled` where the workspace is another directory, so that nothing may be written
    into it, and CallError where it cannot be read or written now. Then everything stays unsettled.
    """
    if not history.redo.to_settle():
        return []
    try:
        return _settle_all(history, workspace)
    except CallError as error:
        if error.code != "not_settled":
            # What was made again until then may be in memory only, and must not be taken for synced.
            history.redo.mark_failed()
        raise


def _settle_all(history: History, workspace: Workspace) -> list[Recovered]:
    found: list[Recovered] = []
    with history.redo.settling() as db:
        rows = history.redo.to_settle()  # another process may have been faster
        if not rows:
            return []
        by_path = _by_path(history, rows)
        settled: list[tuple[Logged, str]] = []
        for path, changes in by_path.items():
            one = _Path(history, workspace, path, changes)
            if not one.is_being_changed():  # else its rows stay
                settled += one.settle()
        found_ops = {change.row.op for changes in by_path.values() for change in changes}
        for row in rows:
            if row.op not in found_ops:
                history.redo.remove(db, row.op)  # of no change: in a damaged state
        history.redo.sync_all()
        for change, how in sorted(settled, key=lambda each: each[0].row.op):
            item = change.item
            state = UNKNOWN if how == UNKNOWN else DONE
            begun = history.begun(item.op)
            silent = how == THERE and item.state != PENDING
            record = None if silent else record_of(begun, [item], {item.n: state}) | {"settled": how}
            seen = () if silent or state != DONE else known(item)
            digests = {(item.session, path): digest for path, digest in seen}
            history.settle(db, item.op, {item.n: state}, digests, record)
            if not silent:
                found.append(Recovered(begun["call"], begun["tool"], how if how == PLAYED else state))
    return found


def _by_path(history: History, rows: list[Unsynced]) -> dict[str, list[Logged]]:
    """Return the logged changes of each path. Raises CallError `not_settled`."""
    found: dict[str, list[Logged]] = {}
    for row in rows:
        for item in history.items("op.id = ?", (row.op,)):
            elsewhere = history.redo.is_elsewhere(row)
            # By a wrong clock a change of the future would be given up only then.
            late = _is_late(item) or item.started - time.time() > LATEST
            if elsewhere and not (late or row.given_up):
                raise _moved()
            found.setdefault(item.path, []).append(Logged(row, item, elsewhere))
    return found


class _Path:
    """The logged changes of one path, oldest first."""

    def __init__(self, history: History, workspace: Workspace, path: str, changes: list[Logged]) -> None:
        self._history = history
        self._backend = workspace.writable()
        self._files = RecoveryFiles(self._backend)
        self._path, self._changes = path, changes

    def settle(self) -> Iterable[tuple[Logged, str]]:
        """Return each change with how it was settled."""
        *earlier, last = self._changes
        how = self._settle(last)
        # What a later change has replaced is done, and nothing of it is to be seen.
        return [*((change, THERE) for change in earlier), (last, how)]

    def _settle(self, last: Logged) -> str:
        if last.elsewhere:
            return UNKNOWN
        if self._is_overtaken():
            return THERE
        try:
            if not self._sweep():
                return UNKNOWN
            # Before its content: a file that is written to since is not the judged one.
            stat = self._files.at(self._path, self._backend.stat)
            there = self._files.state_at(self._path)
            if there == last.result and not any(change.row.failed for change in self._changes):
                return THERE
            if _is_late(last.item) or not (there is None or (stat is not None and self._is_own(there, stat))):
                return UNKNOWN
            return self._play(last, stat)
        except CallError as error:
            if error.code in ("path_changed", "already_exists", "not_a_directory", "not_recoverable"):
                return UNKNOWN  # somebody has changed it, its way leads elsewhere now, or there is no content
            if _is_late(last.item):
                return UNKNOWN  # nothing would be made again, so no session waits until it can be read
            raise

    def is_being_changed(self) -> bool:
        """Whether another change of the path or a directory above it is open: where only a sync failed, other
        processes are at work.
        """
        return self._is_concerned(PENDING)

    def _is_overtaken(self) -> bool:
        """Whether a change that was not logged has concerned the path or a directory above it since."""
        return self._is_concerned(DONE)

    def _is_concerned(self, state: str) -> bool:
        ops = ",".join(str(change.row.op) for change in self._changes)
        places = [self._path]
        while places[-1] != paths.ROOT:
            places.append(paths.parent(places[-1]))
        marks = ",".join("?" * len(places))
        later = self._history.items(
            f"item.op > ? AND item.op NOT IN ({ops}) AND item.state = ?"
            f" AND (item.path IN ({marks}) OR item.path2 IN ({marks}))",
            (self._changes[-1].row.op, state, *places, *places),
        )
        return next(later, None) is not None

    def _is_own(self, there: PathState, stat: Stat) -> bool:
        """Whether the file at the path is the one from before, the result of a change, or what is left of
        one.
        """
        if there.kind != FILE:
            return False
        first = self._changes[0].item
        if there == was(first) and _inode_and_time(stat.identity) == _inode_and_time(first.identity):
            return True
        return any(there == change.result for change in self._changes) or self._is_left(self._path)

    def _is_left(self, path: str) -> bool:
        """Whether the file is what a power cut has left of one of the changes."""
        contents = [content for content in map(self._content, self._changes) if content]
        most = max(map(len, contents), default=0)
        if (self._files.size(path) or 0) > most:
            return False
        data = self._files.at(path, lambda spot: self._backend.read(spot, most))
        return any(is_left_of(content, data) for content in contents)

    def _content(self, change: Logged) -> bytes | None:
        return None if change.item.after is None else self._history.content(change.item.after)

    def _play(self, last: Logged, stat: Stat | None) -> str:
        content = self._content(last)
        deleted = content is None or any(change.item.kind == "delete" for change in self._changes)
        name = f"{_temporary(last.item)}{_OTHER_HALF}"
        if deleted and stat is not None and not self._files.remove(self._path, self._path, name, stat):
            return UNKNOWN
        if content is not None:
            self._write(last, content, None if deleted else stat)
        self._files.forget()
        return PLAYED if self._files.state_at(self._path) == last.result else UNKNOWN

    def _write(self, last: Logged, content: bytes, stat: Stat | None) -> None:
        for above in self._files.at(self._path, self._backend.missing):
            self._files.at(above, self._backend.make_directory)
        mode = self._history.redo.mode_under(last.row.umask)
        name = _temporary(last.item)

        def write(spot: Spot) -> None:
            if stat is None:
                self._backend.create(spot, content, mode, name)
            else:  # its mode and metadata stay, as they did the first time
                self._backend.replace(spot, content, stat, None, name)

        self._files.at(self._path, write)

    def _sweep(self) -> bool:
        """Remove what the changes had under other names; put back what a deletion took that is somebody's.

        Returns whether that succeeded: else it stays in the quarantine.
        """
        for change in self._changes:
            name = _temporary(change.item)
            if change.item.kind == "write":
                self._files.at(self._path, partial(self._remove_beside, name=name))
            # Settling that was interrupted may have left the other half, of a write too.
            for taken in (name, f"{name}{_OTHER_HALF}"):
                place = f"{OWN_DIRECTORY}/{taken}"
                caught = self._files.state_at(place)
                if caught is None:
                    continue
                if caught.kind == FILE and (caught.digest in self._contents() or self._is_left(place)):
                    self._files.remove(place, place, f"{taken}-")
                elif not self._files.restore(place, self._path):
                    warn_of_quarantined(self._path, taken, self._backend.quarantine_name)
                    return False
        return True

    def _remove_beside(self, spot: Spot, name: str) -> None:
        if not self._backend.missing(spot):
            self._backend.sweep(spot, name)

    def _contents(self) -> set[str | None]:
        return {digest for change in self._changes for digest in (change.item.before, change.item.after)}


def is_left_of(content: bytes, data: bytes) -> bool:
    """Whether `data` may be what a power cut has left of a new file with `content`.

    It is as long, or shorter by whole sectors, and each of its sectors is the content's or has zeros only.
    """
    if len(data) > len(content) or (len(data) % _SECTOR and len(data) < len(content)):
        return False
    for start in range(0, len(data), _SECTOR):
        piece = data[start : start + _SECTOR]
        if piece.strip(b"\0") and piece != content[start : start + len(piece)]:
            return False
    return True


def _is_late(item: ItemRow) -> bool:
    return time.time() - item.started > LATEST


def _moved() -> CallError:
    return CallError(
        "not_settled",
        "The power failed while changes were on their way to the disk, and the workspace is another directory"
        " than then",
        hint="put the same directory back (is its disk mounted?), or give the changes up with"
        " `ringfence state settle --give-up`; after a day every session does",
    )


def _temporary(item: ItemRow) -> str:
    return str(item.temporary)


def _inode_and_time(identity: str) -> str:
    """Return the part of an identity that stays when the entry is renamed."""
    return identity.rpartition(":")[0]
