"""Needs of a request for the person who decides: each action on each path, with its verdict.

Pure. A move reads and deletes its source and writes its destination; each action is listed at its own end
only.
"""

from __future__ import annotations

from typing import Any

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.grant_patterns import outermost
from ringfence.toolkit.text import escape

_ASKS, _ALLOWED = ("?", "asks", "bold"), ("✓", "allowed", "dim")  # a sign, a word and a style
_MOST = 20  # lines for one action of a command, which may change very many paths


def shown_needs(request: Request) -> tuple[dict[str, Any], ...]:
    """Return the needs to decide about; a read only if it asks, or is all that is done at its path."""
    changed = {need["path"] for need in request.needs if need["action"] != "read"}
    found = (n for n in request.needs if n["action"] != "read" or n["asks"] or n["path"] not in changed)
    return tuple(found) or tuple(_of_older(request))


def in_lines(request: Request) -> list[tuple[str, str]]:
    """Return lines of (text, style), one for each outermost path; needs that ask come first."""
    needs = shown_needs(request)
    some_ask = any(need["asks"] for need in needs)
    lines: list[tuple[str, str]] = []
    actions = dict.fromkeys(map(name_of, needs))
    if request.of_command:  # of many changes those that destroy are read first
        actions = dict.fromkeys(sorted(actions, key=lambda action: action != "delete"))
    for asks in (True, False):
        for action in actions:
            group = [
                need["path"]
                for need in needs
                if not need["on_the_way"] and (name_of(need), need["asks"]) == (action, asks)
            ]
            sign, verdict, style = _ALLOWED if some_ask and not asks else _ASKS
            # Of commands each is named: one that begins like another is not inside it.
            named = list(dict.fromkeys(group)) if action == "run" else outermost(group)
            most = _MOST if request.of_command else len(named)
            lines += [(f"  {sign} {action}: {escape(path)} ({verdict})", style) for path in named[:most]]
            if named[most:]:
                more = f"{len(named) - most:,} more, in the diff"
                lines.append((f"  {sign} {action}: {more} ({verdict})", style))
    for need in needs:
        found = [f"  found in {escape(need['path'])}: {escape(each)}" for each in need.get("content", ())]
        lines += [(text, "bold") for text in found[:_MOST]]
    made = [escape(need["path"]) for need in needs if need["on_the_way"]]
    return [*lines, (f"  made on the way: {', '.join(made)}", "dim")] if made else lines


def name_of(need: dict[str, Any]) -> str:
    """Return the action of a need, with its kind (`write.create`) where the policy tells them apart."""
    return f"{need['action']}.{need['kind']}" if need.get("kind") else str(need["action"])


def _of_older(request: Request) -> list[dict[str, Any]]:
    """Return the needs of a request from an older version, which has none: every path with the decision's
    action.
    """
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
