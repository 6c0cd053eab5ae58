"""Asker of a request as lines of text: who waits since when, the agent's own words, and what it was told.

Pure. What an agent wrote is quoted and escaped.
"""

from __future__ import annotations

from ringfence.toolkit.approvals.requests import Request
from ringfence.toolkit.text import age, escape, quoted, zoned


def waiting_lines(request: Request, now: float) -> list[tuple[str, str]]:
    """Return who asked, when and why, each line with its style; `now` in POSIX seconds."""
    lines = [
        (f"  agent: {escape(request.agent)}   session: {escape(request.session)}", "dim"),
        (f"  asked: {age(now - request.asked)} ago, at {zoned(request.asked)}", "dim"),
    ]
    if request.description:
        lines.append((f"  agent says: {quoted(request.description)}", ""))
    return lines


def told_lines(request: Request, now: float, last_call: float | None = None) -> list[tuple[str, str]]:
    """Return what the agent of a queued request was told, and when its session last called (POSIX)."""
    title = request.shown.get("title") or request.title
    lines = [(f"  the agent was told: approval needed: {escape(title)}", "dim")]
    if reason := request.shown.get("reason"):
        lines.append((f"    because: {escape(reason)}", "dim"))
    lines.append(("  it may go on meanwhile, and sends the call again once it is granted", "dim"))
    if last_call is not None:
        lines.append((f"  last call of its session: {age(now - last_call)} ago", "dim"))
    return lines
