"""Metadata of a file: the fields that its store attaches to it, besides content and mode.

Each kind of store has its own fields, with JSON values; no other module interprets them. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Metadata = Mapping[str, Any]
# The fields that a store could not set on a file, in words for people.
NotKept = tuple[str, ...]

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


def packed(metadata: Metadata | None) -> str | None:
    """Return the text that the history stores; None if there is no metadata."""
    return _encode(metadata) if metadata else None


def unpacked(text: str | None) -> Metadata | None:
    """Return the metadata of a text from `packed`; None also for older records, which have none."""
    found: Metadata | None = None if text is None else json.loads(text)
    return found
