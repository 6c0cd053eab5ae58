"""Changes on condition that a key is as it was judged, by what the server is found to keep of conditions.

Which kinds of request keep theirs is found out by breaking one of each kind, when it is first needed. For a
kind that the server passes over, a look comes right before the change, and `keeps` says so.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from tempfile import SpooledTemporaryFile
from typing import IO, Any, NamedTuple

from toolkit.backends import Missed, path_changed
from toolkit.errors import CallError
from toolkit.plan import Stat
from toolkit.s3.keys import errors, is_same, refused
from toolkit.s3.requests import PAGE, Requests

_SIDE_BY_SIDE = 16
_IN_MEMORY = 32 << 20  # bytes of a copied object, before they go through a file
_WRONG = '"00000000000000000000000000000000"'  # the tag of no object
# What a PUT has to name again of the object whose content it carries.
_FIELDS = (
    "CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "ContentType", "Metadata",
    "StorageClass", "WebsiteRedirectLocation",
)  # fmt: skip


class Doomed(NamedTuple):
    """A key to delete, relative to the root, with the tag that it was judged by, and the path it is of."""

    key: str
    tag: str
    path: str


class Conditional(Requests):
    """The changes that the S3 backend makes, each on condition where the server keeps the condition."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root)
        self._answers: dict[str, bool] = {}

    # ------------------------------------------------------------ what is kept

    def keeps(self, *kinds: str) -> bool:
        """Whether the server keeps the conditions of all these kinds of request; asks what is not known."""
        unknown = [kind for kind in kinds if kind not in self._answers]
        if unknown and self.is_amazon:
            self._answers |= {kind: self._can_send(kind) for kind in unknown}
        elif unknown:
            self._try(unknown)
        return all(self._answers[kind] for kind in kinds)

    def known(self, *kinds: str) -> bool:
        """The same, where a kind that was not needed yet counts as kept; makes no request."""
        return all(self._answers.get(kind, True) for kind in kinds)

    def _can_send(self, kind: str) -> bool:
        """Amazon keeps all of them, and an older client leaves out what it does not know."""
        model = self._fs.s3.meta.service_model
        shape, field = _SENT[kind]
        return shape in model.shape_names and field in model.shape_for(shape).members

    def _try(self, kinds: list[str]) -> None:
        path = f".ringfence/probe-{secrets.token_hex(8)}"
        key = self._key(path)
        with errors(path):
            try:
                for kind in kinds:
                    self._call("put_object", Key=key, Body=b"")
                    self._answers[kind] = self._is_refused(_BREAKING[kind], key)
            finally:
                with suppress(OSError):  # a bucket may permit writing and no deleting
                    self._call("delete_object", Key=key)

    def _is_refused(self, breaking: Callable[[Conditional, str], Any], key: str) -> bool:
        try:
            answer = breaking(self, key)
        except OSError as error:
            return refused(error)
        return any(row.get("Code") == "PreconditionFailed" for row in answer.get("Errors", ()))

    # ----------------------------------------------------------------- writing

    def put(self, path: str, data: bytes | IO[bytes], over: Stat | None, **fields: Any) -> str:
        """Put an object where none is, or `over` the one that was judged. The tag it has then.

        Raises FileExistsError or OSError for a condition that was not met.
        """
        condition = {}
        if over is not None:
            if self.keeps("replace"):
                condition = {"IfMatch": over.identity}
            else:
                self.same(path, over)
        elif self.keeps("create"):
            condition = {"IfNoneMatch": "*"}
        elif self._exact(path) is not None:
            raise FileExistsError
        answer = self._call("put_object", Key=self._key(path), Body=data, **condition, **fields)
        return str(answer["ETag"])

    def copy(self, path: str, stat: Stat, target: str, over: Stat | None) -> str:
        """Copy the object that was judged, to where none is or `over` the one that was. The copy's tag.

        Where the server passes over the conditions of a copy, the content goes through here: a PUT keeps its.
        """
        if not self.keeps("copy from", "copy over" if over else "copy to"):
            with self._opened(path, stat) as (file, fields):
                return self.put(target, file, over, **fields)
        try:
            answer = self._call(
                "copy_object",
                Key=self._key(target),
                CopySource={"Bucket": self._bucket, "Key": self._key(path)},
                CopySourceIfMatch=stat.identity,
                **({"IfMatch": over.identity} if over else {"IfNoneMatch": "*"}),
            )
        except OSError as error:
            if refused(error):
                self.same(path, stat)  # which of the two conditions it was
            raise
        return str(answer["CopyObjectResult"]["ETag"])

    @contextmanager
    def _opened(self, path: str, stat: Stat) -> Iterator[tuple[IO[bytes], dict[str, Any]]]:
        """The content of exactly the object that was judged, and what belongs to it besides."""
        from fsspec.asyn import sync

        answer = self._get(path, stat)
        fields = {name: answer[name] for name in _FIELDS if answer.get(name)}
        if answer.get("TagCount"):
            fields["Tagging"] = self._tags(path)
        with SpooledTemporaryFile(_IN_MEMORY) as file:

            async def take() -> None:
                async with answer["Body"] as stream:
                    while piece := await stream.read(1 << 20):
                        file.write(piece)

            sync(self._fs.loop, take)
            file.seek(0)
            yield file, fields

    def _get(self, path: str, judged: Stat | None) -> Any:
        """The reply to a GET, which is of the object that was judged."""
        answer = self._call("get_object", Key=self._key(path))
        # Some servers quote a tag here and not in a listing.
        if judged is not None and str(answer["ETag"]).strip('"') != judged.identity.strip('"'):
            answer["Body"].close()
            raise path_changed(path)
        return answer

    def _tags(self, path: str) -> str:
        from urllib.parse import urlencode

        rows = self._call("get_object_tagging", Key=self._key(path))["TagSet"]
        return urlencode([(row["Key"], row["Value"]) for row in rows])

    def mark(self, path: str) -> bool:
        """Put the marker of a directory where there is none; what is there stays. Whether it was made."""
        marker = path + "/"
        if not self.keeps("create"):
            if self._marker(path) is not None:
                return False
            self._call("put_object", Key=self._key(marker), Body=b"")
            return True
        try:
            self._call("put_object", Key=self._key(marker), Body=b"", IfNoneMatch="*")
        except OSError as error:
            if not refused(error):
                raise
            if self._marker(path) is not None:
                return False
            # A server that keeps directories of its own refuses where a directory has no marker, too; such
            # a directory goes with its last key.
            self._call("put_object", Key=self._key(marker), Body=b"")
        return True

    def _marker(self, path: str) -> Stat | None:
        """The object `path/` itself, from a listing: some servers show one to a GET that is not there."""
        return self._page(path, "", limit=1)[0].get("")

    # ---------------------------------------------------------------- deleting

    def delete(self, doomed: list[Doomed]) -> Iterator[str | Missed]:
        """Delete keys that are as they were judged; gives the path of each, or why it stays.

        Where the server passes over the condition, many keys need a look right before, by who calls this.
        """
        if self._one_by_one(len(doomed)):
            yield from self._each(doomed)
            return
        conditional = bool(doomed) and self.keeps("delete many")
        for first in range(0, len(doomed), PAGE):
            yield from self._batch(doomed[first : first + PAGE], conditional=conditional)

    def _one_by_one(self, count: int) -> bool:
        if count == 1:
            return self.keeps("delete") or not self.keeps("delete many")
        return count > 1 and not self.keeps("delete many") and self.keeps("delete")

    def _each(self, doomed: list[Doomed]) -> Iterator[str | Missed]:
        if len(doomed) == 1:
            yield self._delete(doomed[0])
            return
        with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
            for first in range(0, len(doomed), PAGE):
                yield from pool.map(self._delete, doomed[first : first + PAGE])

    def _delete(self, one: Doomed) -> str | Missed:
        condition = {}
        if self.keeps("delete"):
            condition = {"IfMatch": one.tag}
        elif not self._is_as_judged(one):
            return _another(one.path)
        try:
            with errors(one.path, taken="path_changed"):
                self._call("delete_object", Key=self._key(one.key), **condition)
        except CallError as error:
            # What is gone was deleted: by this request, which the client sends again, or by somebody else.
            if error.code == "not_found" or (error.code == "path_changed" and self._now(one) is None):
                return one.path
            return Missed(one.path, error.message, error.code)
        return one.path

    def _is_as_judged(self, one: Doomed) -> bool:
        now = self._now(one)
        return now is not None and now.identity == one.tag

    def _now(self, one: Doomed) -> Stat | None:
        return self._marker(one.path) if one.key.endswith("/") else self._exact(one.path)

    def _batch(self, page: list[Doomed], *, conditional: bool) -> Iterator[str | Missed]:
        tag = {self._key(one.key): one.tag for one in page}
        objects = [{"Key": key, "ETag": tag[key]} if conditional else {"Key": key} for key in tag]
        with errors(page[0].path):
            answer = self._call("delete_objects", Delete={"Objects": objects, "Quiet": True})
        failed = {row["Key"]: row for row in answer.get("Errors", ())}
        for key, one in zip(tag, page, strict=True):
            yield _said(one.path, failed.get(key))

    def same(self, path: str, judged: Stat) -> None:
        """Raises CallError `path_changed` unless the object is the one that was judged."""
        now = self._exact(path)
        if now is None or not is_same(judged, now):
            raise path_changed(path)


def _said(path: str, error: dict[str, Any] | None) -> str | Missed:
    if error is None or error["Code"] == "NoSuchKey":  # somebody else was faster, or the client asked twice
        return path
    if error["Code"] == "PreconditionFailed":
        return _another(path)
    return Missed(path, str(error.get("Message") or error["Code"]))


def _another(path: str) -> Missed:
    error = path_changed(path)
    return Missed(path, error.message, error.code)


def _copy_onto_itself(store: Conditional, key: str, **condition: str) -> Any:
    source = {"Bucket": store._bucket, "Key": key}
    return store._call("copy_object", Key=key, CopySource=source, MetadataDirective="REPLACE", **condition)


# One broken condition of each kind, on a key that is there.
_BREAKING: dict[str, Callable[[Conditional, str], Any]] = {
    "create": lambda store, key: store._call("put_object", Key=key, Body=b"", IfNoneMatch="*"),
    "replace": lambda store, key: store._call("put_object", Key=key, Body=b"", IfMatch=_WRONG),
    "copy from": lambda store, key: _copy_onto_itself(store, key, CopySourceIfMatch=_WRONG),
    "copy to": lambda store, key: _copy_onto_itself(store, key, IfNoneMatch="*"),
    "copy over": lambda store, key: _copy_onto_itself(store, key, IfMatch=_WRONG),
    "delete": lambda store, key: store._call("delete_object", Key=key, IfMatch=_WRONG),
    "delete many": lambda store, key: store._call(
        "delete_objects", Delete={"Objects": [{"Key": key, "ETag": _WRONG}]}
    ),
}
# The field of the client's model that sends each.
_SENT = {
    "create": ("PutObjectRequest", "IfNoneMatch"),
    "replace": ("PutObjectRequest", "IfMatch"),
    "copy from": ("CopyObjectRequest", "CopySourceIfMatch"),
    "copy to": ("CopyObjectRequest", "IfNoneMatch"),
    "copy over": ("CopyObjectRequest", "IfMatch"),
    "delete": ("DeleteObjectRequest", "IfMatch"),
    "delete many": ("ObjectIdentifier", "ETag"),
}
