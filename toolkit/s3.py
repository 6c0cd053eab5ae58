"""S3 and what speaks its protocol, as a confined tree: exact keys, conditional requests, few of them.

Every answer comes from a request made for it. Keys go to the store as they are, past every name that a
client library would rewrite. Directories are what keys lie below, or a marker: an empty object `name/`.
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from toolkit import paths
from toolkit.backends import BACKENDS, Missed, Traits
from toolkit.errors import CallError
from toolkit.plan import DIRECTORY, FILE, Delete, Entry, Move, Stat
from toolkit.stores import errors

PAGE = 1000  # keys in one answer, and in one request to delete
_PAGES = 10  # of a flat listing, before a directory is listed without what is below it
_MAX_KEY = 1024
_KEPT = 32 << 20  # bytes of content kept between planning and applying
_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")

Rows = dict[str, Stat]  # keys below a directory, relative to it


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
        return _level(self._flat)

    def spot(self, name: str) -> S3Spot:
        below = None
        if self._flat is not None:
            start = name + "/"
            below = {key[len(start) :]: stat for key, stat in self._flat.items() if key.startswith(start)}
        return S3Spot(paths.child(self._path, name), below=below)


class S3:
    """The keys below `root` (`bucket` or `bucket/prefix`) of an s3fs file system."""

    fold = False

    def __init__(self, fs: Any, root: str) -> None:
        self._fs = fs
        self.root = root.strip("/")
        self._bucket, _, prefix = self.root.partition("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._large: set[str] = set()
        self._honours: bool | None = None
        self._kept: dict[tuple[str, str], bytes] = {}
        self._find()
        endpoint = str(getattr(getattr(getattr(fs, "s3", None), "meta", None), "endpoint_url", "") or "")
        self.is_amazon = endpoint.endswith(".amazonaws.com")
        self.url = f"s3://{self.root}" if self.is_amazon else f"{endpoint}/{self.root}"

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
            found = dict(_level(rows))
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
        with _errors(spot.path):
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

    def may(self, spot: S3Spot, *, write: bool) -> bool:
        return True

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

    def create(self, spot: S3Spot, data: bytes, mode: int | None, temporary: str) -> None:
        """Put an object where none is, by a condition that the store keeps; without it, after a look."""
        with _errors(spot.path):
            if self._keeps_conditions():
                self._put(spot.path, data, IfNoneMatch="*")
            elif self._exact(spot.path) is not None:
                raise FileExistsError
            else:
                self._put(spot.path, data)

    def replace(self, spot: S3Spot, data: bytes, stat: Stat, mode: int | None, temporary: str) -> None:
        with _errors(spot.path, taken="path_changed"):
            if self._keeps_conditions():
                self._put(spot.path, data, IfMatch=stat.identity)
            else:
                self._same(Entry(spot.path, stat))
                self._put(spot.path, data)

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
            yield Missed(change.path, "it holds a key that no path names")

    def move(self, source: S3Spot, destination: S3Spot, change: Move) -> None:
        """Copy each object on condition that it is as judged and its new name free, then delete."""
        entries = (Entry(change.source, change.stat), *change.entries)
        if change.stat.kind == DIRECTORY:
            self._as_judged(change.source, change.entries)
        for entry in entries:
            target = destination.path + entry.path[len(change.source) :]
            over = change.over if entry.path == change.source else None
            with _errors(target, taken="path_changed" if over else "already_exists"):
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
        with _errors(spot.path):
            if self._exact(spot.path) is not None:
                raise FileExistsError
            self._put(spot.path + "/", b"")

    def remove_directory(self, spot: S3Spot) -> None:
        with _errors(spot.path):
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

    # ----------------------------------------------------------------- requests

    def _call(self, method: str, **arguments: Any) -> Any:
        from botocore.exceptions import BotoCoreError

        try:
            return self._fs.call_s3(method, Bucket=self._bucket, **arguments)
        except BotoCoreError as error:
            # No credentials, no such host: what the client found out before the store said anything.
            raise ConnectionError(errno.EIO, f"{type(error).__name__}") from error

    def _find(self) -> None:
        """Fail once, at the start, where there is no such bucket or no way to it."""
        try:
            self._page(paths.ROOT, "", limit=1)
        except CallError as error:
            why = "is not there" if error.code == "not_found" else f"cannot be opened: {error.message}"
            raise CallError(error.code, f"The bucket '{self._bucket}' {why}") from None

    def _key(self, path: str) -> str:
        try:
            key = self._prefix if path == paths.ROOT else self._prefix + path
            if len(key.encode("utf-8")) <= _MAX_KEY:
                return key
        except UnicodeEncodeError:
            raise CallError("path_invalid", "The path is no Unicode text, as keys of the store are") from None
        message = f"The path is longer than the {_MAX_KEY} bytes that a key of the store has"
        raise CallError("path_invalid", message)

    def _body(self, body: Any) -> bytes:
        from fsspec.asyn import sync

        async def whole() -> bytes:
            async with body as stream:
                return bytes(await stream.read())

        found: bytes = sync(self._fs.loop, whole)
        return found

    def _keep(self, path: str, tag: str, data: bytes) -> None:
        """A plan reads what the history keeps a moment later; then the tag says that it is the same."""
        self._kept[path, tag] = data
        while sum(map(len, self._kept.values())) > _KEPT or len(self._kept) > 10 * PAGE:
            del self._kept[next(iter(self._kept))]

    def _put(self, path: str, data: bytes, **condition: str) -> None:
        self._call("put_object", Key=self._key(path), Body=data, **condition)

    def _page(
        self, path: str, name: str, *, start: str = "", limit: int = PAGE, level: bool = False
    ) -> tuple[Rows, str]:
        """Keys below a directory that begin with `name`, relative to it, and a token to go on with."""
        directory = self._directory(path)
        more = {"ContinuationToken": start} if start else {}
        if level:
            more["Delimiter"] = "/"
        with _errors(path):
            answer = self._call("list_objects_v2", Prefix=directory + name, MaxKeys=limit, **more)
        rows = {row["Key"][len(directory) :]: _stat(row) for row in answer.get("Contents", ())}
        rows |= {
            row["Prefix"][len(directory) :]: Stat(DIRECTORY, 0) for row in answer.get("CommonPrefixes", ())
        }
        return rows, str(answer["NextContinuationToken"]) if answer.get("IsTruncated") else ""

    def _directory(self, path: str) -> str:
        return self._prefix if path == paths.ROOT else self._key(path) + "/"

    def _level(self, path: str) -> tuple[Rows, str]:
        return self._level_from(path, "")

    def _level_from(self, path: str, start: str) -> tuple[Rows, str]:
        rows, more = self._page(path, "", start=start, level=True)
        return dict(_level(rows)), more

    def _exact(self, path: str) -> Stat | None:
        """What is at a path, asking for nothing else: the object, else whether keys lie below."""
        parent, name = paths.parent(path), path.rpartition("/")[2]
        rows, more = self._page(parent, name, level=True)
        if name in rows:
            return rows[name]
        if name + "/" in rows or (more and self._page(path, "", limit=1)[0]):
            return self._really(path, Stat(DIRECTORY, 0))
        return None

    def _really(self, path: str, found: Stat | None) -> Stat | None:
        """Servers other than Amazon's may go on listing a directory for minutes after its last key went."""
        if found is None or found.kind != DIRECTORY or self.is_amazon:
            return found
        return found if self._page(path, "", limit=1)[0] else None

    def _no_file(self, path: str) -> None:
        found = self._exact(path)
        if found is not None and found.kind == DIRECTORY:
            raise IsADirectoryError

    def _tree(self, path: str) -> tuple[Rows, set[str]]:
        """All entries below a directory by their paths, and which directories have a marker.

        Among these is "//" where there are keys that no path names.
        """
        rows: Rows = {}
        start = ""
        while True:
            found, start = self._page(path, "", start=start)
            rows |= found
            if not start:
                markers = {"//"} if any(_is_nameless(key) for key in rows) else set()
                markers |= {(f"{path}/{key}").rstrip("/") for key in rows if key == "" or key.endswith("/")}
                return {paths.child(path, name): stat for name, stat in _entries(rows)}, markers

    def _as_judged(self, path: str, entries: tuple[Entry, ...]) -> set[str]:
        """Refuse a tree that is another by now; which of its directories have a marker."""
        now, markers = self._tree(path)
        judged = {entry.path: entry.stat for entry in entries}
        for each in (*judged, *now):
            if each not in now or each not in judged or not _same(judged[each], now[each]):
                above = now.get(paths.parent(each))
                if above is not None and above.kind == FILE:
                    raise _two_of_one_name(paths.parent(each))
                raise _changed(each)
        return markers

    def _same(self, entry: Entry) -> None:
        now = self._exact(entry.path)
        if now is None or not _same(entry.stat, now):
            raise _changed(entry.path)

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
            if _refused(error):
                self._same(entry)  # which of the two conditions it was
            raise
        tag = str(answer["CopyObjectResult"]["ETag"])
        if tag.strip('"') != entry.stat.identity.strip('"') and "-" not in tag + entry.stat.identity:
            # A store that passes over the condition copied something else: the old name keeps that.
            self._call("delete_object", Key=self._key(target))
            raise _changed(entry.path)

    def _delete_one(self, spot: S3Spot, change: Delete) -> None:
        self._same(Entry(change.path, change.stat))
        self._keep_parent(spot)
        with _errors(change.path, taken="path_changed"):
            condition = {"IfMatch": change.stat.identity} if self._keeps_conditions() else {}
            self._call("delete_object", Key=self._key(change.path), **condition)

    def _let_go(self, entries: tuple[Entry, ...]) -> Iterator[Missed]:
        """Delete what was copied, but not what is another by now."""
        root = entries[0]
        if root.stat.kind != DIRECTORY:
            condition = {"IfMatch": root.stat.identity} if self._keeps_conditions() else {}
            try:
                with _errors(root.path, taken="path_changed"):
                    self._call("delete_object", Key=self._key(root.path), **condition)
            except CallError as error:
                yield Missed(root.path, error.message)
            return
        now, markers = self._tree(root.path)
        changed = {e.path for e in entries[1:] if e.path not in now or not _same(e.stat, now[e.path])}
        yield from (Missed(path, "it changed meanwhile") for path in sorted(changed))
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
            with _errors(entries[first].path):
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
        with _errors(parent):
            self._put(parent + "/", b"")

    def _keeps_conditions(self) -> bool:
        """Whether this store keeps conditions or passes over them: found out once, by breaking one."""
        if self._honours is None:
            self._honours = self.is_amazon or self._tried()
        return self._honours

    def _tried(self) -> bool:
        path = f".ringfence/probe-{secrets.token_hex(8)}"
        self._put(path, b"", IfNoneMatch="*")
        try:
            self._put(path, b"", IfNoneMatch="*")
        except OSError as error:
            return _refused(error)
        else:
            return False
        finally:
            self._call("delete_object", Key=self._key(path))


def _entries(rows: Rows) -> Iterable[tuple[str, Stat]]:
    """Keys with the directories that they lie in, each once; keys with an empty name in them are left out."""
    found: Rows = {}
    for key, stat in rows.items():
        names = key.split("/")
        marker = names[-1] == ""
        if marker:
            names.pop()
        if any(name in ("", ".", "..") for name in names):
            continue
        for depth in range(1, len(names) + marker):
            found.setdefault("/".join(names[:depth]), Stat(DIRECTORY, 0))
        if not marker:
            found["/".join(names)] = stat
    return found.items()


def _is_nameless(key: str) -> bool:
    names = key.split("/")
    return any(name in ("", ".", "..") for name in (names if names[-1] else names[:-1]))


def _level(rows: Rows) -> list[tuple[str, Stat]]:
    """The first names of keys with what they are, by name; a file of the same name comes first."""
    found: Rows = {}
    for key, stat in rows.items():
        name, slash, _ = key.partition("/")
        if name in ("", ".", ".."):
            continue  # a marker of the directory itself, or a key that no path can name
        if not slash:
            found[name] = stat
        else:
            found.setdefault(name, Stat(DIRECTORY, 0))
    return sorted(found.items(), key=lambda row: row[0])


def _stat(row: dict[str, Any]) -> Stat:
    return Stat(FILE, row["Size"], row["LastModified"].timestamp(), identity=str(row["ETag"]))


def _same(judged: Stat, now: Stat) -> bool:
    return (judged.kind, judged.size, judged.identity) == (now.kind, now.size, now.identity)


def _changed(path: str) -> CallError:
    return CallError("path_changed", f"'{path}' changed after it was judged", where=path)


def _two_of_one_name(path: str) -> CallError:
    message = f"'{path}' is a file and a directory at once in this store"
    hint = "act on the file, then on what is below, by their own paths"
    return CallError("not_a_directory", message, where=path, hint=hint)


def _refused(error: BaseException) -> bool:
    """Whether a condition was not met; servers differ in how they spell it, and so does s3fs."""
    answer = getattr(error.__cause__, "response", None) or {}
    code = str(answer.get("Error", {}).get("Code"))
    return isinstance(error, FileExistsError) or code in _TAKEN


@contextmanager
def _errors(path: str, *, taken: str = "already_exists") -> Iterator[None]:
    """The store's errors as ours; `taken` is what it means that a condition was not met."""
    with errors(path):
        try:
            yield
        except OSError as error:
            if not _refused(error):
                raise
            if taken != "already_exists":
                raise _changed(path) from None
            raise FileExistsError from None
