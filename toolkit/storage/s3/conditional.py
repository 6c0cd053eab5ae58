"""Conditional changes: a key changes only in its judged version; a lost reply is resolved by a look.

Where the server ignores a kind of condition, the key is checked right before the change, and `keeps` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.ambiguous_outcome import no_reply, was_made
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.s3.conditions import Conditions
from ringfence.toolkit.storage.s3.keys import answered, is_bad_class, is_race, is_same, not_built, refused
from ringfence.toolkit.storage.s3.metadata import (
    OPTIONAL,
    TAGS,
    attached,
    named,
    not_kept,
    wants_tags,
    with_tags,
)
from ringfence.toolkit.storage.s3.sends import Sends, counted
from ringfence.toolkit.storage.store_base import StoreBase

_IN_MEMORY = 32 << 20  # bytes of a copied object in memory; larger ones go through a file
_PIECE = 1 << 20
_MOST = 10_000  # objects whose metadata is remembered
Look = Callable[[], str | None]


class Made(NamedTuple):
    """A new object: its tag, and the metadata fields that it does not have."""

    tag: str
    not_kept: NotKept


class Conditional(Conditions, StoreBase):
    """The writing methods of the S3 backend, with conditions where the server keeps them."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root)
        self._attached: dict[tuple[str, str], Metadata] = {}

    def change(self, path: str, method: str, look: Look, **arguments: Any) -> Any:
        """Send a request that changes something, until a final reply arrives; returns the reply or a tag.

        If the client sent it more than once and it is refused, an earlier send may have taken effect: `look`
        returns the tag of the object if the object is what the request leaves, else None. OSError for a
        refusal, CallError `no_reply` or an error of the look.
        """
        with counted() as sends:
            try:
                return self._call_again_in_a_race(sends, method, **arguments)
            except CallError:
                raise
            except Exception as error:
                if sends.count and not answered(error):
                    raise no_reply(path) from error
                if not_built(error):
                    self.forget()
                gone = isinstance(error, FileNotFoundError)
                if sends.count < 2 or not (gone or refused(error)):
                    raise
                refusal = error
        try:
            tag = look()
        except OSError as error:
            raise no_reply(path) from error
        if tag is None:
            raise refusal
        self.note_resolved(path)
        return tag

    def _call_again_in_a_race(self, sends: Sends, method: str, **arguments: Any) -> Any:
        """Send again where Amazon refuses one of two concurrent requests without checking its condition."""
        try:
            return self._call(method, **arguments)
        except OSError as error:
            if not is_race(error):
                raise
        sends.count -= 1  # the refused one is known to have had no effect
        if hasattr(arguments.get("Body"), "seek"):
            arguments["Body"].seek(0)
        return self._call(method, **arguments)

    # ----------------------------------------------------------------- writing

    def put(
        self, path: str, data: bytes | IO[bytes], over: Stat | None, metadata: Metadata | None = None
    ) -> Made:
        """Create an object, or replace the judged one (`over`).

        FileExistsError or OSError for a failed condition.
        """
        condition = {}
        self.keeps(
            "content", "create" if over is None else "replace"
        )  # probe both at once, before the change
        if over is not None:
            if self.keeps("replace"):
                condition = {"IfMatch": over.identity}
            else:
                self.same(path, over)
        elif self.keeps("create"):
            condition = {"IfNoneMatch": "*"}
        elif self._exact(path) is not None:
            raise FileExistsError

        def look() -> str | None:
            """Return the tag of the object if it is the one that the request creates."""
            return self._found(path, digest_of(data), over)

        fields, refusals = named(metadata), []
        while True:
            try:
                more = {"Key": self._key(path), "Body": data, **condition, **fields}
                answer = self.change(path, "put_object", look, **more)
                break
            except OSError as error:
                field = _refused_field(error, fields)
                if field is None:
                    raise
                del fields[field]
                refusals.append(OPTIONAL[field])
        if not self.keeps("content") and (self._digest(path) or ("", ""))[1] != digest_of(data):
            raise CallError(
                "io_error", f"'{path}' does not have the content that was written to it", where=path
            )
        return _made(answer, metadata, tuple(refusals), copied=False)

    def copy(self, path: str, stat: Stat, target: str, over: Stat | None) -> Made:
        """Copy the judged object to a free key, or over the judged object there (`over`).

        Where the server ignores the conditions of a copy, the content is downloaded and sent by a conditional
        PUT.
        """
        if not self.keeps("copy from", "copy over" if over else "copy to"):
            with self._opened(path, stat) as (content, metadata):
                return self.put(target, content, over, metadata)

        def look() -> str | None:
            """Return the tag of the object if it is the one that the request creates."""
            source = self._digest(path)
            if source is None or not _same_tag(source[0], stat.identity):
                raise path_changed(path)
            return self._found(target, source[1], over)

        wanted = {
            "Key": self._key(target),
            "CopySource": {"Bucket": self._bucket, "Key": self._key(path)},
            "CopySourceIfMatch": stat.identity,
            **({"IfMatch": over.identity} if over else {"IfNoneMatch": "*"}),
            **self._named_apart(path, stat.identity),
        }
        lost: tuple[str, ...] = ()
        try:
            try:
                answer = self.change(target, "copy_object", look, **wanted)
            except PermissionError:  # perhaps only of tags
                answer = self.change(target, "copy_object", look, **wanted, TaggingDirective="REPLACE")
                lost = (TAGS,)
        except OSError as error:
            if refused(error):
                self.same(path, stat)  # which of the two conditions failed
            raise
        return _made(answer, self._attached.get((path, _plain(stat.identity))), lost, copied=True)

    def _found(self, path: str, digest: str, over: Stat | None) -> str | None:
        """Return the tag of the object at `path` if it has the written content.

        None if it was not written.

        CallError `outcome_unknown` where that cannot be decided.
        """
        now = self._digest(path)
        ours = now is not None and now[1] == digest
        # The name was taken before, else its content would be the judged one.
        before = now is not None and (over is None or _same_tag(now[0], over.identity))
        return now[0] if was_made(path, ours=ours, as_judged=before) and now is not None else None

    def _digest(self, path: str) -> tuple[str, str] | None:
        """Return tag and digest of an object; None if there is none."""
        try:
            answer = self._call("get_object", Key=self._key(path))
        except FileNotFoundError:
            return None
        digest = sha256()
        self._take(answer, digest.update)
        return str(answer["ETag"]), digest.hexdigest()

    @contextmanager
    def _opened(self, path: str, stat: Stat) -> Iterator[tuple[bytes | IO[bytes], Metadata]]:
        """Yield the content of exactly the judged object, with its metadata."""
        answer = self._get(path, stat)
        self.note_attached(path, answer)
        if answer["ContentLength"] <= _IN_MEMORY:
            yield self._body(answer["Body"]), self.metadata_of(path, stat)
            return
        with TemporaryFile() as file:
            self._take(answer, file.write)
            file.seek(0)
            yield file, self.metadata_of(path, stat)

    def _take(self, answer: Any, use: Callable[[bytes], Any]) -> None:
        """Read the body of a reply in pieces."""
        from fsspec.asyn import sync

        async def take() -> None:
            async with answer["Body"] as stream:
                while piece := await stream.read(_PIECE):
                    use(piece)

        sync(self._fs.loop, take)

    def _get(self, path: str, judged: Stat | None) -> Any:
        """Return the reply to a GET, for exactly the judged object."""
        answer = self._call("get_object", Key=self._key(path))
        if judged is not None and not _same_tag(str(answer["ETag"]), judged.identity):
            answer["Body"].close()
            raise path_changed(path)
        return answer

    # ---------------------------------------------------------------- metadata

    def metadata_of(self, path: str, stat: Stat) -> Metadata:
        """Return the metadata of the judged object; one more request if no GET has shown it."""
        name = path, _plain(stat.identity)
        if name not in self._attached:
            reply = self._call("head_object", Key=self._key(path))
            if not _same_tag(str(reply["ETag"]), stat.identity):
                raise path_changed(path)
            self.note_attached(path, reply)
        if wants_tags(self._attached[name]):
            self._attached[name] = with_tags(self._attached[name], self._tags(path))
        return self._attached[name]

    def note_attached(self, path: str, reply: Any) -> None:
        """Remember the metadata of an object in a reply to GET or HEAD."""
        self._attached[path, _plain(str(reply["ETag"]))] = attached(reply)
        while len(self._attached) > _MOST:
            del self._attached[next(iter(self._attached))]

    def _tags(self, path: str) -> str | None:
        from urllib.parse import urlencode

        try:
            rows = self._call("get_object_tagging", Key=self._key(path))["TagSet"]
        except PermissionError:
            return None
        return urlencode([(row["Key"], row["Value"]) for row in rows])

    def _named_apart(self, path: str, tag: str) -> dict[str, Any]:
        """Return the fields that a COPY does not take along by itself."""
        found = self._attached.get((path, _plain(tag)), {})
        storage = found.get("StorageClass") or self.classes.get((path, tag))
        redirect = found.get("WebsiteRedirectLocation")
        return {
            **({"StorageClass": storage} if storage else {}),
            **({"WebsiteRedirectLocation": redirect} if redirect else {}),
        }

    # --------------------------------------------------------------- directories

    def mark(self, path: str) -> bool:
        """Create the marker of a directory unless it exists; returns whether it was created."""
        marker = path + "/"
        if not self.keeps("create"):
            if self._marker(path) is not None:
                return False
            self.change(path, "put_object", _never, Key=self._key(marker), Body=b"")
            return True

        def look() -> str | None:
            """Return the tag of the marker if it exists."""
            found = self._marker(path)
            return found.identity if found is not None and not found.size else None

        try:
            self.change(path, "put_object", look, Key=self._key(marker), Body=b"", IfNoneMatch="*")
        except OSError as error:
            if not refused(error):
                raise
            if self._marker(path) is not None:
                return False
            # A server that keeps directories of its own refuses where a directory has no marker, too; such
            # a directory goes with its last key.
            self.change(path, "put_object", _never, Key=self._key(marker), Body=b"")
        return True

    def _marker(self, path: str) -> Stat | None:
        """Return the object `path/` from a listing; some servers answer GET for one that does not exist."""
        return self._page(path, "", limit=1)[0].get("")

    def same(self, path: str, judged: Stat) -> None:
        """Raise CallError `path_changed` unless the object is the judged one."""
        now = self._exact(path)
        if now is None or not is_same(judged, now):
            raise path_changed(path)


def digest_of(data: bytes | IO[bytes]) -> str:
    """Return a digest of the content, for comparison."""
    if isinstance(data, bytes):
        return sha256(data).hexdigest()
    digest = sha256()
    data.seek(0)
    while piece := data.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest()


def _made(answer: Any, metadata: Metadata | None, refused: tuple[str, ...], *, copied: bool) -> Made:
    """Return the new object from the reply to a PUT or COPY, or from the tag alone if the reply was lost."""
    if isinstance(answer, str):
        return Made(answer, not_kept(metadata, None, refused, copied=copied))
    tag = answer["CopyObjectResult"]["ETag"] if copied else answer["ETag"]
    return Made(str(tag), not_kept(metadata, answer, refused, copied=copied))


def _refused_field(error: OSError, fields: dict[str, Any]) -> str | None:
    """Return the field that the server refused: an unknown storage class, or tags without the right."""
    if not (isinstance(error, PermissionError) or not_built(error) or is_bad_class(error)):
        return None
    return next((field for field in OPTIONAL if field in fields), None)


def _same_tag(one: str, other: str) -> bool:
    # Some servers quote a tag in one reply and not in another.
    return _plain(one) == _plain(other)


def _plain(tag: str) -> str:
    return tag.strip('"')


def _never() -> None:
    """Return None: without a condition, no request is refused because an earlier one took effect."""
