"""Versions of a file: `initial`, then `v1`, `v2`, … after each change, session by session.

The versions continue across moves of the file or its directory. Only reads the history, and never reports
content that was not recorded. If the beginning is pruned, versions are named by operation: `after-812`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.history.old_changes import Forgotten
from ringfence.toolkit.history.records import DONE, ItemRow
from ringfence.toolkit.history.store import History
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, restored_mode
from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.text import when

INITIAL = "initial"
_SHOWN = 20  # versions that a hint names
_COUNTED = re.compile(r"initial|v[1-9][0-9]{0,8}")
_BY_OPERATION = re.compile(r"(?:before|replaced|after)-[1-9][0-9]{0,18}")


@dataclass(frozen=True, slots=True)
class Version:
    """A file at one time in a session; `path` is its path at that time.

    `digest` and `target` are both None if nothing was there (a tombstone). If `kept` is false, the content
    was never stored: the file was moved with its directory, or was too large. If `forgotten` is true, the
    stored content is gone: it was pruned or cleaned up. `mode` and `metadata` are those that the next known
    change found; `set_mode`: a change of the mode alone made this version. `end`: the version was "before"
    the operation `op`, "after" it, or "replaced" by its move.
    """

    path: str
    name: str
    session: str
    digest: str | None
    size: int
    time: float
    tool: str
    call: str
    kind: str = FILE
    target: str | None = None
    mode: int | None = None
    op: int = 0
    kept: bool = True
    forgotten: bool = False
    metadata: Metadata | None = field(default=None, hash=False)
    end: str = "after"
    set_mode: bool = False

    @property
    def gone(self) -> bool:
        """Whether nothing existed at the path."""
        return self.kept and self.digest is None and self.target is None


@dataclass(frozen=True, slots=True)
class VersionState:
    """The state that an item found or left at a path; the mode is known only where one was set."""

    kind: str = FILE
    digest: str | None = None
    target: str | None = None
    size: int = 0
    kept: bool = True
    mode: int | None = None

    def same(self, version: Version) -> bool:
        """Whether the state is that of a version: the same content, link target and retention."""
        return (self.digest, self.target, self.kept) == (version.digest, version.target, version.kept)


NOTHING = VersionState()


def versions(history: History, path: str, session: str | None = None) -> list[Version]:
    """Return the versions of the file that is or was at `path`, in every session or one, oldest first in
    each.
    """
    lines: dict[str, list[Version]] = {}
    events = _events(history, path)
    for item, at in events:
        if session in (None, item.session):
            _extend(lines.setdefault(item.session, []), item, at, history.metadata(item))
    for name, line in lines.items():
        if history.forgotten(name, exact=True):
            lines[name] = _by_operation(line)
    found = [version for line in lines.values() for version in line]
    return _marked(history, found, [item for item, _ in events])


def _marked(history: History, found: list[Version], items: list[ItemRow]) -> list[Version]:
    """Return the versions, with `forgotten` set where the history no longer has the content."""
    # Moved content is not stored: it exists at its new path.
    ends = ((item.before, None if item.kind == "move" else item.after) for item in items)
    kept = {digest for both in ends for digest in both if digest is not None}
    gone = {v.digest for v in found if v.digest in kept and not history.is_stored(v.digest or "")}
    return [replace(version, forgotten=version.digest in gone) for version in found]


def _by_operation(line: list[Version]) -> list[Version]:
    """Return the versions with names that stay valid when more of the beginning is pruned."""
    return [replace(version, name=f"{version.end}-{version.op}") for version in line]


def _events(history: History, path: str) -> list[tuple[ItemRow, str]]:
    """Return the items that changed the file, each with the file's path then, followed back through its
    moves.
    """
    found: dict[tuple[int, int], tuple[ItemRow, str]] = {}
    todo: list[tuple[str, int | None]] = [(path, None)]
    while todo:
        at, before = todo.pop()
        where = "(item.path = ? OR item.path2 = ?) AND item.state = ? AND item.type != ?"
        values: tuple[object, ...] = (at, at, DONE, DIRECTORY)
        if before is not None:
            where, values = where + " AND op.id < ?", (*values, before)
        for item in history.items(where, values):
            arrived = item.kind == "move" and item.path2 == at
            if arrived:
                todo.append((item.path, item.op))
            if arrived or (item.op, item.n) not in found:
                found[item.op, item.n] = item, at
    return [found[key] for key in sorted(found)]


def _extend_by_mode(line: list[Version], item: ItemRow, at: str) -> None:
    """Add a version with another mode and the same content; unknown content is filled in later."""
    if not line or line[-1].gone:
        _append(line, item, at, VersionState(kept=False), "before")
    found = line[-1] = replace(line[-1], mode=item.mode)
    state = VersionState(found.kind, found.digest, found.target, found.size, found.kept)
    _append(line, item, at, state, "after")
    line[-1] = replace(line[-1], mode=int(str(item.after), 8), set_mode=True)


def _extend(line: list[Version], item: ItemRow, at: str, metadata: Metadata | None) -> None:
    if item.kind == "mode":
        _extend_by_mode(line, item, at)
        return
    arrived = item.kind == "move" and item.path2 == at
    came_from = item.path if arrived else at
    before, after = ends(item, at)
    if before.kept and before != NOTHING:
        _fill(line, before)
    if not line or (before.kept and not before.same(line[-1])):
        _append(line, item, came_from, before, "before")
    if item.kind != "move" and before.kept and before != NOTHING:
        line[-1] = replace(line[-1], mode=restored_mode(item.mode), metadata=metadata)
    if arrived and replaced(item) != NOTHING:
        _append(line, item, at, replaced(item), "replaced")
        line[-1] = replace(line[-1], mode=restored_mode(item.mode), metadata=metadata)
    _append(line, item, at, after, "after")


def _fill(line: list[Version], found: VersionState) -> None:
    """Fill in content after a move with the directory: it is what the next item found."""
    for n in range(len(line) - 1, -1, -1):
        if line[n].kept:
            return
        line[n] = replace(
            line[n], digest=found.digest, target=found.target, size=found.size, kind=found.kind, kept=True
        )


def ends(item: ItemRow, at: str) -> tuple[VersionState, VersionState]:
    """Return the states that the item found and left; for a move, those of the moved file."""
    match item.kind:
        case "write":
            return _before(item), _of_file(item.after, item.grown)
        case "delete":
            return VersionState(LINK, target=item.target) if item.type == LINK else _before(item), NOTHING
        case "link":
            return NOTHING, VersionState(LINK, target=item.target)
        case "mode":
            old, new = int(str(item.before), 8), int(str(item.after), 8)
            return VersionState(kept=False, mode=old), VersionState(kept=False, mode=new)
    known = item.after is not None
    moved = VersionState(item.type, item.after, size=item.grown if known else item.size, kept=known)
    return (moved, moved) if item.path2 == at else (moved, NOTHING)


def replaced(item: ItemRow) -> VersionState:
    """Return the state that a move found at its destination."""
    if item.before is None and item.target is not None:
        return VersionState(LINK, target=item.target)
    return _before(item)


def _before(item: ItemRow) -> VersionState:
    if item.lost:
        return VersionState(FILE, size=item.size, kept=False)
    return _of_file(item.before, item.size)


def _of_file(digest: str | None, size: int) -> VersionState:
    return NOTHING if digest is None else VersionState(FILE, digest, size=size)


def _append(line: list[Version], item: ItemRow, path: str, state: VersionState, end: str) -> None:
    line.append(
        Version(
            path,
            f"v{len(line)}" if line else INITIAL,
            item.session,
            state.digest,
            state.size,
            item.started,
            item.tool,
            item.call,
            state.kind,
            state.target,
            restored_mode(item.mode) if item.kind != "move" else None,
            item.op,
            state.kept,
            end=end,
        )
    )


def called(found: list[Version], name: str, old: Forgotten | None = None) -> list[Version]:
    """Return the versions called `name` (`v2`, `SESSION:v2`), at least one; `old` is the removed part of the
    history.

    Raises CallError `not_found`, and `not_recoverable` for a pruned version.
    """
    session, _, short = name.rpartition(":")
    in_session = [version for version in found if not session or version.session == session]
    named = [version for version in in_session if version.name == short]
    if named:
        return named
    known = ", ".join(version.name for version in in_session[-_SHOWN:]) or "none"
    known = f"…, {known}" if len(in_session) > _SHOWN else known
    if (
        old is not None
        and is_name(short)
        and (not in_session or any(_BY_OPERATION.fullmatch(version.name) for version in in_session))
    ):
        raise CallError(
            "not_recoverable",
            f"There is no version '{name}' any more: changes up to {when(old.until)} are pruned",
            hint=f"known versions: {known}",
        )
    raise CallError("not_found", f"There is no version '{name}'", hint=f"known versions: {known}")


def pick(found: list[Version], name: str, old: Forgotten | None = None) -> tuple[Version, Version]:
    """Return the version called `name` and the last known version.

    Raises as `called` does, and CallError `not_recoverable` for a version whose content was not stored.
    """
    named = called(found, name, old)
    if not named[-1].kept:
        raise CallError(
            "not_recoverable",
            f"The content of version '{name}' was not kept: "
            "the file was moved along with its directory, or was too large",
            hint="take the call that moved the directory back with `ringfence undo`",
        )
    # A change and the state it found belong to one operation, so of equal keys the later one counts.
    kept = [(version.op, n) for n, version in enumerate(found) if version.kept]
    return named[-1], found[max(kept)[1]]


def is_name(text: str) -> bool:
    """Whether `text` can be a version's name."""
    return any(names.fullmatch(text) for names in (_COUNTED, _BY_OPERATION))
