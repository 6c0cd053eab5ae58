"""Intent of a plan, recorded before its changes are made: an item for each path, with the old content.

Reads, and changes nothing. Large content is read piece by piece, or stays in the quarantine.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext

from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.history.records import UNSEEN, Item
from ringfence.toolkit.plan.changes import (
    DIRECTORY,
    FILE,
    LINK,
    SET_ID,
    Change,
    Delete,
    Entry,
    MakeDirectory,
    MakeLink,
    Move,
    QuarantinedTree,
    SetMode,
    Stat,
    Write,
    kept_mode,
    octal,
)
from ringfence.toolkit.plan.content import StreamedContent, digest_of, hashed, held, length
from ringfence.toolkit.plan.metadata import Metadata, packed
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.protected_paths import QUARANTINED_PREFIX
from ringfence.toolkit.storage.backend import Spot, Tree, at, traits_at
from ringfence.toolkit.storage.guarantees import MAX_FILE, is_restorable, is_streamed
from ringfence.toolkit.storage.read_ahead import ReadAhead, together_from

_MANY = 64  # from this many files on, a deleted tree stays in the quarantine as it is


class Intent:
    """Makes the items of changes. `spots` are the handles of the judged places; `progress` counts each stored
    entry.

    `quarantined` are the quarantined trees to restore, by path: their contents need no copy.
    """

    def __init__(
        self,
        backend: Tree,
        spots: dict[str, Spot],
        progress: Progress,
        quarantined: Mapping[str, QuarantinedTree],
    ) -> None:
        self._backend = backend
        self._spots = spots
        self._progress = progress
        self._quarantine_names = {top: tree.name for top, tree in quarantined.items()}
        self._in_trees = set(quarantined).union(
            entry.path for tree in quarantined.values() for entry in tree.entries
        )
        self._names: dict[int, str] = {}
        self._staying: dict[int, bool] = {}
        self._ahead: ReadAhead | None = None
        self._streams: dict[str, StreamedContent] = {}
        self._moved: dict[str, bytes | StreamedContent | None] = {}  # read before the transaction
        self.digests: dict[str, str] = {}

    def items(self, change: Change) -> Iterator[Item]:
        """Yield the steps of a change for the history, in the order in which they are carried out."""
        match change:
            case Write():
                self._count_step()
                before, after = change.kept()
                metadata = self._metadata(change.path, change.stat)
                yield Item(
                    kind="write",
                    path=change.path,
                    type=FILE,
                    before=before,
                    after=after.digest if change.path in self._in_trees else after,
                    mode=kept_mode(change.stat, metadata) if change.stat else None,
                    size=length(change.before) if change.before is not None else _size_of_file(change.stat),
                    grown=length(change.data),
                    identity=change.stat.identity if change.stat else "",
                    temporary=None if self._restored_with_tree(change) else self.name(change),
                    metadata=packed(metadata),
                )
            case Delete():
                name, stays = self.name(change), self.stays(change)
                with self._ahead_of((Entry(change.path, change.stat), *change.entries)) as entries:
                    for entry in entries:
                        self._count_step()
                        yield self._deletion(entry, name, change.digests, stays)
            case Move():
                self._count_step()
                yield self._move(change)
                for entry in change.entries:
                    self._count_step()
                    target = change.destination + entry.path[len(change.source) :]
                    yield Item("move", entry.path, entry.stat.kind, path2=target, size=entry.stat.size or 0)
            case MakeDirectory():
                self._count_step()
                yield Item(
                    "directory",
                    change.path,
                    DIRECTORY,
                    mode=change.mode,
                    temporary=self._quarantine_names.get(change.path),
                    metadata=packed(change.metadata),
                )
            case MakeLink():
                self._count_step()
                fields = packed(change.metadata)
                yield Item("link", change.path, LINK, target=change.target, metadata=fields)
            case SetMode():
                self._count_step()
                old = change.stat.mode or 0
                yield Item(
                    kind="mode",
                    path=change.path,
                    type=FILE,
                    before=octal(old),
                    after=octal(change.mode),
                    mode=old,
                    identity=change.stat.identity,
                )

    def _restored_with_tree(self, change: Write) -> bool:
        """Whether the change is in a directory that is restored as a whole, so needs no temporary name."""
        return change.path in self._in_trees and change.path not in self._quarantine_names

    def _count_step(self) -> None:
        self._progress.check()  # the intent is not committed yet
        self._progress.step("keeping")

    def _deletion(self, entry: Entry, temporary: str, digests: Mapping[str, str], stays: bool) -> Item:
        stat = entry.stat
        before = self._stored_content(entry, digests, stays) if stat.kind == FILE else None
        # A quarantined entry has its metadata on it; set-id bits are stored only together with the owner.
        here = stays and not (stat.mode or 0) & SET_ID
        metadata = None if here else self._metadata(entry.path, stat)
        return Item(
            kind="delete",
            path=entry.path,
            type=stat.kind,
            before=before,
            mode=kept_mode(stat, metadata),
            target=stat.target,
            size=length(before) if isinstance(before, bytes | StreamedContent) else _size_of_file(stat),
            identity=stat.identity,
            temporary=temporary,
            metadata=packed(metadata),
        )

    def _move(self, change: Move) -> Item:
        content: StreamedContent | str | None = None
        known = None
        if change.stat.kind == FILE:
            source = change.source
            found = self._moved.pop(source) if source in self._moved else self._content(source, change.stat)
            known = None if found is None else digest_of(found)
            # Large content that moves is not stored, too: it exists at its new path.
            content = held(found, known) if known is not None and isinstance(found, bytes) else known
        self.digests[change.source] = known or UNSEEN
        replaced = change.over if change.over is not None and change.over.kind == FILE else None
        over = self._content(change.destination, replaced) if replaced else None
        metadata = self._metadata(change.destination, change.over)
        return Item(
            kind="move",
            path=change.source,
            type=change.stat.kind,
            path2=change.destination,
            before=over,
            after=content,
            mode=kept_mode(change.over, metadata) if change.over else None,
            target=change.over.target if change.over else None,
            size=length(over) if over is not None else (replaced.size or 0) if replaced else 0,
            grown=change.stat.size or 0,
            identity=change.stat.identity,
            metadata=packed(metadata),
        )

    def stays(self, change: Delete) -> bool:
        """Whether a deleted entry stays in the quarantine as it is, at the cost of one rename."""
        if id(change) not in self._staying:
            self._staying[id(change)] = self._stays(change)
        return self._staying[id(change)]

    def _stays(self, change: Delete) -> bool:
        if not is_streamed(change.path, self._backend.traits):
            return False
        files = [entry.stat for entry in (Entry(change.path, change.stat), *change.entries)]
        size = sum(stat.size or 0 for stat in files if stat.kind == FILE)
        return size > LARGE or len(files) > _MANY

    def _stored_content(
        self, entry: Entry, digests: Mapping[str, str], stays: bool
    ) -> bytes | StreamedContent | str | None:
        """Return a deleted file's content, or only its digest if the file itself stays in the quarantine.

        None for a file too large to store, to whose loss a person has agreed.
        """
        # A write through another name of the same file would change the quarantined one, too.
        alone = stays and entry.stat.links <= 1
        if alone and entry.path in digests:
            return digests[entry.path]
        if not is_restorable(entry.path, entry.stat, self._backend.traits):
            return None
        if not stays:
            return self._read(entry.path, entry.stat)
        content = self._stream(entry.path, entry.stat)
        return content.digest if alone else content

    def read_large_contents(self, numbered: list[tuple[Change, int]]) -> None:
        """Read large content before the intent's transaction, so that other calls need not wait for it."""
        for change, _ in numbered:
            if isinstance(change, Delete) and self.stays(change):
                for entry in (Entry(change.path, change.stat), *change.entries):
                    self._progress.check()
                    if entry.stat.kind == FILE and entry.path not in change.digests:
                        self._stream(entry.path, entry.stat)
            elif isinstance(change, Move) and change.stat.kind == FILE:
                # Small files on a disk are read fast enough within the transaction.
                small = (change.stat.size or 0) <= LARGE and is_streamed(change.source, self._backend.traits)
                if not small:
                    self._moved[change.source] = self._content(change.source, change.stat)

    def _content(self, path: str, judged: Stat) -> bytes | StreamedContent | None:
        """Return a file's content, as a stream if it is large; None if it is too large to store."""
        if not is_restorable(path, judged, self._backend.traits):
            return None
        if is_streamed(path, self._backend.traits) and (judged.size or 0) > LARGE:
            return self._stream(path, judged)
        return self._read(path, judged)

    def _stream(self, path: str, judged: Stat) -> StreamedContent:
        """Return a file's content as a stream: read now for its digest and again when it is stored."""

        def chunks() -> Iterator[bytes]:
            with self._at(path) as spot:
                yield from self._backend.chunks(spot, judged)

        if path not in self._streams:
            self._streams[path] = StreamedContent(*hashed(self._checking_for_cancellation(chunks())), chunks)
        return self._streams[path]

    def _checking_for_cancellation(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the pieces, checking for cancellation: reading a large file takes long, and nothing is
        changed yet.
        """
        for piece in pieces:
            self._progress.check()
            yield piece

    def _ahead_of(self, entries: tuple[Entry, ...]) -> AbstractContextManager[Iterator[Entry]]:
        """Return a context with the entries, whose contents are read in their order: several at a time, where
        the store answers several requests at once.
        """
        at_once = traits_at(self._backend, entries[0].path).reads_at_once
        if at_once == 1 or len(entries) == 1:
            return nullcontext(iter(entries))
        self._ahead = ReadAhead(
            iter(entries),
            lambda entry: self._read_now(entry.path, entry.stat),
            at_once=at_once,
            limit=MAX_FILE,
            noted=[],
            together=together_from(self._backend, MAX_FILE),
        )
        return self._ahead

    def _read(self, path: str, judged: Stat) -> bytes:
        turn = None if self._ahead is None else self._ahead.turn
        if self._ahead is not None and turn is not None and turn.path == path:
            return self._ahead.content(turn)
        return self._read_now(path, judged)

    def _read_now(self, path: str, judged: Stat) -> bytes:
        with self._at(path) as spot:
            return self._backend.read(spot, MAX_FILE, judged)

    def _metadata(self, path: str, judged: Stat | None) -> Metadata | None:
        if judged is None:
            return None
        if self._ahead is not None and (sent := self._ahead.metadata(path)) is not None:
            return sent
        with self._at(path) as spot:
            return self._backend.metadata(spot, judged)

    def _at(self, path: str) -> AbstractContextManager[Spot]:
        # A handle of a path that was not judged is released at once: a tree may need more than a process has.
        return nullcontext(self._spots[path]) if path in self._spots else at(self._backend, path)

    def name(self, change: Change) -> str:
        """Return the temporary or quarantine name of a change; the same change always gets the same name."""
        if isinstance(change, Write) and change.path in self._quarantine_names:
            return self._quarantine_names[change.path]
        if id(change) not in self._names:
            begin = QUARANTINED_PREFIX if isinstance(change, Delete) and self.stays(change) else ".ringfence-"
            self._names[id(change)] = f"{begin}{secrets.token_hex(8)}"
        return self._names[id(change)]


def _size_of_file(stat: Stat | None) -> int:
    return (stat.size or 0) if stat is not None and stat.kind == FILE else 0
