"""Planner of undo: makes a plan from the history that undoes calls or restores a version.

Only plans. Never deletes what Ringfence did not create, and never overwrites newer content without `force`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import takewhile

from ringfence.toolkit import paths
from ringfence.toolkit.history.quarantined_trees import unchanged_tree
from ringfence.toolkit.history.records import DONE, ItemRow
from ringfence.toolkit.history.store import History
from ringfence.toolkit.history.versions import Version
from ringfence.toolkit.plan.changes import DIRECTORY, FILE, LINK, Change, Plan, QuarantinedTree, restored_mode
from ringfence.toolkit.plan.content import StreamedContent
from ringfence.toolkit.plan.metadata import Metadata
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.protected_paths import QUARANTINED_PREFIX
from ringfence.toolkit.storage.backend import Tree
from ringfence.toolkit.undo.changeset import Shown, net
from ringfence.toolkit.undo.overlay import Node, Overlay, is_file
from ringfence.toolkit.workspace.workspace import Workspace

CHANGED, IS_GONE, TAKEN = "it changed since", "it is gone", "something else is there now"
NOT_KEPT = "the history holds no content for it"


@dataclass(frozen=True, slots=True)
class Conflict:
    """A path that is not changed, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class UndoPlan:
    """An undo plan with its conflicts; `session` is the one whose changes it undoes.

    `calls` are those that it undoes, the last one first: each with its tool, its session and when it began to
    change something, in POSIX seconds.
    """

    changes: tuple[Change, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    shown: tuple[Shown, ...] = field(default=(), compare=False)
    session: str | None = None
    quarantined: Mapping[str, QuarantinedTree] = field(default_factory=dict, compare=False)
    calls: tuple[tuple[str, str, str, float], ...] = ()

    def plan(self, title: str) -> Plan:
        """Return the undo as a plan, with a preview made of the diffs."""
        return Plan(
            changes=self.changes,
            title=title,
            draw=lambda: "".join(one.draw() for one in self.shown),
            quarantined=self.quarantined,
        )


def undo(  # noqa: PLR0913  options by keyword
    items: list[ItemRow],
    workspace: Workspace,
    history: History,
    *,
    force: bool = False,
    session: str | None = None,
    progress: Progress | None = None,
) -> UndoPlan:
    """Return the plan that undoes changes, given oldest first: they are reverted on an overlay, the last one
    first.

    A path returns from the state after the last of its changes to the state before the first. It is not
    changed if it is in neither of these states now, nor in one between them.
    """
    reversal = _Reversal(workspace, force, history)
    inner = _along(items)
    progress = progress or Progress()
    progress.start(len(items))
    for item in reversed(items):
        progress.check()
        progress.step("looking")
        if item.state == DONE and (item.op, item.n) not in inner:
            _STEPS[item.kind](reversal, item)
    sessions = {item.session for item in items}
    planned = reversal.plan(session or (sessions.pop() if len(sessions) == 1 else None), progress)
    calls = ((item.call, item.tool, item.session, item.started) for item in reversed(items))
    return replace(planned, calls=tuple(dict.fromkeys(calls)))


def restore(  # noqa: PLR0913  options by keyword
    path: str,
    version: Version,
    last: Version,
    workspace: Workspace,
    history: History,
    *,
    force: bool = False,
) -> UndoPlan:
    """Return the plan that restores one version of one file; `last` is the history's last known version at
    `path`.
    """
    reversal = _Reversal(workspace, force, history)
    wanted, known = _of_version(version), _of_version(last)
    if wanted is not None and wanted.mode is None:
        wanted.mode = last.mode
    reversal.step(path, wanted, known, TAKEN if known is None else CHANGED)
    return reversal.plan(version.session, Progress())


def _as_it_is_now(backend: Tree) -> Overlay:
    """Return an overlay without cached content of earlier calls, which may be outdated."""
    forget: Callable[[], None] = getattr(backend, "forget_content", lambda: None)
    forget()
    return Overlay(backend)


class _Reversal:
    """Changes undone one by one on an overlay. A path that does not match a change is in conflict unless an
    older change matches.
    """

    def __init__(self, workspace: Workspace, force: bool, history: History) -> None:
        self._backend = workspace.backend
        self._overlay = _as_it_is_now(workspace.backend)
        self._force = force
        self._history = history
        self._conflicts: dict[str, str] = {}
        # By the name in the quarantine, the top at the end.
        self._quarantined: dict[str, list[tuple[ItemRow, Node]]] = {}

    def plan(self, session: str | None, progress: Progress) -> UndoPlan:
        for path in self._conflicts:
            planned = self._overlay.over.get(path)
            if planned is not None and planned.origin == path:
                # A path in conflict is not changed at all.
                self._overlay.put(path, self._overlay.disk(path))
        self._make_parents()
        quarantined = self._whole_trees(progress)
        # Read once for each content, however many files have it.
        changes, shown = net(self._overlay, cache(self._history.stored_content))
        conflicts = tuple(Conflict(path, why) for path, why in sorted(self._conflicts.items()))
        return UndoPlan(tuple(changes), conflicts, tuple(shown), session, quarantined)

    # -------------------------------------------------------------------- steps

    def written(self, item: ItemRow) -> None:
        if item.lost:
            self._conflicts[item.path] = NOT_KEPT
        else:
            self.step(item.path, self._found(item), _file(item.after), CHANGED)

    def deleted(self, item: ItemRow) -> None:
        if item.type == DIRECTORY:
            node = Node(DIRECTORY, mode=item.mode)
        elif item.type == LINK:
            node = Node(LINK, target=item.target)
        elif item.before is None:
            self._conflicts[item.path] = NOT_KEPT
            return
        else:
            node = Node(FILE, item.before, mode=restored_mode(item.mode))
        if (item.temporary or "").startswith(QUARANTINED_PREFIX):
            # Most entries are restored with their metadata; it is read for the others, later.
            self._quarantined.setdefault(str(item.temporary), []).append((item, node))
        else:
            node.metadata = self._history.metadata(item)
        self.step(item.path, node, None, TAKEN)

    def made_link(self, item: ItemRow) -> None:
        self.step(item.path, None, Node(LINK, target=item.target), CHANGED)

    def mode_set(self, item: ItemRow) -> None:
        """Plan the old mode, if the file still has the one that the change set."""
        now, old = self._overlay.get(item.path), int(str(item.before), 8)
        if now is None or now.kind != FILE:
            self._conflicts[item.path] = CHANGED if now is not None else IS_GONE
        elif now.mode == old:
            self._clear_conflict(item.path)
        elif self._force or now.mode in (None, int(str(item.after), 8)):
            planned = replace(now, mode=old)
            if now.stat is not None and now.stat.links > 1:
                # Its other names keep their mode, so the file is written anew.
                planned.digest, planned.data = self._overlay.digest(now), self._overlay.read(now)
            self._plan_node(item.path, planned)
        else:
            self._conflicts[item.path] = CHANGED

    def made_directory(self, item: ItemRow) -> None:
        """Plan the deletion of a directory if it is empty; files that somebody else put there keep it."""
        now = self._overlay.get(item.path)
        if now is not None and now.kind == DIRECTORY and not self._overlay.children(item.path):
            self._plan_node(item.path, None)

    def moved(self, item: ItemRow) -> None:
        assert item.path2 is not None, "a move has two ends"
        source, target = self._overlay.get(item.path), self._overlay.get(item.path2)
        before = self._found(item)
        if before is None and item.target is not None:
            before = Node(LINK, target=item.target, metadata=self._history.metadata(item))
        left = Node(item.type, item.after)
        if self._is(source, left) and self._is(target, before):
            self._clear_conflict(item.path, item.path2)
        elif not self._is(target, left) and not (self._force and is_file(target) and item.type == FILE):
            self._conflicts[item.path2] = CHANGED if target is not None else IS_GONE
        elif source is not None and not (self._force and is_file(source) and item.type == FILE):
            self._conflicts[item.path] = TAKEN
        else:
            self._carry(item.path2, item.path)
            if before is not None:
                self._plan_node(item.path2, before)
            elif item.lost:
                self._conflicts[item.path2] = NOT_KEPT

    # ---------------------------------------------------------- quarantined trees

    def _whole_trees(self, progress: Progress) -> dict[str, QuarantinedTree]:
        """Return the quarantined trees to restore whole, by path; entries of the others are made anew."""
        found: dict[str, QuarantinedTree] = {}
        for deleted in self._quarantined.values():
            top = deleted[-1][0].path
            tree = self._whole(deleted, top, progress)
            if tree is not None:
                found[top] = tree
            for item, node in deleted:
                if tree is None or item.type == DIRECTORY:  # a directory gets its times last of all
                    node.metadata = self._history.metadata(item)
                elif item.type == FILE:
                    node.data = self._in_quarantine(item, tree.name + item.path[len(top) :])
        return found

    def _whole(
        self, deleted: list[tuple[ItemRow, Node]], top: str, progress: Progress
    ) -> QuarantinedTree | None:
        """Return the quarantined tree if it is unchanged and all of its entries are planned at free paths."""
        over = self._overlay.over
        anew = all(over.get(item.path) is node and node.origin is None for item, node in deleted)
        if not anew or self._overlay.disk(top) is not None:
            return None
        quarantined = self._history.quarantined_tree(deleted[-1][0])
        if quarantined is None or quarantined[1] != top:
            return None
        return unchanged_tree(
            self._backend, quarantined[0], top, {item.path: item for item, _ in deleted}, progress
        )

    def _in_quarantine(self, item: ItemRow, path: str) -> StreamedContent:
        content_files = self._history.content_files
        assert content_files is not None and item.before is not None, "it was read there just now"
        return content_files.in_quarantine(item.before, item.size, path)

    # ------------------------------------------------------------------- pieces

    def _found(self, item: ItemRow) -> Node | None:
        """Return the file that an item found; None if there was none."""
        if item.before is None:
            return None
        return _file(item.before, restored_mode(item.mode), self._history.metadata(item))

    def step(self, path: str, before: Node | None, after: Node | None, why: str) -> None:
        """Plan `before` at `path` if `after` is there now; else record a conflict with the reason `why`."""
        now = self._overlay.get(path)
        over_newer = self._force and all(node is None or node.kind == FILE for node in (now, before))
        if self._is(now, before) and not self._is(now, after):
            self._clear_conflict(path)
        elif self._is(now, after) or over_newer:
            if before is not None and is_file(now) and is_file(before) and now is not None:
                before.origin = now.origin
            self._plan_node(path, before)
        else:
            self._conflicts[path] = why if now is not None else IS_GONE

    def _is(self, now: Node | None, known: Node | None) -> bool:
        """Whether the present entry matches the known one; a file of unknown content matches any file."""
        if now is None or known is None:
            return now is known
        if now.kind != known.kind:
            return False
        if now.kind == FILE:
            return known.digest is None or self._overlay.digest(now) == known.digest
        return now.kind != LINK or known.target in (None, now.target)

    def _plan_node(self, path: str, node: Node | None) -> None:
        self._clear_conflict(path)
        self._overlay.put(path, node)

    def _clear_conflict(self, *settled: str) -> None:
        for path in settled:
            self._conflicts.pop(path, None)

    def _carry(self, source: str, target: str) -> None:
        self._clear_conflict(source, target)
        self._overlay.carry(source, target)
        for path in [path for path in self._conflicts if paths.is_below(path, source)]:
            self._conflicts[target + path[len(source) :]] = self._conflicts.pop(path)

    def _make_parents(self) -> None:
        """Plan the missing directories of planned entries; if something else is in the way, the entry is in
        conflict.
        """
        seen: set[str] = set()  # directories that exist, with those above them
        for path in sorted(self._overlay.over, key=paths.parts):
            if self._overlay.over[path] is None or paths.parent(path) in seen:
                continue
            unseen = list(takewhile(lambda above: above not in seen, paths.above(path)))
            for directory in reversed(unseen):
                found = self._overlay.get(directory)
                if found is None:
                    self._overlay.put(directory, Node(DIRECTORY))
                elif found.kind != DIRECTORY:
                    self._leave(path)
                    break
                seen.add(directory)

    def _leave(self, path: str) -> None:
        self._conflicts[path] = TAKEN
        node = self._overlay.over[path]
        assert node is not None, "only what is planned is left"
        self._overlay.put(path, None)
        if node.origin not in (None, path):
            self._overlay.put(str(node.origin), self._overlay.disk(str(node.origin)))


_STEPS: dict[str, Callable[[_Reversal, ItemRow], None]] = {
    "write": _Reversal.written,
    "delete": _Reversal.deleted,
    "move": _Reversal.moved,
    "directory": _Reversal.made_directory,
    "link": _Reversal.made_link,
    "mode": _Reversal.mode_set,
}


def _file(digest: str | None, mode: int | None = None, metadata: Metadata | None = None) -> Node | None:
    return None if digest is None else Node(FILE, digest, mode=mode, metadata=metadata)


def _of_version(version: Version) -> Node | None:
    if version.kind == LINK and version.target is not None:
        return Node(LINK, target=version.target, metadata=version.metadata)
    return _file(version.digest, version.mode, version.metadata)


def _along(items: list[ItemRow]) -> set[tuple[int, int]]:
    """Return the items that only list a moved directory's entries; undoing its own move restores them."""
    tops = {
        (item.op, item.path): item.path2
        for item in items
        # A directory that a store moved only in part restores none of them.
        if item.kind == "move" and item.type == DIRECTORY and item.path2 is not None and item.state == DONE
    }
    found = set()
    for item in items:
        if item.kind != "move" or item.path2 is None:
            continue
        above = paths.parent(item.path)
        while above != paths.ROOT:
            top = tops.get((item.op, above))
            if top is not None and item.path2 == top + item.path[len(above) :]:
                found.add((item.op, item.n))
                break
            above = paths.parent(above)
    return found
