"""What a tool answers with: the text and fields to give, and the primitive changes it would make.

Values only. Nothing here opens, reads or changes anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ringfence.toolkit.plan.content import StreamedContent, digest_of, held
from ringfence.toolkit.plan.metadata import Metadata

FILE, DIRECTORY, LINK, OTHER = "file", "directory", "link", "other"
SET_ID = 0o6000  # the bits of a mode that let a program run as its owner or group
_OWNED = 0o200000  # in a mode that the history keeps: whose the file was is known


class Stat(NamedTuple):
    """What is known of an entry. Times are POSIX seconds, sizes bytes; None is "the store does not know".

    `identity` is a text that differs whenever the entry may be another one or hold other content.
    """

    kind: str
    size: int | None = None
    modified: float | None = None
    accessed: float | None = None
    mode: int | None = None
    links: int = 1
    target: str | None = None
    identity: str = ""


class Entry(NamedTuple):
    """One name in a tree: its canonical workspace-relative path and what is there."""

    path: str
    stat: Stat

    @property
    def name(self) -> str:
        """The last name of the entry's path."""
        return self.path.rpartition("/")[2]


class Place(NamedTuple):
    """A path argument, resolved once.

    `named` is the normalised argument, `real` the canonical path it leads to; `stat` is None where
    nothing is. `link` says that the last name is a link, whether or not it was followed.
    """

    argument: str
    named: str
    real: str
    stat: Stat | None
    link: bool = False

    @property
    def kind(self) -> str | None:
        """The kind of what exists there; None if nothing does."""
        return self.stat.kind if self.stat else None


@dataclass(frozen=True, slots=True)
class Write:
    """Put `data` at `path`; `before` and `stat` are what it replaces, None where nothing is yet.

    `before` alone is None where nothing here can keep so much. `metadata` are fields to put on; None: what is
    replaced keeps its own.
    """

    path: str
    data: bytes | StreamedContent
    before: bytes | StreamedContent | None = None
    stat: Stat | None = None
    mode: int | None = None
    metadata: Metadata | None = field(default=None, hash=False)
    _digests: list[str] = field(default_factory=list, init=False, repr=False, compare=False)

    # Asked for again by the answer, the plan, the history and what the session has seen.

    @property
    def after_digest(self) -> str:
        """The SHA-256 of the new content, in hexadecimal."""
        return self._known()[0]

    @property
    def before_digest(self) -> str | None:
        """The SHA-256 of the content that is replaced; None if the plan did not read it."""
        return self._known()[1] if self.before is not None else None

    def kept(self) -> tuple[StreamedContent | None, StreamedContent]:
        """What it replaces and what it puts there, as the history keeps them."""
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
    """Remove what is at `path`; `entries` are all descendants of a directory, parents before children.

    `digests` are of the contents that the plan has read already, by path, each as `stat` says it was.
    """

    path: str
    stat: Stat
    entries: tuple[Entry, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class Move:
    """Rename `source` to `destination`; `over` is the file that is replaced there, if any."""

    source: str
    destination: str
    stat: Stat
    over: Stat | None = None
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class MakeDirectory:
    """Make one directory; `incidental` if it is a parent made on the way.

    `mode` and `metadata` are of the one that was here before.
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


Change = Write | Delete | Move | MakeDirectory | MakeLink


@dataclass(frozen=True, slots=True)
class QuarantinedTree:
    """What a deletion left whole among the hidden, as `name`, and an undo moves back with one rename.

    `stat` and `entries`, by the paths they get back, are what was found there and held against the history.
    """

    name: str
    stat: Stat
    entries: tuple[Entry, ...] = ()


class Failure(NamedTuple):
    """Why a change was not made, at which path, and how many of its entries changed all the same."""

    code: str
    why: str
    path: str
    stay: int = 0


Failed = dict[str, Failure]


@dataclass(frozen=True, slots=True)
class PartialAnswer:
    """An answer for a call of which a part may have failed; `code` is None where it counts as done.

    Without a `hint` the code's own stands.
    """

    content: str
    data: dict[str, Any]
    code: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A tool's answer before anything has happened.

    `content` and `data` are what the agent gets once the changes are made; `title` and `preview`
    are for the person who is asked, and may show what the agent may not read. `draw` makes the
    preview; most plans are never looked at by a person.
    """

    content: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    title: str = ""
    draw: Callable[[], str] = field(default=str, compare=False)
    # Changes that stand apart: one that fails does not stop the others, and they may be made side by side.
    apart: bool = False
    # Of changes that stand apart those that are made last, by their paths, and only if the change at the
    # other path was made.
    after: Mapping[str, str] = field(default_factory=dict)
    # The answer once it is known what failed, by the change's path, and the call's name; None: `content` and
    # `data` stand.
    tell: Callable[[Failed, str], PartialAnswer] | None = field(default=None, compare=False)
    # Whether what was done is taken back when anything fails.
    atomic: bool = False
    # By path, what is moved back there: that makes all changes for which it has an entry.
    caught: Mapping[str, QuarantinedTree] = field(default_factory=dict, compare=False)

    @property
    def preview(self) -> str:
        """What the plan would change, as text for a person; made anew at each use."""
        return self.draw()

    def digest(self) -> str:
        """SHA-256 over everything the changes would do and everything they rest on."""
        body = _encode([list(_facts(change)) for change in self.changes])
        return hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()


def numbered(changes: tuple[Change, ...]) -> Iterator[tuple[Change, range]]:
    """Each change with the numbers that the history gives its items."""
    first = 0
    for change in changes:
        count = items_of(change)
        yield change, range(first, first + count)
        first += count


def items_of(change: Change) -> int:
    """How many items the history has of a change: each entry of a tree is one."""
    return 1 + len(change.entries) if isinstance(change, Delete | Move) else 1


def path_of(change: Change) -> str:
    """Return the path that a change starts from: a move's source, else its only path."""
    return change.source if isinstance(change, Move) else change.path


def paths_of(change: Change) -> Iterator[tuple[str, ...]]:
    """The path of each item of a change; of a move, both ends."""
    if not isinstance(change, Delete | Move):
        yield (change.path,)
        return
    for path in (path_of(change), *(entry.path for entry in change.entries)):
        if isinstance(change, Move):
            yield path, change.destination + path[len(change.source) :]
        else:
            yield (path,)


_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def kept_mode(stat: Stat, metadata: Metadata | None) -> int | None:
    """The mode as the history keeps it: a file's set-id bits only with its `owner`, the one field of the
    metadata that means the same on every store."""
    mode = stat.mode
    if mode is None or stat.kind == DIRECTORY or not mode & SET_ID:
        return mode
    return mode | _OWNED if metadata and "owner" in metadata else mode & ~SET_ID


def restored_mode(kept: int | None) -> int | None:
    """The mode that a file gets back. What older versions kept does not say whose the file was."""
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
            yield from (change.path, _what(change.stat), [[e.path, _what(e.stat)] for e in change.entries])
        case Move():
            yield from (change.source, change.destination, _what(change.stat))
            yield from (change.over and _what(change.over), [[e.path, _what(e.stat)] for e in change.entries])
        case MakeDirectory():
            yield change.path
        case MakeLink():
            yield from (change.path, change.target)


def _what(stat: Stat) -> list[Any]:
    # A directory's own size, times and identity follow its entries, which are listed one by one.
    if stat.kind == DIRECTORY:
        return [stat.kind, stat.mode]
    return [stat.kind, stat.size, stat.target, stat.identity]
