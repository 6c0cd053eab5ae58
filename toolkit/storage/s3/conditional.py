"""Conditional changes: a key changes only in its judged version; a lost reply is resolved by a second read.

Where the server ignores a kind of condition (`supports`), the key is checked right before the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from tempfile import TemporaryFile
from threading import Lock
from typing import IO, Any, NamedTuple

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Stat
from ringfence.toolkit.plan.metadata import Metadata, NotKept
from ringfence.toolkit.storage.ambiguous_outcome import no_reply, was_made
from ringfence.toolkit.storage.backend import path_changed
from ringfence.toolkit.storage.known_content import KnownContent
from ringfence.toolkit.storage.s3.conditions import Conditions
from ringfence.toolkit.storage.s3.keys import (
    is_condition_failed,
    is_final,
    is_not_implemented,
    is_race,
    is_same,
    is_unknown_class,
)
from ringfence.toolkit.storage.s3.metadata import (
    OPTIONAL,
    TAGS,
    fields_of,
    not_kept,
    put_fields,
    wants_tags,
    with_tags,
)
from ringfence.toolkit.storage.s3.sends import Sends, counted
from ringfence.toolkit.storage.store_base import StoreBase

_IN_MEMORY = 32 << 20  # bytes of a copied object in memory; larger ones go through a file
_PIECE = 1 << 20
_MAX_METADATA = 10_000  # objects with metadata in the cache
Verify = Callable[[], str | None]


class NewObject(NamedTuple):
    """A new object: its tag, and the metadata fields that it does not have."""

    tag: str
    not_kept: NotKept


class Conditional(Conditions, StoreBase):
    """The writing methods of the S3 backend, with conditions where the server supports them."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root)
        self._metadata: dict[tuple[str, str], Metadata] = {}
        self.known = KnownContent()
        self.needs_metadata = False  # whether the call that runs needs it of what it reads
        self._lock = Lock()  # reads side by side remember metadata

    def change(self, path: str, method: str, verify: Verify, **arguments: Any) -> Any:
        """Send a request that changes something, until a final reply arrives; returns the reply or a tag.

        If the client sent it more than once and it is refused, an earlier send may have taken effect: then
        `verify` reads the object, and returns its tag if the object is what the request leaves, else None.
        OSError for a refusal, CallError `no_reply` or an error of `verify`.
        """
        with counted() as sends:
            try:
                return self._call_retrying(sends, method, **arguments)
            except CallError:
                raise
            except Exception as error:
                if sends.count and not is_final(error):
                    raise no_reply(path) from error
                if is_not_implemented(error):
                    self.forget_support()
                not_found = isinstance(error, FileNotFoundError)
                if sends.count < 2 or not (not_found or is_condition_failed(error)):
                    raise
                refusal = error
        try:
            tag = verify()
        except OSError as error:
            raise no_reply(path) from error
        if tag is None:
            raise refusal
        self.note_resolved(path)
        return tag

    def _call_retrying(self, sends: Sends, method: str, **arguments: Any) -> Any:
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
    ) -> NewObject:
        """Create an object, or replace the judged one (`over`). FileExistsError, or OSError if it differs."""
        # Both are probed at once, before the change.
        self.supports("content", "create" if over is None else "replace")
        condition = self._put_condition(path, over)

        def verify() -> str | None:
            """Return the tag of the object if it is the one that the request creates."""
            return self._written_tag(path, digest_of(data), over)

        fields, refusals = put_fields(metadata), []
        while True:
            try:
                more = {"Key": self._key(path), "Body": data, **condition, **fields}
                reply = self.change(path, "put_object", verify, **more)
                break
            except OSError as error:
                field = _refused_field(error, fields)
                if field is None:
                    raise
                del fields[field]
                refusals.append(OPTIONAL[field])
        if not self.supports("content") and (self._tag_and_digest(path) or ("", ""))[1] != digest_of(data):
            raise CallError(
                "io_error", f"'{path}' does not have the content that was written to it", where=path
            )
        return _new_object(reply, metadata, tuple(refusals), copied=False)

    def _put_condition(self, path: str, over: Stat | None) -> dict[str, str]:
        """Return the condition of a PUT as arguments; without one the key is checked here."""
        if over is None:
            if self.supports("create"):
                return {"IfNoneMatch": "*"}
            if self._exact(path) is not None:
                raise FileExistsError
            return {}
        if self.supports("replace"):
            return {"IfMatch": over.identity}
        self.check_same(path, over)
        return {}

    def copy(self, path: str, stat: Stat, target: str, over: Stat | None) -> NewObject:
        """Copy the judged object to a free key, or over the judged object there (`over`).

        Where the server ignores the conditions of a copy, the content is downloaded and sent by a conditional
        PUT.
        """
        if not self.supports("copy from", "copy over" if over else "copy to"):
            with self._content_of(path, stat) as (content, metadata):
                return self.put(target, content, over, metadata)

        def verify() -> str | None:
            """Return the tag of the object if it is the one that the request creates."""
            source = self._tag_and_digest(path)
            if source is None or not _same_tag(source[0], stat.identity):
                raise path_changed(path)
            return self._written_tag(target, source[1], over)

        wanted = {
            "Key": self._key(target),
            "CopySource": {"Bucket": self._bucket, "Key": self._key(path)},
            "CopySourceIfMatch": stat.identity,
            **({"IfMatch": over.identity} if over else {"IfNoneMatch": "*"}),
            **self._copy_fields(path, stat.identity),
        }
        not_copied: tuple[str, ...] = ()
        try:
            try:
                reply = self.change(target, "copy_object", verify, **wanted)
            except PermissionError:  # perhaps only for the tags
                reply = self.change(target, "copy_object", verify, **wanted, TaggingDirective="REPLACE")
                not_copied = (TAGS,)
        except OSError as error:
            if is_condition_failed(error):
                self.check_same(path, stat)  # which of the two conditions failed
            raise
        return _new_object(
            reply, self._metadata.get((path, _unquoted(stat.identity))), not_copied, copied=True
        )

    def _written_tag(self, path: str, digest: str, over: Stat | None) -> str | None:
        """Return the tag of the object at `path` if it has the written content, None if it was not written.

        CallError `outcome_unknown` where that cannot be decided.
        """
        now = self._tag_and_digest(path)
        ours = now is not None and now[1] == digest
        # A new object with other content was there before.
        before = now is not None and (over is None or _same_tag(now[0], over.identity))
        return now[0] if was_made(path, ours=ours, as_judged=before) and now is not None else None

    def _tag_and_digest(self, path: str) -> tuple[str, str] | None:
        """Return tag and digest of an object; None if there is none."""
        try:
            reply = self._call("get_object", Key=self._key(path))
        except FileNotFoundError:
            return None
        digest = sha256()
        self._read_pieces(reply, digest.update)
        return str(reply["ETag"]), digest.hexdigest()

    @contextmanager
    def _content_of(self, path: str, stat: Stat) -> Iterator[tuple[bytes | IO[bytes], Metadata]]:
        """Yield the content of exactly the judged object, with its metadata."""
        known = self.known.get(path, stat)
        if known is not None:
            yield known, self.metadata_of(path, stat)
            return
        reply = self._get(path, stat)
        self.remember_metadata(path, reply)
        if reply["ContentLength"] <= _IN_MEMORY:
            yield self._read_body(reply["Body"]), self.metadata_of(path, stat)
            return
        with TemporaryFile() as file:
            self._read_pieces(reply, file.write)
            file.seek(0)
            yield file, self.metadata_of(path, stat)

    def _read_pieces(self, reply: Any, use: Callable[[bytes], Any]) -> None:
        """Read the body of a reply in pieces."""
        from fsspec.asyn import sync

        async def read_pieces() -> None:
            async with reply["Body"] as stream:
                while piece := await stream.read(_PIECE):
                    use(piece)

        sync(self._fs.loop, read_pieces)

    def _get(self, path: str, judged: Stat | None) -> Any:
        """Return the reply to a GET, for exactly the judged object."""
        reply = self._call("get_object", Key=self._key(path))
        if judged is not None and not _same_tag(str(reply["ETag"]), judged.identity):
            reply["Body"].close()
            raise path_changed(path)
        return reply

    # ---------------------------------------------------------------- metadata

    def metadata_of(self, path: str, stat: Stat) -> Metadata:
        """Return the metadata of the judged object; one more request if no GET or HEAD returned it before."""
        found = self._metadata.get((path, _unquoted(stat.identity)))
        if found is None:
            reply = self._call("head_object", Key=self._key(path))
            if not _same_tag(str(reply["ETag"]), stat.identity):
                raise path_changed(path)
            found = self.remember_metadata(path, reply)
        if wants_tags(found):
            found = self._remember(path, stat.identity, with_tags(found, self._tags(path)))
        return found

    def remember_metadata(self, path: str, reply: Any) -> Metadata:
        """Remember the metadata of an object in a reply to GET or HEAD, and return it."""
        return self._remember(path, str(reply["ETag"]), fields_of(reply))

    def _remember(self, path: str, tag: str, metadata: Metadata) -> Metadata:
        with self._lock:
            self._metadata[path, _unquoted(tag)] = metadata
            while len(self._metadata) > _MAX_METADATA:
                del self._metadata[next(iter(self._metadata))]
        return metadata

    def begin_call(self, *, changes: bool) -> None:
        """Drop the metadata that earlier calls have read before a call that `changes` something: an object's
        tags can be set without a new version.
        """
        self.needs_metadata = changes
        if changes:
            with self._lock:
                self._metadata.clear()

    def _tags(self, path: str) -> str | None:
        from urllib.parse import urlencode

        try:
            rows = self._call("get_object_tagging", Key=self._key(path))["TagSet"]
        except PermissionError:
            return None
        return urlencode([(row["Key"], row["Value"]) for row in rows])

    def _copy_fields(self, path: str, tag: str) -> dict[str, Any]:
        """Return the fields that a COPY does not take along by itself."""
        found = self._metadata.get((path, _unquoted(tag)), {})
        storage = found.get("StorageClass") or self.classes.get((path, tag))
        redirect = found.get("WebsiteRedirectLocation")
        return {
            **({"StorageClass": storage} if storage else {}),
            **({"WebsiteRedirectLocation": redirect} if redirect else {}),
        }

    # --------------------------------------------------------------- directories

    def create_marker(self, path: str) -> bool:
        """Create the marker of a directory unless it exists; returns whether it was created."""
        marker = path + "/"
        if not self.supports("create"):
            if self._marker(path) is not None:
                return False
            self.change(path, "put_object", _verify_nothing, Key=self._key(marker), Body=b"")
            return True

        def verify() -> str | None:
            """Return the tag of the marker if it exists."""
            found = self._marker(path)
            return found.identity if found is not None and not found.size else None

        try:
            self.change(path, "put_object", verify, Key=self._key(marker), Body=b"", IfNoneMatch="*")
        except OSError as error:
            if not is_condition_failed(error):
                raise
            if self._marker(path) is not None:
                return False
            # A server with real directories also refuses where a directory has no marker. Such a directory
            # disappears with its last key.
            self.change(path, "put_object", _verify_nothing, Key=self._key(marker), Body=b"")
        return True

    def _marker(self, path: str) -> Stat | None:
        """Return the object `path/` from a listing; some servers answer GET for one that does not exist."""
        return self._page(path, "", limit=1)[0].get("")

    def check_same(self, path: str, judged: Stat) -> None:
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


def _new_object(
    reply: Any, metadata: Metadata | None, refused: tuple[str, ...], *, copied: bool
) -> NewObject:
    """Return the new object from the reply to a PUT or COPY, or from the tag alone if the reply was lost."""
    if isinstance(reply, str):
        return NewObject(reply, not_kept(metadata, None, refused, copied=copied))
    tag = reply["CopyObjectResult"]["ETag"] if copied else reply["ETag"]
    return NewObject(str(tag), not_kept(metadata, reply, refused, copied=copied))


def _refused_field(error: OSError, fields: dict[str, Any]) -> str | None:
    """Return the field that the server refused: an unknown storage class, or tags without the right."""
    if not (isinstance(error, PermissionError) or is_not_implemented(error) or is_unknown_class(error)):
        return None
    return next((field for field in OPTIONAL if field in fields), None)


def _same_tag(one: str, other: str) -> bool:
    # Some servers quote a tag in one reply and not in another.
    return _unquoted(one) == _unquoted(other)


def _unquoted(tag: str) -> str:
    return tag.strip('"')


def _verify_nothing() -> None:
    """Return None: a request without a condition is never refused because an earlier one took effect."""
