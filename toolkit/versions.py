"""A file's line of history: `initial`, then `v1`, `v2`, … after each change, session by session.

A move, its own or its directory's, does not break the line. Only reads the history, and never says of a
content what was not recorded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from toolkit.errors import CallError
from toolkit.history import DONE, History, Kept
from toolkit.metadata import Metadata
from toolkit.plan import DIRECTORY, FILE, LINK, restored_mode

INITIAL = "initial"
_NAME = re.compile(r"initial|v[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Version:
    """A file at one time in a session; `path` is where it was then.

    `digest` and `target` are both None where nothing was there (a tombstone). Where `kept` is false the
    file was there and was moved along with its directory, its content not looked at, or was too large to be
    kept. `mode` and `metadata` are what the next change found, as far as one is known.
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
    metadata: Metadata | None = field(default=None, hash=False)

    @property
    def gone(self) -> bool:
        """Whether nothing was there."""
        return self.kept and self.digest is None and self.target is None


@dataclass(frozen=True, slots=True)
class Held:
    """What an item found or left at a path."""

    kind: str = FILE
    digest: str | None = None
    target: str | None = None
    size: int = 0
    kept: bool = True

    def same(self, version: Version) -> bool:
        return (self.digest, self.target, self.kept) == (version.digest, version.target, version.kept)


NOTHING = Held()


def versions(history: History, path: str, session: str | None = None) -> list[Version]:
    """The versions of the file that is or was at `path`, in every session or one, oldest first in each."""
    lines: dict[str, list[Version]] = {}
    for item, at in _events(history, path):
        if session in (None, item.session):
            _extend(lines.setdefault(item.session, []), item, at, history.metadata(item))
    return [version for line in lines.values() for version in line]


def _events(history: History, path: str) -> list[tuple[Kept, str]]:
    """The items that made the file what it is, each with the path it was at; back through its moves."""
    found: dict[tuple[int, int], tuple[Kept, str]] = {}
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


def _extend(line: list[Version], item: Kept, at: str, metadata: Metadata | None) -> None:
    arrived = item.kind == "move" and item.path2 == at
    came_from = item.path if arrived else at
    before, after = ends(item, at)
    if before.kept and before != NOTHING:
        _fill(line, before)
    if not line or (before.kept and not before.same(line[-1])):
        _append(line, item, came_from, before)
    if item.kind != "move" and before != NOTHING:
        line[-1] = replace(line[-1], mode=restored_mode(item.mode), metadata=metadata)
    if arrived and replaced(item) != NOTHING:
        _append(line, item, at, replaced(item))
        line[-1] = replace(line[-1], mode=restored_mode(item.mode), metadata=metadata)
    _append(line, item, at, after)


def _fill(line: list[Version], found: Held) -> None:
    """What came along with its directory held what the next one to look at it found."""
    for n in range(len(line) - 1, -1, -1):
        if line[n].kept:
            return
        line[n] = replace(
            line[n], digest=found.digest, target=found.target, size=found.size, kind=found.kind, kept=True
        )


def ends(item: Kept, at: str) -> tuple[Held, Held]:
    """What the item found and what it left; of a move, of the file that is moved."""
    match item.kind:
        case "write":
            return _before(item), _of_file(item.after, item.grown)
        case "delete":
            return Held(LINK, target=item.target) if item.type == LINK else _before(item), NOTHING
        case "link":
            return NOTHING, Held(LINK, target=item.target)
    known = item.after is not None
    moved = Held(item.type, item.after, size=item.grown if known else item.size, kept=known)
    return (moved, moved) if item.path2 == at else (moved, NOTHING)


def replaced(item: Kept) -> Held:
    """What a move found at its destination."""
    if item.before is None and item.target is not None:
        return Held(LINK, target=item.target)
    return _before(item)


def _before(item: Kept) -> Held:
    if item.lost:
        return Held(FILE, size=item.size, kept=False)
    return _of_file(item.before, item.size)


def _of_file(digest: str | None, size: int) -> Held:
    return NOTHING if digest is None else Held(FILE, digest, size=size)


def _append(line: list[Version], item: Kept, path: str, state: Held) -> None:
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
        )
    )


def pick(found: list[Version], name: str) -> tuple[Version, Version]:
    """The version called `name` (`v2`, `SESSION:v2`) and the last one known.

    Raises CallError `not_found`, and `not_recoverable` for one whose content was not kept.
    """
    session, _, short = name.rpartition(":")
    held = [version for version in found if not session or version.session == session]
    named = [version for version in held if version.name == short]
    if not named:
        known = ", ".join(version.name for version in held) or "none"
        raise CallError("not_found", f"There is no version '{name}'", hint=f"known versions: {known}")
    if not named[-1].kept:
        raise CallError(
            "not_recoverable",
            f"The content of version '{name}' was not kept: "
            "the file was moved along with its directory, or was too large",
            hint="take the call that moved the directory back with `ringfence undo`",
        )
    # A change and what it found belong to one operation, so the later of equals counts.
    kept = [(version.op, n) for n, version in enumerate(found) if version.kept]
    return named[-1], found[max(kept)[1]]


def is_name(text: str) -> bool:
    """Whether `text` is what a version may be called."""
    return _NAME.fullmatch(text) is not None
