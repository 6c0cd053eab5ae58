"""Metadata of a file in a store that only fsspec reaches: read from a listing, never set.

Only metadata that people attach to a file; never what the store itself records: times, checksums, ids.
"""

from __future__ import annotations

import json
from typing import Any

from ringfence.toolkit.plan.metadata import Metadata, NotKept

_OF_THE_FILE_ALONE = frozenset({"owner", "group"})  # fields that a copy does not take along
# By the key in a row, in lower case and without signs, as fsspec's many stores write it.
_WORDS = {
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


def told(row: dict[str, Any]) -> Metadata:
    """Return the metadata fields in a row of a listing, by their names in our records."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in row.items():
        word = _WORDS.get("".join(filter(str.isalnum, str(key))).lower())
        if word is not None and value not in (None, "", {}, []):
            found.setdefault(word, {})[str(key)] = json.loads(json.dumps(value, default=str))
    return found


def of_a_copy(fields: Metadata) -> Metadata:
    """Return the fields that a copy takes along."""
    return {word: value for word, value in fields.items() if word not in _OF_THE_FILE_ALONE}


def not_kept(wanted: Metadata, now: Metadata) -> NotKept:
    """Return the wanted fields that the file does not have now, in words."""
    return tuple(sorted(word for word, value in wanted.items() if now.get(word) != value))
