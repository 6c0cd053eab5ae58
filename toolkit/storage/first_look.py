"""First look at a path: its stat, with what a call needs next if the store sends both in one answer.

A store without the method `look` gets `stat`. The caller judges first: content is asked for only where the
policy allows reading it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ringfence.toolkit.plan.changes import Stat
from ringfence.toolkit.plan.entries import LooksFor
from ringfence.toolkit.storage.backend import Spot, Tree

MAX_CONTENT = 16 << 20  # bytes of a file that a first look brings; larger ones are read in their turn


class Look(NamedTuple):
    """What a first look found: the stat, None if nothing exists, and perhaps the content of that version."""

    stat: Stat | None
    content: bytes | None = None


def look(backend: Tree, spot: Spot, wanted: LooksFor, beside: Sequence[Spot]) -> Look:
    """Look at a path. `beside` are the spots of this call that were looked at just before: one listing may
    show several of them.
    """
    own = getattr(backend, "look", None)
    if own is None:
        return Look(backend.stat(spot))
    found: Look = own(spot, wanted, beside)
    return found
