"""S3 and what speaks its protocol, as a confined tree: exact keys, conditional requests, few of them.

Every answer comes from a request made for it. Keys go to the store as they are, past every name that a
client library would rewrite. Directories are what keys lie below, or a marker: an empty object `name/`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from toolkit import paths
from toolkit.backends import BACKENDS, Missed, StoreBase, Traits, check_content
from toolkit.errors import CallError
from toolkit.plan import DIRECTORY, FILE, Delete, Entry, Held, Move, Stat, whole
from toolkit.s3.keys import Rows, changed, errors, is_same, level_of, refused, two_of_one_name
from toolkit.s3.requests import PAGE, Requests
from toolkit.stores import in_parts

_PAGES = 10  # of a flat listing, before a directory is listed without what is below it
_KEPT = 32 << 20  # bytes of content kept between planning and applying


@dataclass(slots=True)
class S3Spot:
    """A key by its workspace-relative path, with what the request that looked it up has shown besides."""

    path: str
    parent: bool | None = None  # whether there is anything in the directory it is in
    alone: bool | None = None  # whether it is all there is in that directory
    below: Rows | None = None  # all that is below it, when a listing of more has shown that


class S3Folder:
    """A directory. What is below its directories comes from one flat listing where that is not too long."""

    def __init__(self, store: S3, spot: S3Spot) -> None:
        self._store = store
        self._path = spot.path
        self._flat = spot.below

    def scan(self) -> list[tuple[str, Stat]]:
        if self._flat is None:
            self._flat = self._store.flat(self._path)
        if self._flat is None:
            return self._store.listing(self._path)
        return level_of(self._flat)

    def spot(self, name: str) -> S3Spot:
        below = None
        if self._flat is not None:
            start = name + "/"
            below = {key[len(start) :]: stat for key, stat in self._flat.items() if key.startswith(start)}
        return S3Spot(paths.child(self._path, name), below=below)


class S3(Requests, StoreBase):
    """The keys below `root` (`bucket` or `bucket/prefix`) of an s3fs file system."""

    fold = False

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root)
        self._large: set[str] = set()
        self._kept: dict[tuple[str, str], bytes] = {}

    @property
    def traits(self) -> Traits:
        row = BACKENDS["s3"]
        if self._honours is False:
            return Traits(directories=row.directories, durable=row.durable)
        return row

    def close(self) -> None:
        """The client belongs to the file system."""

    # ------------------------------------------------------------------ looking

    def resolve(self, names: tuple[str, ...], *, follow: bool) -> S3Spot:
        path = paths.lexical(names)
        self._key(path)
        return S3Spot(path)

    def is_link(self, names: tuple[str, ...]) -> bool:
        return False

    def release(self, spot: S3Spot) -> None:
        """Nothing is held open."""

    def stat(self, spot: S3Spot) -> Stat | None:
        """From a listing of the directory it is in, which also shows whether that is there."""
        path = spot.path
        if path == paths.ROOT:
            return Stat(DIRECTORY, 0)
        parent, name = paths.parent(path), path.rpartition("/")[2]
        if parent not in self._large:
            rows, more = self._page(parent, "", level=True)
            found = dict(level_of(rows))
            if not more or name in found or any(other > name + "0" for other in found):
                spot.parent = bool(rows) or parent == paths.ROOT
                spot.alone = not (set(found) - {name}) and not more
                return self._really(path, found.get(name))
            self._large.add(parent)  # a hint for next time; it answers nothing by itself
        spot.parent, spot.alone = True, False
        return self._exact(path)

    def read(self, spot: S3Spot, limit: int | None = None, known: Stat | None = None) -> bytes:
        """The bytes of an object; of exactly the `known` one perhaps those that were read before."""
        kept = self._kept.pop((spot.path, known.identity), None) if known else None
        if kept is not None:
            return kept
        with errors(spot.path):
            try:
                answer = self._call("get_object", Key=self._key(spot.path))
            except FileNotFoundError:
                self._no_file(spot.path)
                raise
            if limit is not None and answer["ContentLength"] > limit:
                answer["Body"].close()
                message = f"'{spot.path}' is larger than {limit} bytes"
                raise CallError("too_large", message, where=spot.path)
            data = self._body(answer["Body"])
        self._keep(spot.path, str(answer["ETag"]), data)
        return data

    def chunks(self, spot: S3Spot, known: Stat | None = None) -> Iterator[bytes]:
        key = self._key(spot.path)

        def part(start: int, end: int) -> bytes:
            return self._body(self._call("get_object", Key=key, Range=f"bytes={start}-{end - 1}")["Body"])

        return in_parts(self, spot, part)

    @contextmanager
    def folder(self, spot: S3Spot) -> Iterator[S3Folder]:
        yield S3Folder(self, spot)

    def flat(self, path: str) -> Rows | None:
        """All keys below a directory, or None when they are too many for one directory's sake."""
        rows: Rows = {}
        after = ""
        for _ in range(_PAGES):
            found, after = self._page(path, "", start=after)
            rows |= found
            if not after:
                return rows
        return None

    def listing(self, path: str) -> list[tuple[str, Stat]]:
        found, more = self._level(path)
        while more:
            rows, more = self._level_from(path, more)
            found |= rows
        return sorted(found.items(), key=lambda row: row[0])

    def rights(self, spot: S3Spot, stat: Stat) -> tuple[bool, bool]:
        return True, True

    def changeable(self, spot: S3Spot, *, leaves: bool) -> bool:
        return True  # only trying tells

    def missing(self, spot: S3Spot) -> tuple[str, ...]:
        """The directories above that nothing is in. Raises CallError `not_a_directory` for a file there."""
        if spot.parent or paths.parent(spot.path) == paths.ROOT:
            return ()
        absent: list[str] = []
        path = paths.parent(spot.path)
        while path != paths.ROOT:
            found = self.stat(S3Spot(path))
            if found is not None and found.kind != DIRECTORY:
                raise CallError("not_a_directory", f"'{path}' is not a directory", where=path)
            if found is not None:
                break
            absent.append(path)
            path = paths.parent(path)
        return tuple(reversed(absent))

    # ----------------------------------------------------------------- changing

    def check(self, spot: S3Spot) -> None:
        """A key is the same key however long it is held."""

    def create(self, spot: S3Spot, data: bytes | Held, mode: int | None, temporary: str) -> None:
        """Put an object where none is, by a condition that the store keeps; without it, after a look."""
        content = whole(data)
        with errors(spot.path):
            if self._keeps_conditions():
                self._put(spot.path, content, IfNoneMatch="*")
            elif self._exact(spot.path) is not None:
                raise FileExistsError
            else:
                self._put(spot.path, content)

    def replace(
        self,
        spot: S3Spot,
        data: bytes | Held,
        stat: Stat,
        mode: int | None,
        temporary: str,
        before: bytes | None = None,
    ) -> None:
        content = whole(data)
        check_content(self, spot, before)
        with errors(spot.path, taken="path_changed"):
            if self._keeps_conditions():
                self._put(spot.path, content, IfMatch=stat.identity)
            else:
                self._same(Entry(spot.path, stat))
                self._put(spot.path, content)

    def remove(self, spot: S3Spot, change: Delete, temporary: str) -> Iterator[str | Missed]:
        """Delete exactly the keys that were listed, after a look that they are as they were."""
        if change.stat.kind != DIRECTORY:
            self._delete_one(spot, change)
            yield change.path
            return
        markers = self._as_judged(change.path, change.entries)
        self._keep_parent(spot)
        doomed = [*reversed(change.entries), Entry(change.path, change.stat)]
        yield from (e.path for e in doomed if e.stat.kind == DIRECTORY and e.path not in markers)
        yield from self._delete_all([e for e in doomed if e.stat.kind != DIRECTORY or e.path in markers])
        if "//" in markers:
            yield Missed(change.path, "it holds a key that no path names", "directory_not_empty")

    def move(self, source: S3Spot, destination: S3Spot, change: Move) -> None:
        """Copy each object on condition that it is as judged and its new name free, then delete."""
        entries = (Entry(change.source, change.stat), *change.entries)
        if change.stat.kind == DIRECTORY:
            self._as_judged(change.source, change.entries)
        for entry in entries:
            target = destination.path + entry.path[len(change.source) :]
            over = change.over if entry.path == change.source else None
            with errors(target, taken="path_changed" if over else "already_exists"):
                if entry.stat.kind == DIRECTORY:
                    self._put(target + "/", b"")
                else:
                    self._copy(entry, target, over)
        self._keep_parent(source)
        missed = list(self._let_go(entries))
        if missed:
            message = f"'{missed[0].path}' was copied and not removed: {missed[0].why}"
            raise CallError("partial_failure", message, where=missed[0].path)

    def make_directory(self, spot: S3Spot) -> None:
        with errors(spot.path):
            if self._exact(spot.path) is not None:
                raise FileExistsError
            self._put(spot.path + "/", b"")

    def remove_directory(self, spot: S3Spot) -> None:
        with errors(spot.path):
            if self._level(spot.path)[0]:
                message = f"'{spot.path}' is not empty"
                raise CallError("directory_not_empty", message, where=spot.path)
            self._keep_parent(spot)
            self._call("delete_object", Key=self._key(spot.path + "/"))

    def make_link(self, spot: S3Spot, target: str) -> None:
        raise CallError("io_error", "This store has no links")

    def set_mode(self, spot: S3Spot, mode: int) -> None:
        """A store without modes keeps none."""

    def sweep(self, spot: S3Spot, temporary: str) -> None:
        """A store writes one object at a time and leaves no temporary."""

    # ------------------------------------------------------------------- inside

    def _keep(self, path: str, tag: str, data: bytes) -> None:
        """A plan reads what the history keeps a moment later; then the tag says that it is the same."""
        self._kept[path, tag] = data
        while sum(map(len, self._kept.values())) > _KEPT or len(self._kept) > 10 * PAGE:
            del self._kept[next(iter(self._kept))]

    def _no_file(self, path: str) -> None:
        found = self._exact(path)
        if found is not None and found.kind == DIRECTORY:
            raise IsADirectoryError

    def _as_judged(self, path: str, entries: tuple[Entry, ...]) -> set[str]:
        """Refuse a tree that is another by now; which of its directories have a marker."""
        now, markers = self._tree(path)
        judged = {entry.path: entry.stat for entry in entries}
        for each in (*judged, *now):
            if each not in now or each not in judged or not is_same(judged[each], now[each]):
                above = now.get(paths.parent(each))
                if above is not None and above.kind == FILE:
                    raise two_of_one_name(paths.parent(each))
                raise changed(each)
        return markers

    def _same(self, entry: Entry) -> None:
        now = self._exact(entry.path)
        if now is None or not is_same(entry.stat, now):
            raise changed(entry.path)

    def _copy(self, entry: Entry, target: str, over: Stat | None) -> None:
        condition: dict[str, str] = {}
        if self._keeps_conditions():
            condition = {"IfMatch": over.identity} if over else {"IfNoneMatch": "*"}
        elif over is None and self._exact(target) is not None:
            raise FileExistsError
        if over is not None:
            self._same(Entry(target, over))  # not every store keeps the condition on a copy
            condition = {}
        try:
            answer = self._call(
                "copy_object",
                Key=self._key(target),
                CopySource={"Bucket": self._bucket, "Key": self._key(entry.path)},
                CopySourceIfMatch=entry.stat.identity,
                **condition,
            )
        except OSError as error:
            if refused(error):
                self._same(entry)  # which of the two conditions it was
            raise
        tag = str(answer["CopyObjectResult"]["ETag"])
        if tag.strip('"') != entry.stat.identity.strip('"') and "-" not in tag + entry.stat.identity:
            # A store that passes over the condition copied something else: the old name keeps that.
            self._call("delete_object", Key=self._key(target))
            raise changed(entry.path)

    def _delete_one(self, spot: S3Spot, change: Delete) -> None:
        self._same(Entry(change.path, change.stat))
        self._keep_parent(spot)
        with errors(change.path, taken="path_changed"):
            condition = {"IfMatch": change.stat.identity} if self._keeps_conditions() else {}
            self._call("delete_object", Key=self._key(change.path), **condition)

    def _let_go(self, entries: tuple[Entry, ...]) -> Iterator[Missed]:
        """Delete what was copied, but not what is another by now."""
        root = entries[0]
        if root.stat.kind != DIRECTORY:
            condition = {"IfMatch": root.stat.identity} if self._keeps_conditions() else {}
            try:
                with errors(root.path, taken="path_changed"):
                    self._call("delete_object", Key=self._key(root.path), **condition)
            except CallError as error:
                yield Missed(root.path, error.message, error.code)
            return
        now, markers = self._tree(root.path)
        changed = {e.path for e in entries[1:] if e.path not in now or not is_same(e.stat, now[e.path])}
        yield from (Missed(path, "it changed meanwhile", "path_changed") for path in sorted(changed))
        doomed = [e for e in reversed(entries) if e.path not in changed]
        doomed = [e for e in doomed if e.stat.kind != DIRECTORY or e.path in markers]
        yield from (step for step in self._delete_all(doomed) if isinstance(step, Missed))

    def _delete_all(self, entries: list[Entry]) -> Iterator[str | Missed]:
        """Delete by the batch, and read what the store says of each."""
        for first in range(0, len(entries), PAGE):
            keys = {
                self._key(entry.path + "/" * (entry.stat.kind == DIRECTORY)): entry.path
                for entry in entries[first : first + PAGE]
            }
            with errors(entries[first].path):
                objects = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
                answer = self._call("delete_objects", Delete=objects)
            failed = {row["Key"]: str(row.get("Message") or row["Code"]) for row in answer.get("Errors", ())}
            for key, path in keys.items():
                yield Missed(path, failed[key]) if key in failed else path

    def _keep_parent(self, spot: S3Spot) -> None:
        """A directory that is about to lose its last key stays, as it does on disk, by a marker."""
        parent = paths.parent(spot.path)
        if parent == paths.ROOT or spot.alone is False:
            return
        with errors(parent):
            self._put(parent + "/", b"")
