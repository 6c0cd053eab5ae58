"""The session: a call through its stages, from arguments to record.

Each name is imported at its first use.
"""

from __future__ import annotations

from ringfence._lazy_names import lazy_names

TYPE_CHECKING = False  # by hand, as importing `typing` for it takes as long as a bare start
if TYPE_CHECKING:
    from ringfence.toolkit.session.aio import AsyncSession
    from ringfence.toolkit.session.session import Session

__all__ = [
    "AsyncSession",
    "Session",
]

_HOMES = {
    "AsyncSession": "aio",
    "Session": "session",
}


__getattr__ = lazy_names(__name__, _HOMES)
