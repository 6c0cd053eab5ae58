"""Approvals: requests, answers and grants.

Each name is imported at its first use.
"""

from __future__ import annotations

TYPE_CHECKING = False  # by hand, as importing `typing` for it takes as long as a bare start
if TYPE_CHECKING:
    from typing import Any

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


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value
