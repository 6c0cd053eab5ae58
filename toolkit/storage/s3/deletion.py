"""Deletion of keys in their judged version: in batches, or one by one where batches support no conditions.

Reports the outcome of each key; a key that does not exist counts as deleted, whoever deleted it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import DIRECTORY, Stat
from ringfence.toolkit.storage.ambiguous_outcome import NO_REPLY, no_reply, was_made
from ringfence.toolkit.storage.backend import FailedEntry, path_changed
from ringfence.toolkit.storage.s3.conditional import Conditional
from ringfence.toolkit.storage.s3.keys import errors
from ringfence.toolkit.storage.s3.requests import PAGE
from ringfence.toolkit.storage.s3.sends import counted

_PARALLEL = 16
_DELETED = "deleted"  # in place of a tag


class KeyToDelete(NamedTuple):
    """A key to delete, relative to the root, with its judged tag and the path that it belongs to."""

    key: str
    tag: str
    path: str


class ConditionalDeletion(Conditional):
    """The deleting methods of the S3 backend."""

    def delete(self, keys: list[KeyToDelete]) -> Iterator[str | FailedEntry]:
        """Delete keys in their judged version; yields the path of each, or a FailedEntry for each that stays.

        Where the server ignores the condition, the caller checks many keys right before.
        """
        if self._one_by_one(len(keys)):
            yield from self._delete_each(keys)
            return
        conditional = bool(keys) and self.supports("delete many")
        for first in range(0, len(keys), PAGE):
            yield from self._batch(keys[first : first + PAGE], conditional=conditional)

    def _one_by_one(self, count: int) -> bool:
        if count == 1:
            return self.supports("delete") or not self.supports("delete many")
        return count > 1 and not self.supports("delete many") and self.supports("delete")

    def _delete_each(self, keys: list[KeyToDelete]) -> Iterator[str | FailedEntry]:
        if len(keys) == 1:
            yield self._delete(keys[0])
            return
        with ThreadPoolExecutor(_PARALLEL) as pool:
            for first in range(0, len(keys), PAGE):
                yield from pool.map(self._delete, keys[first : first + PAGE])

    def _delete(self, one: KeyToDelete) -> str | FailedEntry:
        try:
            with errors(one.path, taken="path_changed"):
                if self.supports("delete"):
                    self._delete_judged(one)
                else:
                    self._delete_compared(one)
        except CallError as error:
            # A missing key was deleted by this request, which the client repeats, or by somebody else.
            if error.code == "not_found" or (error.code == "path_changed" and self._current(one) is None):
                return one.path
            return FailedEntry(one.path, error.message, error.code)
        return one.path

    def _delete_judged(self, one: KeyToDelete) -> None:
        def verify() -> str | None:
            return _DELETED if self._is_deleted(one) else None

        try:
            self.change(one.path, "delete_object", verify, Key=self._key(one.key), IfMatch=one.tag)
        except PermissionError:
            # Amazon requires read permission for it, which a plain deletion does not need.
            self._delete_compared(one)
            self._support["delete"] = False  # for this session only, because the permission is missing
            self._probed_at.pop("delete", None)

    def _delete_compared(self, one: KeyToDelete) -> None:
        now = self._current(one)
        if now is None or now.identity != one.tag:
            raise path_changed(one.path)
        self.change(one.path, "delete_object", lambda: _DELETED, Key=self._key(one.key))

    def _is_deleted(self, one: KeyToDelete) -> bool:
        """Whether the key does not exist after a refusal. CallError `outcome_unknown` for another version."""
        now = self._current(one)
        return was_made(one.path, ours=now is None, as_judged=now is not None and now.identity == one.tag)

    def _current(self, one: KeyToDelete) -> Stat | None:
        if one.key.endswith("/"):
            return self._marker(one.path)
        found = self._exact(one.path)
        return None if found is not None and found.kind == DIRECTORY else found

    def _batch(self, page: list[KeyToDelete], *, conditional: bool) -> Iterator[str | FailedEntry]:
        tag = {self._key(one.key): one.tag for one in page}
        objects = [{"Key": key, "ETag": tag[key]} if conditional else {"Key": key} for key in tag]
        first = page[0].path
        try:
            with counted() as sends, errors(first):
                wanted = {"Objects": objects, "Quiet": True}
                reply = self.change(first, "delete_objects", lambda: None, Delete=wanted)
        except CallError as error:
            if error.code != NO_REPLY:
                raise
            # One error for each key, because recovery examines each by itself.
            yield from (FailedEntry(one.path, no_reply(one.path).message, NO_REPLY) for one in page)
            return
        failed = {row["Key"]: row for row in reply.get("Errors", ())}
        for key, one in zip(tag, page, strict=True):
            yield self._outcome_of(one, failed.get(key), again=sends.count > 1)

    def _outcome_of(
        self, one: KeyToDelete, error: dict[str, Any] | None, *, again: bool
    ) -> str | FailedEntry:
        """Return the outcome of one key of a batch; `again` where the batch was sent more than once."""
        if error is None:
            return one.path
        try:
            with errors(one.path):
                deleted = error["Code"] == "NoSuchKey" or (again and self._is_deleted(one))
        except CallError as unknown:
            return FailedEntry(one.path, unknown.message, unknown.code)
        if deleted:  # by an earlier send, or by somebody else
            if again:
                self.note_resolved(one.path)
            return one.path
        if error["Code"] == "PreconditionFailed":
            changed = path_changed(one.path)
            return FailedEntry(one.path, changed.message, changed.code)
        return FailedEntry(one.path, str(error.get("Message") or error["Code"]))
