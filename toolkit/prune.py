"""Forgets contents that are old enough: what the history keeps grows with every change, and disks do not.

The record of what was done stays, with its versions' names; only contents go, so that a version forgotten is
`not_recoverable`. Never what an open intent, a waiting approval's session or a later undo still needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.errors import CallError
from toolkit.history import PENDING

if TYPE_CHECKING:
    from toolkit.shelf import Shelf
    from toolkit.state import State
    from toolkit.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was forgotten, or would be: changes whose contents go, contents, deleted trees, bytes."""

    calls: int
    contents: int
    trees: int
    bytes: int


def prune(
    state: State,
    shelf: Shelf,
    workspace: Workspace,
    *,
    before: float | None,
    keep: int | None,
    dry_run: bool,
) -> Pruned:
    """Forget the contents of changes begun `before` a time and not among the `keep` newest; one may be None.

    May be killed at any moment: what it did not come to is found by the next one.
    """
    if dry_run:
        ops = state.rows(_OPS)
        return _Choice(ops, _spared(state.rows), before, keep).told(state.rows)
    with state.transaction(durable=True) as db:

        def rows(sql: str, values: tuple[Any, ...] = ()) -> list[Any]:
            return db.execute(sql, values).fetchall()

        choice = _Choice(rows(_OPS), _spared(rows), before, keep)
        told = choice.told(rows)
        db.executemany("DELETE FROM blob WHERE hash = ?", [(digest,) for digest, _, _ in choice.contents])
    shelf.tidy(state)  # nothing speaks of these files from here on
    for name in choice.trees:
        workspace.writable().let_go(name)
        with state.transaction() as db:
            db.execute("DELETE FROM caught WHERE name = ?", (name,))
    if shelf.folder is not None:
        with suppress(CallError):  # somebody else is at it: the space is used again, if not given back
            state.rows("VACUUM")
    return told


_OPS = "SELECT id, call, session, started, state, undoes FROM op ORDER BY id"


def _spared(rows: Any) -> set[str]:
    """The sessions in which a request waits for a person, or for the call that was granted."""
    return {str(row[0]) for row in rows("SELECT session FROM approval WHERE state IN ('pending', 'granted')")}


class _Choice:
    """Which operations' contents go, and which contents those are."""

    def __init__(self, ops: list[Any], spared: set[str], before: float | None, keep: int | None) -> None:
        if before is None and keep is None:
            raise CallError("invalid_arguments", "Say what to forget: an age, or how many calls to keep")
        newest = {op[0] for op in ops[len(ops) - keep :]} if keep else set()
        self.kept: set[int] = set()
        needed: set[str] = set()
        self.old: set[int] = set()
        # The newest first: what a later operation undoes is needed as long as that one is kept.
        for op, call, session, started, state, undoes in reversed(ops):
            aged = before is None or started < before
            if (
                aged
                and op not in newest
                and state != PENDING
                and session not in spared
                and call not in needed
            ):
                self.old.add(op)
                continue
            self.kept.add(op)
            if undoes is not None:
                needed.add(str(undoes))
        self.contents: list[tuple[str, int, int]] = []
        self.trees: list[str] = []

    def told(self, rows: Any) -> Pruned:
        """Look up what goes; it is in `contents` and `trees` then."""
        held: set[str] = set()
        gone: set[int] = set()
        items = rows("SELECT op, before, after FROM item WHERE type = 'file'")
        for op, before, after in items:
            if op in self.kept:
                held.update(digest for digest in (before, after) if digest is not None)
        blobs = rows("SELECT hash, size, packed FROM blob")
        self.contents = [(str(d), int(size), int(packed)) for d, size, packed in blobs if d not in held]
        forgotten = {digest for digest, _, _ in self.contents}
        freed = sum(size for _, size, _ in self.contents)
        caught = {str(name): int(op) for name, op in rows("SELECT name, op FROM caught") if op in self.old}
        self.trees = sorted(caught)
        for op, size in _sizes(rows, set(caught.values())):
            gone.add(op)
            freed += size
        for op, before, after in items:
            if op in self.old and (before in forgotten or after in forgotten):
                gone.add(op)
        return Pruned(len(gone), len(self.contents), len(self.trees), freed)


def _sizes(rows: Any, ops: set[int]) -> Iterator[tuple[int, int]]:
    for op in sorted(ops):
        ((size,),) = rows("SELECT coalesce(sum(size), 0) FROM item WHERE op = ? AND kind = 'delete'", (op,))
        yield op, int(size)
