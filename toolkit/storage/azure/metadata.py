"""Metadata of a blob: content settings, own metadata, index tags, access tier; and the PUT that sets them."""

from __future__ import annotations

from typing import Any

from ringfence.toolkit.plan.metadata import Metadata, NotKept

SETTINGS, METADATA, TAGS, TIER, TYPE = "settings", "metadata", "tags", "tier", "type"  # the fields
_SETTINGS = ("content_type", "content_encoding", "content_language", "content_disposition", "cache_control")
_BLOCK = "BlockBlob"  # the only type that is made here


def fields_of(properties: Any) -> Metadata:
    """Return the fields of a blob in the reply to a GET or HEAD, without its tier.

    Without its tags, too, if it has any: these take a request of their own.
    """
    settings = properties.content_settings
    found: dict[str, Any] = {
        SETTINGS: {name: value for name in _SETTINGS if (value := getattr(settings, name)) is not None},
        METADATA: dict(properties.metadata or {}),
    }
    if not properties.tag_count:
        found[TAGS] = {}
    kind = _text(properties.blob_type)
    return found if kind == _BLOCK else {**found, TYPE: kind}


def tier_of(properties: Any) -> str | None:
    """Return the tier in the reply to a HEAD or in a listing; None where the account's default applies."""
    return None if properties.blob_tier_inferred else _text(properties.blob_tier)


def put_with(fields: Metadata) -> tuple[dict[str, Any], NotKept]:
    """Return the arguments of a PUT that sets these fields, and the fields that a PUT cannot set."""
    from azure.storage.blob import ContentSettings, StandardBlobTier

    arguments: dict[str, Any] = {}
    not_kept: list[str] = []
    if SETTINGS in fields:
        arguments["content_settings"] = ContentSettings(**fields[SETTINGS])
    if fields.get(METADATA):
        arguments["metadata"] = dict(fields[METADATA])
    if fields.get(TAGS):
        arguments["tags"] = dict(fields[TAGS])
    elif TAGS in fields and fields[TAGS] is None:
        not_kept.append(TAGS)
    if fields.get(TIER):
        try:
            arguments["standard_blob_tier"] = StandardBlobTier(fields[TIER])
        except ValueError:
            not_kept.append(f"tier {fields[TIER]}")  # of a page blob, or newer than the client
    if TYPE in fields:
        not_kept.append(f"blob type {fields[TYPE]}")
    return arguments, tuple(not_kept)


def _text(value: Any) -> str | None:
    return None if value is None else str(getattr(value, "value", value))
