"""Plan of a command's effects: the changes of the workspace, in an order in which they can be made.

Only reads. Deletions and moves come first, then new directories, links and contents, and modes at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter

from ringfence.policy.patterns.matcher import Matcher
from ringfence.toolkit import paths
from ringfence.toolkit.commands.comparison import ComparisonInput, Deletion, Differences, compare
from ringfence.toolkit.commands.effects import Bounds, Scratch, check_target
from ringfence.toolkit.commands.moves import moves
from ringfence.toolkit.plan import checks
from ringfence.toolkit.plan.changes import (
    DIRECTORY,
    Change,
    Delete,
    Entry,
    MakeDirectory,
    MakeLink,
    Move,
    SetMode,
    Stat,
    Write,
    path_of,
)
from ringfence.toolkit.plan.content import hashed, length
from ringfence.toolkit.storage.backend import at
from ringfence.toolkit.workspace.workspace import Workspace

_OPEN = 0o755  # a new directory with fewer rights than these gets its own mode
_BOUNDS = Bounds()
_Key = tuple[str, str]  # the kind of a change, and its path


@dataclass(frozen=True, slots=True)
class Planned:
    """A command's changes, and what is not among them.

    `discarded` counts the effects in the lane of that name, with the first names in `discarded_names`.
    `dropped` are paths that no change can have, with the reason; `stripped` are files without their set-id
    bits; `conflicts` are paths that somebody else changed since the command started, which are not changed.
    `counts` are numbers by class: created, replaced, mode, deleted, moved, directories, links. `size` is the
    bytes of new content.
    """

    changes: tuple[Change, ...] = ()
    discarded: int = 0
    discarded_names: tuple[str, ...] = ()
    dropped: tuple[tuple[str, str], ...] = ()
    stripped: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    size: int = 0


def plan_effects(  # noqa: PLR0913  the parts of one run, by name
    scratch: str,
    workspace: Workspace,
    *,
    level: str,
    started_ns: int,
    discard: Sequence[str] = (),
    through: Collection[str] = (),
    hidden: Collection[str] = (),
    known: Mapping[str, str] | None = None,
    bounds: Bounds = _BOUNDS,
    check: Callable[[], None] = lambda: None,
) -> Planned:
    """Return what a command changed, as a plan of the workspace as it is now. `check` raises to give up.

    `scratch` is the directory of the command's changes; its contents are read again when the plan is applied.
    `started_ns` is the wall clock before the run. `discard` are patterns. `through` are canonical paths that
    were written at once, `hidden` those that the command could not see (level copy needs them). `known` are
    identities of files before the run, by path.

    Raises CallError `path_invalid` or `too_large` for effects that are refused as a whole, `path_changed`
    where something changes while it is read, and `permission_denied` for what cannot be read.
    """
    given = ComparisonInput(workspace, started_ns, discard, through, hidden, known or {}, check)
    tree = Scratch(scratch, level, bounds)
    try:
        found = compare(tree, given)
        planner = _Planner(found, given)
        changes = planner.changes()
    finally:
        tree.close()
    for change in changes:
        checks.check(change)
    return Planned(
        changes,
        found.discarded,
        tuple(found.discarded_names),
        tuple(found.dropped),
        tuple(found.stripped),
        tuple(found.conflicts),
        counts_of(changes),
        sum(length(change.data) for change in changes if isinstance(change, Write)),
    )


def counts_of(changes: tuple[Change, ...]) -> dict[str, int]:
    """Return numbers of changes by class: created, replaced, mode, deleted, moved, directories, links."""
    deleted = [entry for change in changes if isinstance(change, Delete) for entry in _entries(change)]
    new = [change.stat is None for change in changes if isinstance(change, Write)]
    return {
        "created": new.count(True),
        "replaced": new.count(False),
        "mode": sum(isinstance(change, SetMode) for change in changes),
        "deleted": sum(entry.stat.kind != DIRECTORY for entry in deleted),
        "moved": sum(isinstance(change, Move) for change in changes),
        "directories": sum(isinstance(change, MakeDirectory) for change in changes),
        "links": sum(isinstance(change, MakeLink) for change in changes),
    }


class _Planner:
    def __init__(self, found: Differences, given: ComparisonInput) -> None:
        self._found = found
        self._around = given
        self._lanes = Matcher(given.discard, given.workspace.fold) if given.discard else None
        self._digests: dict[str, str] = {}
        self._moves: list[Move] = []

    def changes(self) -> tuple[Change, ...]:
        found = self._found
        self._moves = moves(found, self._digest, self._is_discarded)
        while True:
            try:
                first = list(self._in_order())
                break
            except CycleError as error:
                # A file took the place of the directory that it was in: it is written anew.
                stuck = {path for kind, path in error.args[1] if kind == "move"}
                assert stuck, "without moves no change waits for another one that waits for it"
                self._moves = [move for move in self._moves if move.source not in stuck]
        arrived = _Below(move.destination for move in self._moves)
        links = [MakeLink(p, e.target or "") for p, e in found.links.items() if p not in arrived]
        for link in links:
            check_target(link.path, link.target)
        new = [
            Write(path, made.content(), mode=made.mode)
            for path, made in found.created.items()
            if path not in arrived
        ]
        return (
            *first,
            *sorted(links, key=_by_path),
            *sorted((*new, *found.replaced), key=_by_path),
            *sorted(found.modes, key=_by_path),
        )

    # -------------------------------------------------------------------- order

    def _in_order(self) -> Iterator[Change]:
        """Yield deletions, moves and new directories; each finds its place free and its parent made."""
        changes = self._of_names()
        # "delete" sorts before "make", and parents before what is in them.
        ordered = sorted(changes, key=lambda key: (key[0], paths.parts(key[1])))
        if self._moves:
            sorter: TopologicalSorter[_Key] = TopologicalSorter()
            for key in ordered:
                sorter.add(key)
                _order(sorter, key, changes)
            ordered = list(sorter.static_order())
        yield from (changes[key] for key in ordered)

    def _of_names(self) -> dict[_Key, Change]:
        """Return the changes that free a name, or need a free one and have something below it."""
        arrived = _Below(move.destination for move in self._moves)
        changes: dict[_Key, Change] = {}
        for deletion in self._found.deletions.values():
            left = self._left_of(deletion)
            if left is not None:
                changes["delete", deletion.path] = left
        changes |= {("move", move.source): move for move in self._moves}
        for path, effect in self._found.directories.items():
            if path not in arrived:
                mode = effect.mode & 0o777
                changes["make", path] = MakeDirectory(path, mode=None if mode & _OPEN == _OPEN else mode)
        return changes

    def _left_of(self, deletion: Deletion) -> Delete | None:
        """Return the deletion of what did not move elsewhere; None if all of it did."""
        left = _Below(move.source for move in self._moves)
        if deletion.path in left:
            return None
        entries = deletion.entries
        if self._moves:
            entries = tuple(entry for entry in entries if entry.path not in left)
        named = (deletion.path, *(entry.path for entry in entries))
        digests = {path: self._digests[path] for path in named if path in self._digests}
        return Delete(deletion.path, deletion.stat, entries, digests)

    # ------------------------------------------------------------------ reading

    def _digest(self, path: str, stat: Stat) -> str:
        if path not in self._digests:
            with at(self._around.workspace.backend, path) as spot:
                self._digests[path] = hashed(self._around.workspace.backend.chunks(spot, stat))[0]
        return self._digests[path]

    def _is_discarded(self, path: str, directory: bool) -> bool:
        return self._lanes is not None and self._lanes.matches(path, directory)


def _order(sorter: TopologicalSorter[_Key], key: _Key, changes: dict[_Key, Change]) -> None:
    """Add to the sorter what has to come before a change."""
    kind, path = key
    change = changes[key]
    if isinstance(change, Move):
        given = next((above for above in paths.above(path) if ("delete", above) in changes), None)
        if given is not None:
            sorter.add(("delete", given), key)
    if kind == "delete":
        return
    target = change.destination if isinstance(change, Move) else path
    for before in (("delete", target), ("move", target), ("make", paths.parent(target))):
        if before in changes and before != key:
            sorter.add(key, before)


class _Below:
    """The paths at and below some directories."""

    def __init__(self, tops: Iterator[str]) -> None:
        self._tops = set(tops)

    def __contains__(self, path: str) -> bool:
        if not self._tops:
            return False
        return path in self._tops or any(above in self._tops for above in paths.above(path))


def _entries(change: Delete) -> tuple[Entry, ...]:
    return (Entry(change.path, change.stat), *change.entries)


def _by_path(change: Change) -> tuple[str, ...]:
    return paths.parts(path_of(change))
