"""Needs of a request as a person is shown them: which action on which path, and what of it asks.

Pure. A move reads and deletes its source and writes its destination: nothing is said of the other end.
"""

from __future__ import annotations

from typing import Any

from ringfence.toolkit.approvals.store import Request
from ringfence.toolkit.grant_patterns import outermost
from ringfence.toolkit.text import escape


def shown_needs(request: Request) -> tuple[dict[str, Any], ...]:
    """The needs that a person decides about: a read only where it asks, or nothing else is done there."""
    changed = {need["path"] for need in request.needs if need["action"] != "read"}
    found = (n for n in request.needs if n["action"] != "read" or n["asks"] or n["path"] not in changed)
    return tuple(found) or tuple(_of_older(request))


def in_lines(request: Request) -> list[tuple[str, str]]:
    """The needs as (text, style), a line for each outermost path; what asks comes first."""
    needs = shown_needs(request)
    some_ask = any(need["asks"] for need in needs)
    lines: list[tuple[str, str]] = []
    for asks in (True, False):
        for action in dict.fromkeys(need["action"] for need in needs):
            group = [
                need["path"]
                for need in needs
                if not need["on_the_way"] and (need["action"], need["asks"]) == (action, asks)
            ]
            allowed = " (allowed)" if some_ask and not asks else ""
            lines += [
                (f"  {action}: {escape(path)}{allowed}", "dim" if allowed else "bold")
                for path in outermost(group)
            ]
    made = [escape(need["path"]) for need in needs if need["on_the_way"]]
    return [*lines, (f"  made on the way: {', '.join(made)}", "dim")] if made else lines


def _of_older(request: Request) -> list[dict[str, Any]]:
    """Of a request that was put on file before needs were: every path, with the action that decided."""
    action, asks = request.decision.get("action") or "path", request.asking
    return [
        {
            "action": action,
            "path": path,
            "directory": False,
            "on_the_way": False,
            "asks": path in asks,
        }
        for path in request.paths
    ]
