"""Metadata of an object: the fields that a GET shows, as the history keeps them and a PUT names them again.

Values only; makes no request. What a PUT cannot name, or cannot name truly, is said in words for people.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ringfence.toolkit.plan.metadata import Metadata, NotKept

# What a PUT names as a GET shows it.
_NAMED = (
    "CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage", "ContentType", "Metadata",
    "StorageClass", "WebsiteRedirectLocation",
)  # fmt: skip
_ENCRYPTION = ("ServerSideEncryption", "SSEKMSKeyId", "SSECustomerAlgorithm")
_LOCKED = ("ObjectLockMode", "ObjectLockLegalHoldStatus")
# How the client sends a body, which some servers keep as if it were the content's own.
_OF_THE_WAY = "aws-chunked"
_LOST, TAGS, _TAG_COUNT = "lost", "tags", "TagCount"
_BY_A_PUT = ("expires", "user metadata")  # what a COPY takes along that a PUT cannot name
# What a server may refuse to take, and what that is called.
OPTIONAL = {"Tagging": TAGS, "StorageClass": "storage class", "WebsiteRedirectLocation": "website redirect"}


def attached(reply: Any) -> Metadata:
    """The fields of an object by the reply to a GET or HEAD, which shows how many tags it has."""
    found = {name: reply[name] for name in _NAMED if reply.get(name)}
    encoding = [part.strip() for part in found.pop("ContentEncoding", "").split(",")]
    if kept := ",".join(part for part in encoding if part and part != _OF_THE_WAY):
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
    return _TAG_COUNT in metadata


def with_tags(metadata: Metadata, tagging: str | None) -> Metadata:
    """The same with the tags themselves, as a PUT names them; None where they cannot be read."""
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


def named(metadata: Metadata | None) -> dict[str, Any]:
    """The arguments of a PUT that put these fields on."""
    if not metadata:
        return {}
    found = {name: metadata[name] for name in (*_NAMED, "Tagging") if name in metadata}
    if "Expires" in metadata:
        found["Expires"] = datetime.fromisoformat(metadata["Expires"])
    if "Metadata" in found:
        found["Metadata"] = {key: value for key, value in found["Metadata"].items() if _is_sent(key, value)}
    return found


def not_kept(metadata: Metadata | None, reply: Any, refused: tuple[str, ...], *, copied: bool) -> NotKept:
    """What of the fields the object has not that a PUT or COPY (`copied`) has made.

    `reply` is the one to that, None where it was lost.
    """
    if not metadata:
        return refused
    names = {*metadata.get(_LOST, ()), *refused}
    if copied:
        names -= {*_BY_A_PUT}
    elif any(not _is_sent(key, value) for key, value in metadata.get("Metadata", {}).items()):
        names.add("user metadata")
    encryption = metadata.get("encryption", {})
    if reply is not None and any(reply.get(name) != value for name, value in encryption.items()):
        names.add("encryption")
    return tuple(sorted(names))


def _is_sent(key: str, value: str) -> bool:
    """Headers are ASCII; the client refuses anything else."""
    return f"{key}{value}".isascii()
