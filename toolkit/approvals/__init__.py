"""Approvals: requests, answers and grants.

Each name is imported at its first use.
"""

from __future__ import annotations

from ringfence._lazy_names import lazy_names

TYPE_CHECKING = False  # by hand, as importing `typing` for it takes as long as a bare start
if TYPE_CHECKING:
    from ringfence.toolkit.approvals.requests import Answer, Request
    from ringfence.toolkit.approvals.store import Approvals

__all__ = [
    "Answer",
    "Approvals",
    "Request",
]

_HOMES = {
    "Answer": "requests",
    "Approvals": "store",
    "Request": "requests",
}


__getattr__ = lazy_names(__name__, _HOMES)
