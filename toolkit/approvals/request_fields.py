"""What the store of approvals needs of a request: the lineage of its names, and errors about it.

Pure.
"""

from __future__ import annotations

from ringfence.toolkit.approvals.requests import GRANTED, REFUSED, REVOKED, Request
from ringfence.toolkit.errors import CallError


def over(request: Request, which: str = "") -> CallError:
    """Return the error for an answer to a finished request: how it ended, and by whom."""
    by = f" by {request.by}" if request.by and request.state in (GRANTED, REFUSED, REVOKED) else ""
    why = f": {request.reason}" if request.reason and request.state == REFUSED else ""
    hint = f"`ringfence approvals reopen {request.id}` lets it be answered again"
    what = which or f"The approval '{request.id}'"
    return CallError(
        "approval_stale",
        f"{what} is already {request.state}{by}{why}",
        hint=hint if request.state == REFUSED else None,
    )


def lineage(name: str) -> tuple[str, ...]:
    """Return an agent's or session's name and the names of all its parents."""
    parts = name.split("/")
    return tuple("/".join(parts[: n + 1]) for n in range(len(parts)))


def marks(values: tuple[str, ...]) -> str:
    return ", ".join("?" * len(values))


def refusal(reason: str) -> str:
    return f"A person refused this: {reason}" if reason else "A person refused this"
