"""Metadata of an object: the fields of a GET, as the history stores them and a PUT sets them.

Values only; sends no request. Fields that a PUT cannot set exactly are reported in words for people.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ringfence.toolkit.plan.metadata import Metadata, NotKept

# Fields with the same name in GET and PUT.
_NAMED = (
    "CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "ContentType", "Metadata",
    "StorageClass", "WebsiteRedirectLocation",
)  # fmt: skip
_ENCRYPTION = ("ServerSideEncryption", "SSEKMSKeyId", "SSECustomerAlgorithm")
_LOCKED = ("ObjectLockMode", "ObjectLockLegalHoldStatus")
# The client's transfer encoding, which some servers store as the content's own encoding.
_TRANSFER_ENCODING = "aws-chunked"
_LOST, TAGS, _TAG_COUNT = "lost", "tags", "TagCount"
_COPY_ONLY = ("expires", "user metadata")  # fields that a COPY takes along and a PUT cannot set
# Fields that a server may refuse, and their names in messages.
OPTIONAL = {"Tagging": TAGS, "StorageClass": "storage class", "WebsiteRedirectLocation": "website redirect"}


def fields_of(reply: Any) -> Metadata:
    """Return the fields of an object from a reply to GET or HEAD, which includes the number of its tags."""
    found = {name: reply[name] for name in _NAMED if reply.get(name)}
    encoding = [part.strip() for part in found.pop("ContentEncoding", "").split(",")]
    if kept := ",".join(part for part in encoding if part and part != _TRANSFER_ENCODING):
        found["ContentEncoding"] = kept
    if isinstance(reply.get("Expires"), datetime):
        found["Expires"] = reply["Expires"].isoformat()
    if reply.get(_TAG_COUNT):
        found[_TAG_COUNT] = reply[_TAG_COUNT]
    encryption = {name: reply[name] for name in _ENCRYPTION if reply.get(name)}
    if encryption:
        found["encryption"] = encryption
    lost = _lost(reply, found)
    return found | ({_LOST: lost} if lost else {})


def wants_tags(metadata: Metadata) -> bool:
    """Whether the fields announce tags that are not read yet."""
    return _TAG_COUNT in metadata


def with_tags(metadata: Metadata, tagging: str | None) -> Metadata:
    """Return the fields with the tags, as a PUT sets them; the tags are None where they cannot be read."""
    found = {name: value for name, value in metadata.items() if name != _TAG_COUNT}
    if tagging is None:
        return found | {_LOST: [*found.get(_LOST, ()), TAGS]}
    return found | {"Tagging": tagging}


def _lost(reply: Any, found: Metadata) -> list[str]:
    lost = []
    if any(reply.get(name) for name in _LOCKED):
        lost.append("object lock")
    if reply.get("ExpiresString") and "Expires" not in found:
        lost.append("expires")
    if reply.get("MissingMeta"):
        lost.append("user metadata")
    return lost


def put_fields(metadata: Metadata | None) -> dict[str, Any]:
    """Return the arguments of a PUT that sets these fields."""
    if not metadata:
        return {}
    found = {name: metadata[name] for name in (*_NAMED, "Tagging") if name in metadata}
    if "Expires" in metadata:
        found["Expires"] = datetime.fromisoformat(metadata["Expires"])
    if "Metadata" in found:
        found["Metadata"] = {key: value for key, value in found["Metadata"].items() if _is_sent(key, value)}
    return found


def not_kept(metadata: Metadata | None, reply: Any, refused: tuple[str, ...], *, copied: bool) -> NotKept:
    """Return the fields that an object made by PUT or COPY (`copied`) does not have.

    `reply` is the reply to that request, None if it was lost.
    """
    if not metadata:
        return refused
    names = {*metadata.get(_LOST, ()), *refused}
    if copied:
        names -= {*_COPY_ONLY}
    elif any(not _is_sent(key, value) for key, value in metadata.get("Metadata", {}).items()):
        names.add("user metadata")
    encryption = metadata.get("encryption", {})
    if reply is not None and any(reply.get(name) != value for name, value in encryption.items()):
        names.add("encryption")
    return tuple(sorted(names))


def _is_sent(key: str, value: str) -> bool:
    """Whether a header can be sent: the client refuses text that is not ASCII."""
    return f"{key}{value}".isascii()
