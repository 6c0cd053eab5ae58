"""Records of the history, as values: an operation, its items, and an item as it is stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from ringfence.toolkit.plan.changes import FILE
from ringfence.toolkit.plan.content import StreamedContent

PENDING, DONE, ABORTED, PARTIAL, UNKNOWN = "pending", "done", "aborted", "partial", "unknown"


# In place of a digest: the session deleted the path, or no longer knows its content.
GONE, UNSEEN = "gone", ""


class Item(NamedTuple):
    """One path's change: `kind` is "write", "delete", "move", "directory", "link" or "mode", `type` is the
    entry's type.

    `before` and `after` are contents to store, or digests of contents that are stored elsewhere; of kind
    "mode" they are the modes, as octal numbers. `mode` and
    `metadata` (text of `toolkit.plan.metadata`) are those of the old entry, or for a new directory or link
    those to set.
    """

    kind: str
    path: str
    type: str
    path2: str | None = None
    before: bytes | StreamedContent | str | None = None
    after: bytes | StreamedContent | str | None = None
    mode: int | None = None
    target: str | None = None
    size: int = 0
    grown: int = 0
    identity: str = ""
    temporary: str | None = None
    metadata: str | None = None


@dataclass(frozen=True, slots=True)
class ItemRow:
    """A stored item with the facts of its operation."""

    op: int
    n: int
    kind: str
    path: str
    path2: str | None
    type: str
    before: str | None
    after: str | None
    mode: int | None
    target: str | None
    size: int
    grown: int
    identity: str
    temporary: str | None
    state: str
    metadata: str | None
    call: str
    session: str
    agent: str
    tool: str
    started: float
    undoes: str | None

    @property
    def lost(self) -> bool:
        """Whether it removed content that was too large to store, to whose loss a person had agreed."""
        if self.before is not None or not self.size:
            return False
        if self.kind == "move":
            # The entries of a moved directory have a size and no identity.
            return bool(self.identity) and self.target is None
        return self.type == FILE


@dataclass(frozen=True, slots=True)
class Position:
    """A moment of the history: the last operation begun by then, and those that were open."""

    last: int
    pending: frozenset[int] = frozenset()

    def without(self, op: int) -> Position:
        """Return the position without an open operation: the one that a plan is a part of."""
        return replace(self, pending=self.pending - {op})


@dataclass(frozen=True, slots=True)
class Operation:
    """The call behind an intent: who is about to change something, and why.

    `planned` is the history's position before the plan read the files; None: nobody can have changed them.
    `timed`: a limit counts what is changed in an hour or a day.
    """

    call: str
    given: str | int | None
    session: str
    agent: str
    tool: str
    reason: str | None = None
    undoes: str | None = None
    planned: Position | None = None
    timed: bool = False
