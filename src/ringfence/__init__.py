"""Ringfence: judges, asks about, applies and records what AI agents do to files.

The names that users need; each is imported when it is first asked for.
"""

from __future__ import annotations

import sys

from ringfence._lazy_names import lazy_names
from ringfence._old_names import OldNames

TYPE_CHECKING = False  # by hand, as importing `typing` for it takes as long as a bare start
if TYPE_CHECKING:
    from ringfence.policy import Decision, Effect, Need, Policy, PolicyError
    from ringfence.toolkit.approvals.requests import Answer, Request
    from ringfence.toolkit.call import Result, ToolCall, parse_call
    from ringfence.toolkit.errors import CODES, CallError
    from ringfence.toolkit.session.aio import AsyncSession
    from ringfence.toolkit.session.session import Session
    from ringfence.toolkit.tools import TOOLS, Tool

__all__ = [
    "CODES",
    "TOOLS",
    "Answer",
    "AsyncSession",
    "CallError",
    "Decision",
    "Effect",
    "Need",
    "Policy",
    "PolicyError",
    "Request",
    "Result",
    "Session",
    "Tool",
    "ToolCall",
    "parse_call",
]

if not any(isinstance(finder, OldNames) for finder in sys.meta_path):
    sys.meta_path.insert(0, OldNames())

_JUDGING = ("Decision", "Effect", "Need", "Policy", "PolicyError")
_HOMES = {name: "policy" if name in _JUDGING else "toolkit" for name in __all__}
__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
