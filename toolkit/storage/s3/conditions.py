"""Conditions that an S3 server keeps, found out by breaking one of each kind when it is first needed.

Answers are remembered for a day, beside the history. For a kind that the server passes over, a look comes
right before the change. Never takes a refusal for another reason as an answer that holds.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from ringfence.toolkit.storage.s3.keys import answered, errors, refused
from ringfence.toolkit.storage.s3.requests import Requests

_WRONG = '"00000000000000000000000000000000"'  # the tag of no object
_DAY = 24 * 3600.0


class Facts(Protocol):
    """What is remembered of a store, by name; None where it is not."""

    def get(self, name: str) -> str | None: ...
    def put(self, name: str, value: str) -> None: ...


class Conditions(Requests):
    """What the server is found to keep: `keeps` asks it, `known` does not."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root)
        self._answers: dict[str, bool] = {}
        self._asked: dict[str, float] = {}  # when, for the answers that hold
        self._facts: Facts | None = None

    def keeps(self, *kinds: str) -> bool:
        """Whether the server keeps the conditions of all these kinds of request; asks what is not known."""
        if not self._answers.keys() >= set(kinds) or self._is_old(*kinds):
            self._recall()
        unknown = [kind for kind in kinds if kind not in self._answers]
        if unknown and self.is_amazon:
            self._answers |= {kind: self._can_send(kind) for kind in unknown}
        elif unknown:
            self._try(unknown)
            self._remember()
        return all(self._answers[kind] for kind in kinds)

    def known(self, *kinds: str) -> bool:
        """The same, where a kind that was not needed yet counts as kept; makes no request."""
        return all(self._answers.get(kind, True) for kind in kinds)

    def _can_send(self, kind: str) -> bool:
        """Amazon keeps all of them, and an older client leaves out what it does not know."""
        if kind not in _SENT:
            return True
        model = self._fs.s3.meta.service_model
        shape, field = _SENT[kind]
        return shape in model.shape_names and field in model.shape_for(shape).members

    # ------------------------------------------------------------- remembering

    def use_facts(self, facts: Facts) -> None:
        """Keep answers there, and take those that were given in the last day to the same client."""
        self._facts = facts

    def _is_old(self, *kinds: str) -> bool:
        now = time.time()
        return any(not now - _DAY < self._asked.get(kind, now) <= now for kind in kinds)

    def _recall(self) -> None:
        if self.is_amazon:
            return
        for kind in [kind for kind in self._asked if self._is_old(kind)]:
            del self._asked[kind], self._answers[kind]
        now = time.time()
        for kind, (asked, kept) in self._recalled().items():
            if kind in _ASKING and kind not in self._answers and now - _DAY < asked <= now:
                self._answers[kind], self._asked[kind] = kept, asked

    def forget(self) -> None:
        """Ask anew: the server has answered as by what is known of it it does not."""
        self._answers.clear()
        self._asked.clear()
        self._remember()

    def _recalled(self) -> dict[str, tuple[float, bool]]:
        text = self._facts.get(self._name) if self._facts is not None else None
        try:
            found = json.loads(text or "{}")
            return {str(kind): (float(row[0]), bool(row[1])) for kind, row in found.items()}
        except (ValueError, TypeError, LookupError, AttributeError):
            return {}  # nothing that anybody could use

    def _remember(self) -> None:
        if self._facts is not None and not self.is_amazon:
            answers = {kind: [asked, self._answers[kind]] for kind, asked in self._asked.items()}
            self._facts.put(self._name, json.dumps(answers))

    @property
    def _name(self) -> str:
        """Of an older client other conditions go out; it leaves out what it does not know."""
        from botocore import __version__

        endpoint = self._fs.s3.meta.endpoint_url
        return f"s3 conditions of {endpoint}/{self._bucket} by botocore {__version__}"

    # -------------------------------------------------------------- asking it

    def _try(self, kinds: list[str]) -> None:
        path = f".ringfence/probe-{secrets.token_hex(8)}"
        key = self._key(path)
        with errors(path):
            try:
                for kind in kinds:
                    content = secrets.token_bytes(16)
                    self._call("put_object", Key=key, Body=content)
                    kept, holds = self._answer(kind, key, content)
                    self._answers[kind] = kept
                    if holds:
                        self._asked[kind] = time.time()
            finally:
                with suppress(OSError):  # a bucket may permit writing and no deleting
                    self._call("delete_object", Key=key)

    def _answer(self, kind: str, key: str, content: bytes) -> tuple[bool, bool]:
        """Whether the server keeps what is asked, and whether that holds for longer than this session."""
        try:
            return _ASKING[kind](self, key, content), True
        except OSError as error:
            if not answered(error):
                raise
            kept = refused(error)
            # No right to do it says nothing of conditions.
            return kept, kept or not isinstance(error, PermissionError)

    def _is_given_back(self, key: str, content: bytes) -> bool:
        return self._body(self._call("get_object", Key=key)["Body"]) == content


def _passed_over(answer: Any) -> bool:
    """What it means that a request with a broken condition was answered, and not refused."""
    return any(row.get("Code") == "PreconditionFailed" for row in answer.get("Errors", ()))


def _asking(method: str, **arguments: Any) -> Callable[[Conditions, str, bytes], bool]:
    def ask(store: Conditions, key: str, _: bytes) -> bool:
        return _passed_over(store._call(method, Key=key, **arguments))

    return ask


def _copying(**condition: str) -> Callable[[Conditions, str, bytes], bool]:
    def ask(store: Conditions, key: str, _: bytes) -> bool:
        source = {"Bucket": store._bucket, "Key": key}
        more = {"CopySource": source, "MetadataDirective": "REPLACE", **condition}
        return _passed_over(store._call("copy_object", Key=key, **more))

    return ask


def _delete_many(store: Conditions, key: str, _: bytes) -> bool:
    objects = [{"Key": key, "ETag": _WRONG}]
    return _passed_over(store._call("delete_objects", Delete={"Objects": objects}))


# Each kind with what asks for it, on a key that is there: one broken condition, or the content read back.
_ASKING: dict[str, Callable[[Conditions, str, bytes], bool]] = {
    "content": Conditions._is_given_back,
    "create": _asking("put_object", Body=b"", IfNoneMatch="*"),
    "replace": _asking("put_object", Body=b"", IfMatch=_WRONG),
    "copy from": _copying(CopySourceIfMatch=_WRONG),
    "copy to": _copying(IfNoneMatch="*"),
    "copy over": _copying(IfMatch=_WRONG),
    "delete": _asking("delete_object", IfMatch=_WRONG),
    "delete many": _delete_many,
}
# The field of the client's model that sends each condition.
_SENT = {
    "create": ("PutObjectRequest", "IfNoneMatch"),
    "replace": ("PutObjectRequest", "IfMatch"),
    "copy from": ("CopyObjectRequest", "CopySourceIfMatch"),
    "copy to": ("CopyObjectRequest", "IfNoneMatch"),
    "copy over": ("CopyObjectRequest", "IfMatch"),
    "delete": ("DeleteObjectRequest", "IfMatch"),
    "delete many": ("ObjectIdentifier", "ETag"),
}
