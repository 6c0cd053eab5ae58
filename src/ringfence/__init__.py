"""Ringfence: judges, asks about, applies and records what AI agents do to files.

The names that users need; each is imported when it is first asked for.
"""

from __future__ import annotations

import sys

from ringfence._old_names import OldNames

TYPE_CHECKING = False  # by hand, as importing `typing` for it takes as long as a bare start
if TYPE_CHECKING:
    from typing import Any

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

_POLICY_NAMES = ("Decision", "Effect", "Need", "Policy", "PolicyError")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = "ringfence.policy" if name in _POLICY_NAMES else "ringfence.toolkit"
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
