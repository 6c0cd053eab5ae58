"""Metadata of a file in a store that only fsspec supports: read from a listing, never set.

Only metadata that people attach to a file; not what the store itself records, such as times and checksums.
"""

from __future__ import annotations

import json
from typing import Any

from ringfence.toolkit.plan.metadata import Metadata, NotKept

_NOT_COPIED = frozenset({"owner", "group"})  # fields that a copy does not take along
# By the key in a row of one of fsspec's stores, in lower case and without punctuation.
_FIELDS = {
    "accesstier": "storage class",
    "acl": "access list",
    "appproperties": "user metadata",
    "cachecontrol": "cache control",
    "contentdisposition": "content disposition",
    "contentencoding": "content encoding",
    "contentlanguage": "content language",
    "contenttype": "content type",
    "custommetadata": "user metadata",
    "customtime": "custom time",
    "gid": "group",
    "group": "group",
    "kmskeyname": "encryption",
    "mediatype": "content type",
    "metadata": "user metadata",
    "mimetype": "content type",
    "mode": "mode",
    "owner": "owner",
    "permission": "mode",
    "permissions": "mode",
    "properties": "user metadata",
    "storageclass": "storage class",
    "tags": "tags",
    "tier": "storage class",
    "uid": "owner",
    "unixgroup": "group",
    "unixmode": "mode",
    "unixowner": "owner",
    "usermetadata": "user metadata",
}


def fields_in(row: dict[str, Any]) -> Metadata:
    """Return the metadata fields in a row of a listing, by their names in our records."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in row.items():
        field = _FIELDS.get("".join(filter(str.isalnum, str(key))).lower())
        if field is not None and value not in (None, "", {}, []):
            found.setdefault(field, {})[str(key)] = json.loads(json.dumps(value, default=str))
    return found


def copied_fields(fields: Metadata) -> Metadata:
    """Return the fields that a copy takes along."""
    return {field: value for field, value in fields.items() if field not in _NOT_COPIED}


def not_kept(wanted: Metadata, now: Metadata) -> NotKept:
    """Return the wanted fields that the file does not have now, in words."""
    return tuple(sorted(field for field, value in wanted.items() if now.get(field) != value))
