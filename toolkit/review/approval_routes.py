"""Approval pages: the inbox, one approval with its whole plan, and the decision. Never executes a call."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.policy import Need
from ringfence.toolkit.approvals.grant_scope import is_broad
from ringfence.toolkit.approvals.requests import GRANTED, ONCE, PATTERN, PENDING, REFUSED, SESSION, Answer
from ringfence.toolkit.approvals.requests import Request as ApprovalRequest
from ringfence.toolkit.call import read_json
from ringfence.toolkit.durations import ahead
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.command_requests import notice
from ringfence.toolkit.granting.effects import effects
from ringfence.toolkit.granting.needs import name_of, shown_needs
from ringfence.toolkit.granting.scopes import granted_in_words, scopes
from ringfence.toolkit.review.accounts import DECIDE
from ringfence.toolkit.review.context import PageContext, form, to
from ringfence.toolkit.session.amend import amend, amended
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.storage.backend import at
from ringfence.toolkit.storage.guarantees import is_restorable
from ringfence.toolkit.text import rfc3339

MOST = 200  # approvals on one page
FILES = 1000  # files of a plan that are listed


@dataclass(frozen=True, slots=True)
class Judged:
    """One need of a plan with its verdict.

    `kept` is false for content that could not be restored, `made` true for a missing parent directory, which
    only a deny stops.
    """

    action: str
    path: str
    effect: str
    because: dict[str, Any]
    kept: bool
    made: bool


def routes(desk: PageContext) -> list[Route]:
    """Return the routes of the approval pages."""

    async def inbox(request: Request) -> Response:
        """Show the pending approvals, a page at a time."""
        every = request.query_params.get("all") == "1"
        found = await desk.run(lambda: desk.session.approvals.listing(every=every))
        found = list(reversed(found)) if every else found
        return await desk.page(request, "inbox", found=found[:MOST], total=len(found), every=every)

    async def show(request: Request) -> Response:
        """Show one approval with its plan. CallError `not_found`."""
        return await desk.page(request, "approval", **await desk.run(lambda: _about(desk, _name(request))))

    async def decide(request: Request) -> Response:
        """Record the decision of a form, then show the inbox. CallError `forbidden`."""
        person, fields = await form(request, DECIDE)
        name, what = _name(request), fields.get("decision", "")
        if what == "change":
            about = await desk.run(lambda: _about(desk, name) | _tried(desk, name, fields))
            return await desk.page(request, "change", **about)
        if what == "revoke":
            await desk.run(lambda: desk.session.approvals.revoke(name, by=person.name))
        elif what == "reopen":
            await desk.run(lambda: desk.session.approvals.reopen(name, by=person.name))
        elif what == "send":
            await desk.run(lambda: _sent(desk, name, fields, person.name))
        else:
            answer = _answer(what, fields, person.name)
            if answer.scope != ONCE and not answer.confirmed:
                return await desk.page(request, "grant", **await desk.run(lambda: _wider(desk, name, answer)))
            await desk.run(lambda: desk.session.approvals.answer(name, answer))
        return to(request, f"/approvals/{name}" if what in ("revoke", "reopen", "send") else "/")

    return [
        Route("/", inbox, methods=["GET"]),
        Route("/approvals/{id}", show, methods=["GET"]),
        Route("/approvals/{id}", decide, methods=["POST"]),
    ]


def _name(request: Request) -> str:
    return str(request.path_params["id"])


def _about(desk: PageContext, name: str) -> dict[str, Any]:
    asked = desk.session.approvals.get(name)
    policy = desk.session.policy
    current = asked.revision == policy.revision
    return {
        "asked": asked,
        "open": asked.state == PENDING,
        "arguments": json.dumps(asked.arguments, indent=2, ensure_ascii=True),
        "judged": _judged(desk.session, asked) if current else None,
        "files": len(asked.paths),
        "needs": len(shown_needs(asked)),
        "granted_for": granted_in_words(asked) if asked.state == GRANTED else "",
        "refused": asked.state == REFUSED,
        "scopes": list(scopes(asked)),
        "notice": notice(asked),
    }


def _wider(desk: PageContext, name: str, answer: Answer) -> dict[str, Any]:
    """Return what a grant for more than this change would cover, before it is granted."""
    asked = desk.session.approvals.get(name)
    if asked.state == PENDING:
        desk.session.approvals.check(asked, answer)
    return {
        "asked": asked,
        "answer": answer,
        "effects": effects(desk.session, asked, answer),
        "until": rfc3339(answer.until),
        "broad": is_broad(asked, answer.scope, answer.pattern),
    }


def _judged(session: Session, asked: ApprovalRequest) -> list[Judged]:
    """Return the policy's verdict on each need by itself; the call has the strictest, and its limits."""
    found = []
    for one in shown_needs(asked)[:FILES]:
        action, path = one["action"], one["path"]
        need = Need(action, path, one["directory"], kind=one.get("kind", ""))
        decision = session.policy.decide(asked.agent, asked.tool, [need], fold=session.fold).to_json()
        kept = action != "delete" or _is_kept(session, path)
        found.append(Judged(name_of(one), path, str(decision["effect"]), decision, kept, one["on_the_way"]))
    return found


def _is_kept(session: Session, path: str) -> bool:
    """Whether the content at a path would be kept if it were removed."""
    backend = session.workspace.backend
    try:
        with at(backend, path) as spot:
            stat = backend.stat(spot)
    except CallError:
        return True  # an unreachable path is not removed
    return stat is None or is_restorable(path, stat, backend.traits)


def _answer(what: str, fields: dict[str, str], by: str) -> Answer:
    reason = fields.get("reason", "")
    if what == "refuse":
        return Answer(False, reason=reason, by=by)
    if what not in (ONCE, PATTERN, SESSION):
        raise CallError("invalid_arguments", "This is no decision", where="decision")
    until = fields.get("until", "").strip() if what != ONCE else ""
    ends = ahead(until, time.time()) if until else None
    if ends is None and until:
        raise CallError("invalid_arguments", "An end is a span such as 2h or an RFC 3339 time", where="until")
    pattern = fields.get("pattern", "").strip() if what == PATTERN else None
    return Answer(True, what, reason, by, pattern, ends, fields.get("confirmed") == "1")


def _arguments(fields: dict[str, str]) -> dict[str, Any]:
    found = read_json(fields.get("arguments", "").encode())
    if not isinstance(found, dict):
        raise CallError("invalid_json", "The arguments are not a JSON object", where="arguments")
    return found


def _tried(desk: PageContext, name: str, fields: dict[str, str]) -> dict[str, Any]:
    """Return what the call would do with other arguments."""
    asked, given = desk.session.approvals.get(name), _arguments(fields)
    with desk.act_as(asked.agent, asked.session) as session:
        would = amended(session, name, given)
    return {"would": would, "changed": json.dumps(given, indent=2, ensure_ascii=True)}


def _sent(desk: PageContext, name: str, fields: dict[str, str], by: str) -> None:
    asked, given = desk.session.approvals.get(name), _arguments(fields)
    with desk.act_as(asked.agent, asked.session) as session:
        amend(session, name, given, digest=fields.get("digest", ""), by=by)
