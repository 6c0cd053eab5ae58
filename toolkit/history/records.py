"""Records of the history, as values: an operation, the items it will change, and an item as it is kept."""

from __future__ import annotations

from dataclasses import dataclass

from ringfence.toolkit.plan.changes import FILE
from ringfence.toolkit.plan.content import StreamedContent

PENDING, DONE, ABORTED, PARTIAL, UNKNOWN = "pending", "done", "aborted", "partial", "unknown"


# What a session knows of a path it deleted, and of one it knows nothing of any more.
GONE, UNSEEN = "gone", ""


@dataclass(frozen=True, slots=True)
class Item:
    """One path's change: `kind` is "write", "delete", "move", "directory" or "link", `type` the entry's own.

    `before` and `after` are contents to keep, given as such, or the digest of content that is kept elsewhere.
    `mode` and `metadata` (text of `toolkit.plan.metadata`) are those of the old entry; of a new directory or
    link, those that it is to get.
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
    """An item as it stands in the history, with its operation's facts."""

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
        """Whether it took a file's content away that nothing could keep, which somebody had agreed to."""
        if self.before is not None or not self.size:
            return False
        if self.kind == "move":
            # What a moved directory held has a size and no identity.
            return bool(self.identity) and self.target is None
        return self.type == FILE


@dataclass(frozen=True, slots=True)
class Operation:
    """Who is about to change something, for the intent."""

    call: str
    given: str | int | None
    session: str
    agent: str
    tool: str
    reason: str | None = None
    undoes: str | None = None
