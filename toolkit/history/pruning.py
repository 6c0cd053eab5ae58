"""Pruning of stored contents that retention no longer requires.

The changes themselves stay, so a pruned version is `not_recoverable`; only beyond a very large number the
oldest changes are removed, too. Never prunes contents that an open intent, a change in the redo log, a
pending request or a later undo needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ringfence.toolkit.history.content_files import FILED
from ringfence.toolkit.history.old_changes import forget_changes, to_forget
from ringfence.toolkit.history.records import PENDING
from ringfence.toolkit.history.retention import CallContents, Rule, forgettable

if TYPE_CHECKING:
    from ringfence.toolkit.history.content_files import ContentFiles
    from ringfence.toolkit.state.protocol import Database, State
    from ringfence.toolkit.workspace.workspace import Workspace

_PAGE = 2_000  # rows read at a time; calls can use the state in between
_ROWS, _BYTES = 128, 4 << 20  # contents that are removed in one transaction
_PAGES = 2_048  # database pages that are returned to the disk after each transaction: more than it freed
_MARK = "forgotten"  # up to this operation no content is stored
_OPS = "SELECT id, call, given, started, state, undoes FROM op WHERE id > ? ORDER BY id LIMIT ?"
_ITEMS = (
    "SELECT op, n, kind, path, path2, before, after, size, temporary FROM item"
    " WHERE (op, n) > (?, ?) ORDER BY op, n LIMIT ?"
)
_BLOBS = "SELECT hash, size, packed FROM blob WHERE hash > ? ORDER BY hash LIMIT ?"


@dataclass(frozen=True, slots=True)
class Pruned:
    """Amounts of a pruning, done or planned: calls whose contents go, contents, deleted trees, bytes.

    `left` is how many bytes of contents stay, `changes` how many changes are removed.
    """

    calls: int = 0
    contents: int = 0
    trees: int = 0
    bytes: int = 0
    left: int = 0
    changes: int = 0


@dataclass(slots=True)
class Choice:
    """What to prune: contents as (digest, size, `packed`), trees as (name, size).

    `first` and `last` bound the operations that were read. Up to `mark` no content will be stored; if there
    are more than `most` changes, the oldest of those up to `mark` are removed.
    """

    amounts: Pruned
    contents: list[tuple[str, int, int]]
    trees: list[tuple[str, int]]
    first: int
    last: int
    mark: int
    most: int | None


def choose(
    state: State,
    rule: Rule,
    waiting: frozenset[str] = frozenset(),
    between: Callable[[], object] = lambda: None,
) -> Choice:
    """Return what a retention rule prunes now. `waiting` are the paths of pending requests.

    Only reads, some rows at a time, and calls `between` after each portion; `forget` spares what operations
    since then need.
    """
    stored = _StoredContents(state, waiting, between)
    gone = forgettable(stored.calls(), stored.sizes, rule)
    needed = {name for call in stored.calls() if call.call not in gone for name in call.contents}
    contents = [blob for blob in stored.blobs if blob[0] not in needed]
    trees = [(name, stored.sizes[_tree(name)]) for name in sorted(stored.trees) if _tree(name) not in needed]
    lost = {digest for digest, _, _ in contents} | {_tree(name) for name, _ in trees}
    size = sum(size for _, size, _ in contents) + sum(size for _, size in trees)
    calls = sum(1 for call in stored.calls() if call.call in gone and not call.contents.isdisjoint(lost))
    amounts = Pruned(calls, len(contents), len(trees), size, sum(stored.sizes.values()) - size)
    mark = stored.mark(gone, needed)
    return Choice(amounts, contents, trees, stored.first, stored.last, mark, rule.changes)


def forget(
    state: State, content_files: ContentFiles, workspace: Workspace, choice: Choice
) -> Iterator[Pruned]:
    """Prune a choice in small portions; yield what each one freed.

    May be stopped or killed between two portions; the next pruning finds the rest.
    """
    contents = list(choice.contents)
    while contents:
        freed = _portion(state, content_files, choice, contents)
        state.vacuum(_PAGES)
        yield freed
    mark = choice.mark
    for name, size in choice.trees:
        with state.transaction() as db:
            kept = _needed_since(db, choice)
        if not kept.isdisjoint(_digests_of(state, name)):
            mark = choice.first
            continue
        # An undo that begins from now on gets `not_recoverable`.
        workspace.writable().discard(name)
        with state.transaction() as db:
            db.execute("DELETE FROM caught WHERE name = ?", (name,))
        yield Pruned(trees=1, bytes=size)
    sweep(state, content_files)
    if mark > choice.first:
        with state.transaction() as db:
            note(db, _MARK, str(mark))
    if choice.most is not None:
        for changes in forget_changes(state, choice.most, mark):
            state.vacuum(_PAGES)
            yield Pruned(changes=changes)


def prune_now(  # noqa: PLR0913  three parts of one state
    state: State,
    content_files: ContentFiles,
    workspace: Workspace,
    rule: Rule,
    waiting: frozenset[str],
    *,
    dry_run: bool,
) -> Pruned:
    """Prune everything that the rule permits, and return the space to the disk."""
    choice = choose(state, rule, waiting)
    if dry_run:
        changes = 0 if choice.most is None else to_forget(state, choice.most, choice.mark)
        return replace(choice.amounts, changes=changes)
    freed = sum_of(forget(state, content_files, workspace, choice))
    state.vacuum_all()
    amounts = choice.amounts
    return replace(freed, calls=amounts.calls, left=amounts.left + amounts.bytes - freed.bytes)


def sum_of(portions: Iterator[Pruned]) -> Pruned:
    """Return the sum of what several portions freed."""
    contents = trees = size = changes = 0
    for one in portions:
        contents, trees, size = contents + one.contents, trees + one.trees, size + one.bytes
        changes += one.changes
    return Pruned(0, contents, trees, size, changes=changes)


# ------------------------------------------------------------------------ looking


@dataclass(slots=True)
class _Call:
    ops: list[int] = field(default_factory=list)
    started: float = 0.0
    undoes: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    spared: bool = False
    changes: int = 0


class _StoredContents:
    """The stored contents by call, read once, in portions so that no write waits."""

    def __init__(self, state: State, waiting: frozenset[str], between: Callable[[], object]) -> None:
        self._between = between
        self._calls: dict[str, _Call] = {}
        self._by_caller_id: dict[str, set[str]] = {}  # the calls by their caller's id
        self.first = int((state.rows("SELECT value FROM meta WHERE name = ?", (_MARK,)) or [("0",)])[0][0])
        self.last = self.first
        by_op = self._read_ops(state)
        self.trees = {str(name): int(op) for name, op in state.rows("SELECT name, op FROM caught")}
        self.sizes: dict[str, int] = {_tree(name): 0 for name in self.trees}
        self._read_items(state, by_op, waiting)
        self.blobs: list[tuple[str, int, int]] = []
        for digest, size, packed in self._paged(state, _BLOBS, ("",), 1):
            self.blobs.append((str(digest), int(size), int(packed)))
            self.sizes[str(digest)] = int(size)
        self._found = [self._contents_of(name, call) for name, call in self._calls.items()]

    def calls(self) -> list[CallContents]:
        """Return the calls in the order of their last operations."""
        return self._found

    def mark(self, gone: set[str], needed: set[str]) -> int:
        """Return the last operation up to which all belong to `gone` calls and no tree is one of those that
        `needed`.
        """
        kept = [min(call.ops) for name, call in self._calls.items() if name not in gone]
        trees = [op for name, op in self.trees.items() if _tree(name) in needed]
        return min([*kept, *trees], default=self.last + 1) - 1

    def _paged(self, state: State, sql: str, after: tuple[Any, ...], width: int) -> Iterator[Any]:
        """Yield the rows in portions, each after the last key; the key is a row's first `width` columns."""
        while rows := state.rows(sql, (*after, _PAGE)):
            yield from rows
            after = tuple(rows[-1][:width])
            self._between()

    def _read_ops(self, state: State) -> dict[int, _Call]:
        by_op: dict[int, _Call] = {}
        for op, name, given, started, op_state, undoes in self._paged(state, _OPS, (self.first,), 1):
            call = self._calls.pop(str(name), None) or _Call()
            # Moved to the end: the order is that of the last operation.
            self._calls[str(name)] = by_op[int(op)] = call
            call.ops.append(int(op))
            if given is not None:
                self._by_caller_id.setdefault(str(given), set()).add(str(name))
            call.started = max(call.started, float(started))
            call.spared = call.spared or op_state == PENDING
            if undoes is not None:
                call.undoes.add(str(undoes))
            self.last = int(op)
        # After a power cut they are made again. Read last: what is synced by now needs nothing.
        for (op,) in state.rows("SELECT op FROM unsynced"):
            if int(op) in by_op:
                by_op[int(op)].spared = True
        return by_op

    def _read_items(self, state: State, by_op: dict[int, _Call], waiting: frozenset[str]) -> None:
        latest: dict[str, _Call] = {}  # the last change at each path of a pending request
        for op, _, kind, path, path2, before, after, size, name in self._paged(
            state, _ITEMS, (self.first, 1 << 62), 2
        ):
            call = by_op.get(int(op))
            if call is None:
                break  # begun since
            call.changes += 1
            call.names.update(digest for digest in (before, after) if digest is not None)
            latest.update((at, call) for at in (path, path2) if at in waiting)
            if name in self.trees:  # of a deletion, or of an open undo that restores it
                call.names.add(_tree(name))
                self.sizes[_tree(name)] += int(size or 0) if kind == "delete" else 0
        for call in latest.values():
            call.spared = True

    def _contents_of(self, name: str, call: _Call) -> CallContents:
        # A digest without stored content: of a move, which needs none, or pruned before.
        names = frozenset(name for name in call.names if name in self.sizes)
        undoes = call.undoes.union(*(self._by_caller_id.get(given, ()) for given in call.undoes))
        return CallContents(name, call.started, names, frozenset(undoes), call.spared, call.changes)


def _tree(name: str) -> str:
    return f"tree {name}"


# ----------------------------------------------------------------------- removing


def _portion(
    state: State, content_files: ContentFiles, choice: Choice, contents: list[tuple[str, int, int]]
) -> Pruned:
    """Remove the last ones of `contents` from the list and from the state, in one transaction."""
    taken: list[tuple[str, int, int]] = []
    size = 0
    while contents and len(taken) < _ROWS and size < _BYTES:
        taken.append(contents.pop())
        size += 0 if taken[-1][2] == FILED else taken[-1][1]
    with state.transaction() as db:
        needed = _needed_since(db, choice)
        taken = [row for row in taken if row[0] not in needed]
        db.executemany("DELETE FROM blob WHERE hash = ?", [(digest,) for digest, _, _ in taken])
    _unlink(state, content_files, [digest for digest, _, packed in taken if packed == FILED])
    return Pruned(contents=len(taken), bytes=sum(row[1] for row in taken))


def _needed_since(db: Database, choice: Choice) -> set[str]:
    """Return the contents that operations since the choice refer to."""
    rows = db.execute("SELECT before, after FROM item WHERE op > ?", (choice.last,)).fetchall()
    return {str(digest) for row in rows for digest in row if digest is not None}


def _digests_of(state: State, tree: str) -> set[str]:
    sql = (
        "SELECT item.before FROM caught JOIN item ON item.op = caught.op"
        " WHERE caught.name = ? AND item.before IS NOT NULL"
    )
    return {str(row[0]) for row in state.rows(sql, (tree,))}


def _unlink(state: State, content_files: ContentFiles, names: list[str]) -> None:
    """Remove files that no row refers to, in a transaction, so that no file is being stored meanwhile."""
    if not names:
        return
    with state.transaction() as db:
        rows = db.execute("SELECT hash FROM blob WHERE packed = ?", (FILED,)).fetchall()
        known = {str(row[0]) for row in rows}
        for name in names:
            if name not in known:
                content_files.forget(name)


def sweep(state: State, content_files: ContentFiles) -> None:
    """Remove leftovers of killed processes: parts of contents, and files that no row refers to."""
    names = content_files.names()
    known = {str(row[0]) for row in state.rows("SELECT hash FROM blob WHERE packed = ?", (FILED,))}
    _unlink(state, content_files, [name for name in names if name not in known])


def note(db: Database, name: str, value: str) -> None:
    """Set a value in the history's table of settings."""
    db.execute(
        "INSERT INTO meta VALUES(?,?) ON CONFLICT(name) DO UPDATE SET value = excluded.value", (name, value)
    )
