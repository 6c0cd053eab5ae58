"""Metadata of a file: what its store attaches to it besides content and mode, field by field.

Each kind of store has its own fields, with JSON values; nothing else looks into them. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Metadata = Mapping[str, Any]
# The fields, in words for people, that a store could not put on a file.
NotKept = tuple[str, ...]

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


def packed(metadata: Metadata | None) -> str | None:
    """The text that the history keeps; None where nothing is attached."""
    return _encode(metadata) if metadata else None


def unpacked(text: str | None) -> Metadata | None:
    """The metadata of a text of `packed`; None also for what was kept before there was any."""
    found: Metadata | None = None if text is None else json.loads(text)
    return found
