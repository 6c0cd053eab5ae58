"""Ringfence's file tools: a call arrives as JSON, is judged by a policy, carried out, and can be undone.

Each name is imported at its first use: a command that only needs a verdict loads no session.
"""

from __future__ import annotations

from ringfence._lazy_names import lazy_names

TYPE_CHECKING = False  # by hand, as importing `typing` for it takes as long as a bare start
if TYPE_CHECKING:
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
    "Request",
    "Result",
    "Session",
    "Tool",
    "ToolCall",
    "parse_call",
]

_HOMES = {
    "CODES": "errors",
    "TOOLS": "tools",
    "Answer": "approvals.requests",
    "AsyncSession": "session.aio",
    "CallError": "errors",
    "Request": "approvals.requests",
    "Result": "call",
    "Session": "session.session",
    "Tool": "tools",
    "ToolCall": "call",
    "parse_call": "call",
}


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
