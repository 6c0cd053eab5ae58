"""Audit records of approval requests: asked, answered, used, revoked."""

from __future__ import annotations

from typing import Any

from ringfence.toolkit.approvals.requests import GRANTED, USED, Answer, Request
from ringfence.toolkit.audit import index as audit_index
from ringfence.toolkit.audit.command_records import TO_RUN


def approval_record(request: Request, what: str, answer: Answer, time: float) -> dict[str, Any]:
    """Return the record of what happened to a request at `time` (POSIX seconds)."""
    return {
        "time": time,
        "event": "approval",
        "approval": request.id,
        "outcome": what,
        "session": request.session,
        "agent": request.agent,
        "tool": request.tool,
        **_about(request),
        "digest": request.digest,
        "policy": request.revision,
        "scope": answer.scope if what in (GRANTED, USED) else None,
        "pattern": answer.pattern,
        "until": answer.until,
        "reason": answer.reason,
        "by": answer.by,
    }


def _about(request: Request) -> dict[str, Any]:
    """Return the paths of a request's record, and its command: what is asked about running it is no path."""
    if not request.of_command:
        return audit_index.path_fields(request.paths, request.asking)
    given = request.arguments
    command = {"command": given.get("command"), "cwd": given.get("cwd", "."), "asks": request.of_command}
    if request.of_command == TO_RUN:
        return {"paths": list(request.paths), "command": command}
    return {**audit_index.path_fields(request.paths, request.asking), "command": command}
