"""Ringfence's tools for files: calls come in as JSON, are judged by a policy, applied and kept undoable."""

from toolkit.approvals import Answer, Request
from toolkit.call import Result, ToolCall, parse_call
from toolkit.errors import CODES, CallError
from toolkit.session import Session
from toolkit.tools import TOOLS, Tool

__all__ = [
    "CODES",
    "TOOLS",
    "Answer",
    "CallError",
    "Request",
    "Result",
    "Session",
    "Tool",
    "ToolCall",
    "parse_call",
]
