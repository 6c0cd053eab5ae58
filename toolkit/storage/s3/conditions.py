"""Probing of an S3 server: which kinds of condition it keeps, by breaking one of each on first use.

Answers are stored for a day, beside the history. For a kind that the server ignores, the key is checked right
before the change. A refusal for another reason never counts as a lasting answer.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from ringfence.toolkit.storage.s3.keys import answered, errors, refused
from ringfence.toolkit.storage.s3.requests import Requests

_WRONG = '"00000000000000000000000000000000"'  # the tag of no object
_DAY = 24 * 3600.0


class Facts(Protocol):
    """Stored facts about a store, by name."""

    def get(self, name: str) -> str | None:
        """Return the stored value, or None."""

    def put(self, name: str, value: str) -> None:
        """Store a value, in place of an earlier one."""


class Conditions(Requests):
    """The conditions that the server keeps: `keeps` sends requests to find out, `known` does not."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root)
        self._answers: dict[str, bool] = {}
        self._asked: dict[str, float] = {}  # when each lasting answer was received
        self._facts: Facts | None = None

    def keeps(self, *kinds: str) -> bool:
        """Whether the server keeps the conditions of all these kinds of request; probes unknown ones.

        OSError.
        """
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
        """Whether the server keeps them, where kinds that were not needed yet count as kept.

        Sends no request.
        """
        return all(self._answers.get(kind, True) for kind in kinds)

    def _can_send(self, kind: str) -> bool:
        """Whether the client can send the condition: an older one drops arguments that it does not know."""
        if kind not in _SENT:
            return True
        model = self._fs.s3.meta.service_model
        shape, field = _SENT[kind]
        return shape in model.shape_names and field in model.shape_for(shape).members

    # ------------------------------------------------------------- remembering

    def use_facts(self, facts: Facts) -> None:
        """Store answers there, and use answers of the last day to the same client."""
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
            if (
                (kind == _CONTENT or kind in _PROBES)
                and kind not in self._answers
                and now - _DAY < asked <= now
            ):
                self._answers[kind], self._asked[kind] = kept, asked

    def forget(self) -> None:
        """Drop all answers: the server's behaviour contradicts them."""
        self._answers.clear()
        self._asked.clear()
        self._remember()

    def _recalled(self) -> dict[str, tuple[float, bool]]:
        text = self._facts.get(self._name) if self._facts is not None else None
        try:
            found = json.loads(text or "{}")
            return {str(kind): (float(row[0]), bool(row[1])) for kind, row in found.items()}
        except (ValueError, TypeError, LookupError, AttributeError):
            return {}  # unreadable, so ignored

    def _remember(self) -> None:
        if self._facts is not None and not self.is_amazon:
            answers = {kind: [asked, self._answers[kind]] for kind, asked in self._asked.items()}
            self._facts.put(self._name, json.dumps(answers))

    @property
    def _name(self) -> str:
        """The name of the stored answers.

        Another client version may send other conditions, so it is part of it.
        """
        from botocore import __version__

        endpoint = self._fs.s3.meta.endpoint_url
        return f"s3 conditions of {endpoint}/{self._bucket} by botocore {__version__}"

    # -------------------------------------------------------------- probing

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
        """Return whether the server keeps the condition, and whether the answer outlives this session."""
        try:
            return self._keeps(kind, key, content), True
        except OSError as error:
            if not answered(error):
                raise
            kept = refused(error)
            # A missing permission does not show whether conditions are kept.
            return kept, kept or not isinstance(error, PermissionError)

    def _keeps(self, kind: str, key: str, content: bytes) -> bool:
        if kind == _CONTENT:
            return self._is_given_back(key, content)
        probe = _PROBES[kind]
        return _was_checked(self._call(probe.method, **probe.arguments_for(self._bucket, key)))

    def _is_given_back(self, key: str, content: bytes) -> bool:
        return self._body(self._call("get_object", Key=key)["Body"]) == content


def _was_checked(answer: Any) -> bool:
    """Whether the reply to a request with a broken condition shows that the condition was checked."""
    return any(row.get("Code") == "PreconditionFailed" for row in answer.get("Errors", ()))


@dataclass(frozen=True, slots=True)
class _Probe:
    """A request with a broken condition, for an object that exists."""

    method: str
    arguments: Mapping[str, Any]

    def arguments_for(self, bucket: str, key: str) -> dict[str, Any]:
        """Return the arguments of the request for this object."""
        if self.method == "delete_objects":
            return {"Delete": {"Objects": [{"Key": key, **self.arguments}]}}
        if self.method == "copy_object":
            source = {"Bucket": bucket, "Key": key}
            return {"Key": key, "CopySource": source, "MetadataDirective": "REPLACE", **self.arguments}
        return {"Key": key, **self.arguments}


_CONTENT = "content"  # whether a PUT stores the content: compared with the content read back
_PROBES = {
    "create": _Probe("put_object", {"Body": b"", "IfNoneMatch": "*"}),
    "replace": _Probe("put_object", {"Body": b"", "IfMatch": _WRONG}),
    "copy from": _Probe("copy_object", {"CopySourceIfMatch": _WRONG}),
    "copy to": _Probe("copy_object", {"IfNoneMatch": "*"}),
    "copy over": _Probe("copy_object", {"IfMatch": _WRONG}),
    "delete": _Probe("delete_object", {"IfMatch": _WRONG}),
    "delete many": _Probe("delete_objects", {"ETag": _WRONG}),
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
