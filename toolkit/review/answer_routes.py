"""Pages after an answer and for several at once: confirmation, its reversal, and what else it would settle.

Nothing is settled that the person did not tick; what needs a tick of its own is decided alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.toolkit.approvals.requests import GRANTED, ONCE, REFUSED, RULE, SETTLED, Answer
from ringfence.toolkit.approvals.requests import Request as ApprovalRequest
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.review.accounts import DECIDE, Person
from ringfence.toolkit.review.context import PageContext, form, is_early, person_of, to
from ringfence.toolkit.review.request_view import RequestView
from ringfence.toolkit.rule_offers import answering
from ringfence.toolkit.rule_offers.offers import answers
from ringfence.toolkit.rule_offers.settling import by_grant, together

MOST = 50  # requests on one page
_TICKED = "q-"  # before a request's id, in the names of fields


def routes(context: PageContext) -> list[Route]:
    """Return the routes of answers to several requests."""

    async def answered(request: Request) -> Response:
        """Confirm an answer; with nothing else to settle, on the inbox."""
        person_of(request, DECIDE)
        asked, others = await context.run(lambda: _settled(context, _name(request)))
        if not others:
            return to(request, "/")
        return await context.page(
            request, "answered", view=RequestView(asked), others=[RequestView(one) for one in others]
        )

    async def settle(request: Request) -> Response:
        """Give the ticked requests the same answer. CallError `forbidden`."""
        person, fields = await form(request, DECIDE)
        name = _name(request)
        if is_early(fields):
            return to(request, f"/approvals/{name}/answered?early=1")
        await context.run(lambda: _settle(context, name, fields, person))
        return to(request, "/")

    async def bundle(request: Request) -> Response:
        """Show the waiting requests that one answer could settle, each with its diff."""
        views = [RequestView(one) for one in await context.run(lambda: _bundle(context, _name(request)))]
        return await context.page(request, "together", views=views, first=views[0])

    async def decide(request: Request) -> Response:
        """Answer the ticked requests of a bundle, each one time. CallError `forbidden`."""
        person, fields = await form(request, DECIDE)
        name, what = _name(request), fields.get("decision")
        if is_early(fields):
            return to(request, f"/approvals/{name}/together?early=1")
        if what not in (ONCE, "refuse"):
            raise CallError("invalid_arguments", "This is no decision", where="decision")
        answer = Answer(what == ONCE, ONCE, fields.get("reason", ""), person.name)
        await context.run(lambda: _each(context, _ticked(fields, _bundle(context, name)), answer))
        return to(request, "/")

    return [
        Route("/approvals/{id}/answered", answered, methods=["GET"]),
        Route("/approvals/{id}/answered", settle, methods=["POST"]),
        Route("/approvals/{id}/together", bundle, methods=["GET"]),
        Route("/approvals/{id}/together", decide, methods=["POST"]),
    ]


def _name(request: Request) -> str:
    return str(request.path_params["id"])


def _ticked(fields: dict[str, str], shown: Iterable[ApprovalRequest]) -> list[ApprovalRequest]:
    return [one for one in shown if fields.get(_TICKED + one.id) == "1"]


def _bundle(context: PageContext, name: str) -> list[ApprovalRequest]:
    """Return the waiting requests that belong together with one. CallError `not_found`, `approval_stale`."""
    asked = context.session.approvals.get(name)
    context.session.approvals.check_waits(asked)
    waiting = [one for one in context.session.approvals.waiting() if not RequestView(one).tick]
    found = next((group for group in together(waiting) if any(one.id == name for one in group)), [asked])
    return found[:MOST]


def _settled(context: PageContext, name: str) -> tuple[ApprovalRequest, list[ApprovalRequest]]:
    """Return an answered request, and the waiting ones that get the same answer if a person ticks them."""
    approvals = context.session.approvals
    asked = approvals.get(name)
    waiting = [one for one in approvals.waiting() if one.id != name and not RequestView(one).tick]
    if asked.state == SETTLED and asked.scope == RULE:
        policy, fold = context.policy(), context.session.fold
        found = [one for one in waiting if answers(policy, one, fold)]
    elif asked.state == GRANTED and asked.scope != ONCE:
        answer = Answer(True, asked.scope, pattern=asked.pattern, until=asked.until)
        known = {one.id for one in waiting}
        found = [one for one in by_grant(approvals, asked, answer) if one.id in known]
    elif asked.state in (GRANTED, REFUSED) and asked.rules and not RequestView(asked).tick:
        found = [one for one in waiting if _is_alike(asked, one)]
    else:
        found = []
    return asked, [one for one in found if approvals.refusal(one) is None][:MOST]


def _is_alike(asked: ApprovalRequest, other: ApprovalRequest) -> bool:
    """Whether two requests would have been in one bundle while both waited."""
    names = ("session", "agent", "tool", "revision", "rules", "of_command")
    return all(getattr(asked, name) == getattr(other, name) for name in names)


def _settle(context: PageContext, name: str, fields: dict[str, str], person: Person) -> None:
    asked, others = _settled(context, name)
    ticked = _ticked(fields, others)
    if asked.state == SETTLED or (asked.state == GRANTED and asked.scope != ONCE):
        by = asked.settled_by or asked.id
        answering.settle_others(context.session.approvals, ticked, by, asked.scope, by=person.name)
    else:
        _each(context, ticked, Answer(asked.state == GRANTED, ONCE, asked.reason, person.name))


def _each(context: PageContext, requests: Iterable[ApprovalRequest], answer: Answer) -> None:
    for one in requests:
        with suppress(CallError):  # answered meanwhile: it shows what it is now
            context.session.approvals.answer(one.id, answer)
