"""Which plans may be logged: what recovery can make again from the history alone, with the same result."""

from __future__ import annotations

from ringfence.toolkit.history.content_files import LARGE
from ringfence.toolkit.plan.changes import FILE, Delete, Plan, Write
from ringfence.toolkit.storage.backend import Traits
from ringfence.toolkit.storage.guarantees import is_streamed


def is_loggable(plan: Plan, traits: Traits) -> bool:
    """Whether the plan is one creation, replacement or deletion of a small file in the workspace."""
    if plan.quarantined:
        return False
    match plan.changes:
        case (Write() as change,):
            # Other modes and metadata than the file's own are not in the intent.
            plain = change.mode is None and not change.metadata and isinstance(change.data, bytes)
            return plain and size_of(plan) <= LARGE and is_streamed(change.path, traits)
        case (Delete() as change,):
            small = change.stat.kind == FILE and (change.stat.size or 0) <= LARGE
            return small and is_streamed(change.path, traits)
    return False


def size_of(plan: Plan) -> int:
    """Return how many bytes the plan's only change writes."""
    (change,) = plan.changes
    return len(change.data) if isinstance(change, Write) and isinstance(change.data, bytes) else 0
