"""Probing of an S3 server: which kinds of condition it supports, by breaking one of each on first use.

Results are stored for a day, beside the history. For a kind that the server ignores, the key is checked right
before the change. A refusal for another reason never counts as a lasting result.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from ringfence.toolkit.storage.s3.keys import errors, is_condition_failed, is_final
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
    """The conditions that the server supports: `supports` sends requests to find out, `may_support` none."""

    def __init__(self, fs: Any, root: str) -> None:
        super().__init__(fs, root)
        self._support: dict[str, bool] = {}
        self._probed_at: dict[str, float] = {}  # when each lasting result was received
        self._facts: Facts | None = None

    def supports(self, *kinds: str) -> bool:
        """Whether the server supports the conditions of all these kinds of request; probes unknown ones.

        OSError.
        """
        if not self._support.keys() >= set(kinds) or self._is_old(*kinds):
            self._load_stored()
        unknown = [kind for kind in kinds if kind not in self._support]
        if unknown and self.is_amazon:
            self._support |= {kind: self._can_send(kind) for kind in unknown}
        elif unknown:
            self._probe(unknown)
            self._store()
        return all(self._support[kind] for kind in kinds)

    def may_support(self, *kinds: str) -> bool:
        """Whether no kind is known to be ignored: kinds that were not needed yet count as supported.

        Sends no request.
        """
        return all(self._support.get(kind, True) for kind in kinds)

    def _can_send(self, kind: str) -> bool:
        """Whether the client can send the condition: an older one drops arguments that it does not know."""
        if kind not in _CLIENT_FIELDS:
            return True
        model = self._fs.s3.meta.service_model
        shape, field = _CLIENT_FIELDS[kind]
        return shape in model.shape_names and field in model.shape_for(shape).members

    # ------------------------------------------------------------- remembering

    def use_facts(self, facts: Facts) -> None:
        """Store results there, and use results of the last day for the same client."""
        self._facts = facts

    def _is_old(self, *kinds: str) -> bool:
        now = time.time()
        return any(not now - _DAY < self._probed_at.get(kind, now) <= now for kind in kinds)

    def _load_stored(self) -> None:
        if self.is_amazon:
            return
        for kind in [kind for kind in self._probed_at if self._is_old(kind)]:
            del self._probed_at[kind], self._support[kind]
        now = time.time()
        for kind, (probed_at, kept) in self._stored().items():
            if (
                (kind == _CONTENT or kind in _PROBES)
                and kind not in self._support
                and now - _DAY < probed_at <= now
            ):
                self._support[kind], self._probed_at[kind] = kept, probed_at

    def forget_support(self) -> None:
        """Drop all results, because the server's behaviour contradicts them."""
        self._support.clear()
        self._probed_at.clear()
        self._store()

    def _stored(self) -> dict[str, tuple[float, bool]]:
        text = self._facts.get(self._name) if self._facts is not None else None
        try:
            found = json.loads(text or "{}")
            return {str(kind): (float(row[0]), bool(row[1])) for kind, row in found.items()}
        except (ValueError, TypeError, LookupError, AttributeError):
            return {}  # unreadable, so ignored

    def _store(self) -> None:
        if self._facts is not None and not self.is_amazon:
            answers = {kind: [probed_at, self._support[kind]] for kind, probed_at in self._probed_at.items()}
            self._facts.put(self._name, json.dumps(answers))

    @property
    def _name(self) -> str:
        """The name of the stored results; with the client's version, which may send other conditions."""
        from botocore import __version__

        endpoint = self._fs.s3.meta.endpoint_url
        return f"s3 conditions of {endpoint}/{self._bucket} by botocore {__version__}"

    # -------------------------------------------------------------- probing

    def _probe(self, kinds: list[str]) -> None:
        path = f".ringfence/probe-{secrets.token_hex(8)}"
        key = self._key(path)
        with errors(path):
            try:
                for kind in kinds:
                    content = secrets.token_bytes(16)
                    self._call("put_object", Key=key, Body=content)
                    kept, lasting = self._probe_kind(kind, key, content)
                    self._support[kind] = kept
                    if lasting:
                        self._probed_at[kind] = time.time()
            finally:
                with suppress(OSError):  # a bucket may permit writing and no deleting
                    self._call("delete_object", Key=key)

    def _probe_kind(self, kind: str, key: str, content: bytes) -> tuple[bool, bool]:
        """Return whether the server supports the condition, and whether the result outlives this session."""
        try:
            return self._is_supported(kind, key, content), True
        except OSError as error:
            if not is_final(error):
                raise
            kept = is_condition_failed(error)
            # A missing permission does not show whether conditions are supported.
            return kept, kept or not isinstance(error, PermissionError)

    def _is_supported(self, kind: str, key: str, content: bytes) -> bool:
        if kind == _CONTENT:
            return self._is_stored(key, content)
        probe = _PROBES[kind]
        return _was_checked(self._call(probe.method, **probe.arguments_for(self._bucket, key)))

    def _is_stored(self, key: str, content: bytes) -> bool:
        return self._read_body(self._call("get_object", Key=key)["Body"]) == content


def _was_checked(reply: Any) -> bool:
    """Whether the reply to a request with a broken condition shows that the condition was checked."""
    return any(row.get("Code") == "PreconditionFailed" for row in reply.get("Errors", ()))


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
_CLIENT_FIELDS = {
    "create": ("PutObjectRequest", "IfNoneMatch"),
    "replace": ("PutObjectRequest", "IfMatch"),
    "copy from": ("CopyObjectRequest", "CopySourceIfMatch"),
    "copy to": ("CopyObjectRequest", "IfNoneMatch"),
    "copy over": ("CopyObjectRequest", "IfMatch"),
    "delete": ("DeleteObjectRequest", "IfMatch"),
    "delete many": ("ObjectIdentifier", "ETag"),
}
