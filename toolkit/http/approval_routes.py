"""`/approvals`: pending approvals, and the decisions of people. It grants; it never executes a call.

An agent's token sees only that agent's requests and decides none.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.toolkit.approvals.requests import ONCE, Answer
from ringfence.toolkit.approvals.requests import Request as ApprovalRequest
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.http.responses import as_json, check_role, object_in, text_in
from ringfence.toolkit.http.session_pool import SessionPool
from ringfence.toolkit.http.tokens import AGENT, PERSON, Caller
from ringfence.toolkit.session import agent_view
from ringfence.toolkit.session.session import Session

DECISIONS = ("grant", "refuse", "revoke", "reopen")


def routes(pool: SessionPool) -> list[Route]:
    """Return the routes: list, show and decide approvals."""

    async def listing(request: Request) -> Response:
        """List the approvals that the caller may see."""
        caller = check_role(request, PERSON, AGENT)
        every = request.query_params.get("all") == "true"
        found = await pool.run(lambda: pool.approver.approvals.listing(every=every), caller)
        return as_json({"approvals": [_shown(caller, one) for one in found if _may_see(caller, one)]})

    async def show(request: Request) -> Response:
        """Return one approval. CallError `not_found`."""
        caller = check_role(request, PERSON, AGENT)
        name = request.path_params["id"]
        found = await pool.run(lambda: pool.approver.approvals.get(name), caller)
        if not _may_see(caller, found):
            raise CallError("not_found", f"No approval has the id '{name}'")
        return as_json(_shown(caller, found))

    async def decide(request: Request) -> Response:
        """Grant, refuse, revoke or reopen an approval. CallError `forbidden` for an agent's token."""
        caller = check_role(request, PERSON)
        fields = await object_in(request, {"decision", "scope", "reason", "pattern", "until", "confirmed"})
        name = request.path_params["id"]
        found = await pool.run(lambda: _decided(pool.approver, caller, name, fields), caller)
        pool.metrics.add("ringfence_approvals_total", answer=found.state)
        return as_json(found.to_json())

    return [
        Route("/approvals", listing, methods=["GET"]),
        Route("/approvals/{id}", show, methods=["GET"]),
        Route("/approvals/{id}", decide, methods=["POST"]),
    ]


def _shown(caller: Caller, asked: ApprovalRequest) -> dict[str, Any]:
    """Return a request for its reader: all of it for a person, without content and rule for an agent."""
    return asked.to_json() if caller.role == PERSON else agent_view.request_fields(asked)


def _may_see(caller: Caller, asked: ApprovalRequest) -> bool:
    return caller.role == PERSON or asked.agent == caller.name


def _decided(approver: Session, caller: Caller, name: str, fields: dict[str, Any]) -> ApprovalRequest:
    decision, reason = text_in(fields, "decision"), text_in(fields, "reason", "")
    if decision not in DECISIONS:
        known = ", ".join(DECISIONS)
        raise CallError("invalid_arguments", f"'decision' is not one of {known}", where="decision")
    if decision == "revoke":
        return approver.approvals.revoke(name, by=caller.name, reason=reason)
    if decision == "reopen":
        return approver.approvals.reopen(name, by=caller.name, reason=reason)
    until = fields.get("until")
    if until is not None and (isinstance(until, bool) or not isinstance(until, int | float)):
        raise CallError("invalid_arguments", "'until' is not a number of POSIX seconds", where="until")
    scope = text_in(fields, "scope", ONCE)
    if scope not in ("once", "session", "pattern"):
        raise CallError("invalid_arguments", "'scope' is once, session or pattern", where="scope")
    pattern = text_in(fields, "pattern") if "pattern" in fields else None
    confirmed = fields.get("confirmed", False)
    if not isinstance(confirmed, bool):
        raise CallError("invalid_arguments", "'confirmed' is not true or false", where="confirmed")
    return approver.approvals.answer(
        name, Answer(decision == "grant", scope, reason, caller.name, pattern, until, confirmed)
    )
