"""Plans and their primitive changes: what a tool would answer, and what it would change.

Values only; opens, reads and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ringfence.policy import Amount
from ringfence.toolkit.plan.content import StreamedContent, digest_of, held
from ringfence.toolkit.plan.entries import DIRECTORY, FILE, LINK, OTHER, SET_ID, Entry, FileNames, Place, Stat
from ringfence.toolkit.plan.metadata import Metadata

if TYPE_CHECKING:
    from ringfence.toolkit.media import Media

__all__ = [
    "DIRECTORY",
    "EXECUTABLE",
    "FILE",
    "LINK",
    "OTHER",
    "SET_ID",
    "Change",
    "Delete",
    "Entry",
    "Failed",
    "Failure",
    "FileNames",
    "MakeDirectory",
    "MakeLink",
    "Move",
    "PartialAnswer",
    "Place",
    "Plan",
    "QuarantinedTree",
    "SetMode",
    "Stat",
    "Write",
    "items_of",
    "kept_mode",
    "numbered",
    "octal",
    "path_of",
    "paths_of",
    "restored_mode",
]

EXECUTABLE = 0o111  # the bits of a mode that let a file be run
_OWNED = 0o200000  # in a mode that the history stores: the file's owner is known


@dataclass(frozen=True, slots=True)
class Write:
    """Write `data` to `path`; `before` and `stat` are the content and facts that it replaces, None for a new
    file.

    `before` alone is None if the content is too large to store. `metadata` are fields to set; None: the
    replaced file's own fields stay.
    """

    path: str
    data: bytes | StreamedContent
    before: bytes | StreamedContent | None = None
    stat: Stat | None = None
    mode: int | None = None
    metadata: Metadata | None = field(default=None, hash=False)
    _digests: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    # Cached: the answer, the plan, the history and the session's known digests all use them.

    @property
    def after_digest(self) -> str:
        """The SHA-256 of the new content, in hexadecimal."""
        return self._known()[0]

    @property
    def before_digest(self) -> str | None:
        """The SHA-256 of the content that is replaced; None if the plan did not read it."""
        return self._known()[1] if self.before is not None else None

    @property
    def sets_mode_alone(self) -> bool:
        """Whether the content stays as it is, and only the mode becomes another one."""
        return self.mode is not None and self.before_digest == self.after_digest

    def kept(self) -> tuple[StreamedContent | None, StreamedContent]:
        """Return the old and the new content, in the form that the history stores."""
        before = None if self.before is None else held(self.before, self._known()[1])
        return before, held(self.data, self._known()[0])

    def _known(self) -> list[str]:
        if not self._digests:
            self._digests.append(digest_of(self.data))
            if self.before is not None:
                self._digests.append(digest_of(self.before))
        return self._digests


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the entry at `path`; `entries` are all descendants of a directory, parents before children.

    `digests` are those of contents that the plan has read already, by path, each at the time of its `stat`.
    """

    path: str
    stat: Stat
    entries: tuple[Entry, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Move:
    """Rename `source` to `destination`; `over` is the replaced file, if any."""

    source: str
    destination: str
    stat: Stat
    over: Stat | None = None
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class MakeDirectory:
    """Make one directory; `incidental`: it is a missing parent of another path.

    `mode` and `metadata` are those of the earlier directory here, if an undo restores it.
    """

    path: str
    incidental: bool = False
    mode: int | None = None
    metadata: Metadata | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class MakeLink:
    """Make a symbolic link with text `target`; only undo and restore plan one."""

    path: str
    target: str
    metadata: Metadata | None = field(default=None, hash=False)


@dataclass(frozen=True, slots=True)
class SetMode:
    """Set the mode of the regular file `stat` to `mode`, which differs from its own in executable bits only.

    A file with other names is replaced by a `Write` instead, because they would change too.
    """

    path: str
    stat: Stat
    mode: int


Change = Write | Delete | Move | MakeDirectory | MakeLink | SetMode


@dataclass(frozen=True, slots=True)
class QuarantinedTree:
    """A quarantined tree, complete under `name`, which an undo restores with one rename.

    `stat` and `entries`, by their original paths, were found there and compared with the history.
    """

    name: str
    stat: Stat
    entries: tuple[Entry, ...] = ()


class Failure(NamedTuple):
    """Why a change failed, at which path, and how many of its entries stay changed."""

    code: str
    why: str
    path: str
    stay: int = 0


Failed = dict[str, Failure]


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """An answer to a call that may have failed in part; `code` is None if it counts as done.

    Without a `hint`, the code's own is used.
    """

    content: str
    data: dict[str, Any]
    code: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A tool's answer and the changes that it would make.

    `content` and `data` are for the agent, once the changes are made; `title` and `preview` are for the
    person who decides, and may have content that the agent may not read. `draw` makes the preview on demand,
    because most plans need no person.
    """

    content: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    title: str = ""
    draw: Callable[[], str] = field(default=str, compare=False)
    # The changes are independent: one that fails does not stop the others, and they may be made in parallel.
    apart: bool = False
    # Independent changes that are made last, by their paths, and only if the change at the
    # other path succeeded.
    after: Mapping[str, str] = field(default_factory=dict)
    # Makes the answer from the failures, by the change's path, and the call's name; None: `content` and
    # `data` are the answer.
    tell: Callable[[Failed, str], PartialAnswer] | None = field(default=None, compare=False)
    # Whether completed changes are rolled back if any change fails.
    atomic: bool = False
    # The files whose content the answer has, and the bytes of it, for limits on reading; None: no content.
    gives: Amount | None = None
    # Images and audio that the answer gives beside its text.
    media: tuple[Media, ...] = field(default=(), compare=False, repr=False)
    # Quarantined trees to restore, by path: restoring one makes all changes for which it has an entry.
    quarantined: Mapping[str, QuarantinedTree] = field(default_factory=dict, compare=False)
    # The digest of a call that goes to another server, whose changes no plan knows; "" for every other plan.
    forwards: str = ""

    @property
    def preview(self) -> str:
        """What the plan would change, as text for a person; made anew at each use."""
        return self.draw()

    def digest(self) -> str:
        """Return the SHA-256 of all changes and of the facts that they depend on, in hexadecimal."""
        import hashlib  # only what is recorded or asked about has a digest

        body = _encode([list(_facts(change)) for change in self.changes]) + self.forwards
        return hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()


def numbered(changes: tuple[Change, ...]) -> Iterator[tuple[Change, range]]:
    """Yield each change with the numbers of its items in the history."""
    first = 0
    for change in changes:
        count = items_of(change)
        yield change, range(first, first + count)
        first += count


def items_of(change: Change) -> int:
    """Return the number of a change's items in the history: each entry of a tree is one."""
    return 1 + len(change.entries) if isinstance(change, Delete | Move) else 1


def path_of(change: Change) -> str:
    """Return the path that a change starts from: a move's source, else its only path."""
    return change.source if isinstance(change, Move) else change.path


def paths_of(change: Change) -> Iterator[tuple[str, ...]]:
    """Yield the path of each item of a change; for a move, both ends."""
    if not isinstance(change, Delete | Move):
        yield (change.path,)
        return
    for path in (path_of(change), *(entry.path for entry in change.entries)):
        if isinstance(change, Move):
            yield path, change.destination + path[len(change.source) :]
        else:
            yield (path,)


def octal(mode: int) -> str:
    """Return a mode as people write it: `0755`."""
    return f"{mode:04o}"


_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def kept_mode(stat: Stat, metadata: Metadata | None) -> int | None:
    """Return the mode that the history stores: a file's set-id bits only together with its `owner`, the one
    field of the metadata that means the same on every store.
    """
    mode = stat.mode
    if mode is None or stat.kind == DIRECTORY or not mode & SET_ID:
        return mode
    return mode | _OWNED if metadata and "owner" in metadata else mode & ~SET_ID


def restored_mode(kept: int | None) -> int | None:
    """Return the mode to restore, without set-id bits if the owner is unknown, as in records of older
    versions.
    """
    if kept is None or kept & _OWNED:
        return None if kept is None else kept & ~_OWNED
    return kept & ~SET_ID


def _facts(change: Change) -> Iterator[Any]:
    yield type(change).__name__
    match change:
        case Write():
            yield from (change.path, change.after_digest, change.mode)
            if change.before is not None:
                yield change.before_digest
            else:
                yield change.stat and _what(change.stat)
        case Delete():
            yield from (change.path, _what(change.stat), [(e.path, _what(e.stat)) for e in change.entries])
        case Move():
            yield from (change.source, change.destination, _what(change.stat))
            yield from (change.over and _what(change.over), [(e.path, _what(e.stat)) for e in change.entries])
        case MakeDirectory():
            yield change.path
        case MakeLink():
            yield from (change.path, change.target)
        case SetMode():
            yield from (change.path, change.mode, change.stat.mode, _what(change.stat))


def _what(stat: Stat) -> tuple[Any, ...]:
    # A directory's own size, times and identity change with its entries, which are listed one by one.
    if stat.kind == DIRECTORY:
        return stat.kind, stat.mode
    return stat.kind, stat.size, stat.target, stat.identity
