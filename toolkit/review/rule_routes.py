"""Rule pages: rules that would answer a request for good, each with what it opens before it is written.

Only a signed-in person who may decide gets here. What is written is what was shown: the end and the new bytes
of the policy's file are checked against the page.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.policy.errors import PolicyError
from ringfence.toolkit.approvals.requests import GRANTED, PENDING, SETTLED, USED
from ringfence.toolkit.approvals.requests import Request as ApprovalRequest
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.scopes import scopes
from ringfence.toolkit.review.accounts import DECIDE
from ringfence.toolkit.review.context import PageContext, form, is_early, person_of, to
from ringfence.toolkit.review.request_view import RequestView
from ringfence.toolkit.rule_offers import answering
from ringfence.toolkit.rule_offers.offers import PROVED, Offer
from ringfence.toolkit.rule_offers.rule_ends import ENDS, NEVER, TODAY, WEEK, rule_end
from ringfence.toolkit.rule_offers.settling import Settled, by_rule

_WEEK = 7 * 86_400.0
_NOTES = {
    "new": "You chose another end: look at the changed rule, and write it.",
    "changed": "The policy or the rule has changed since this page was shown: look at it again.",
}


@dataclass(frozen=True, slots=True)
class Choice:
    """An offered rule with what it settles, and the digest of the bytes that it would write."""

    offer: Offer
    settled: Settled
    digest: str


def routes(context: PageContext) -> list[Route]:
    """Return the routes of rules from answers."""

    async def choose(request: Request) -> Response:
        """Show the rules that are offered for a request, with one end."""
        person_of(request, DECIDE)
        end, name = request.query_params.get("end", WEEK), str(request.path_params["id"])
        found = await context.run(lambda: _offered(context, name, end if end in ENDS else WEEK))
        chosen = request.query_params.get("rule", "")
        note = next((words for name, words in _NOTES.items() if request.query_params.get(name)), "")
        return await context.page(request, "always", chosen=chosen, note=note, **found)

    async def write(request: Request) -> Response:
        """Write the chosen rule, if the page showed exactly that. CallError `forbidden`."""
        person, fields = await form(request, DECIDE)
        name = str(request.path_params["id"])
        place = f"/approvals/{name}/rule"
        width, end = fields.get("rule", ""), fields.get("end", "")
        again = f"{place}?end={end if end in ENDS else WEEK}&rule={width if width.isalpha() else ''}"
        if is_early(fields):
            return to(request, f"{again}&early=1")
        if end != fields.get("shown_end"):
            return to(request, f"{again}&new=1")
        written = await context.run(lambda: _write(context, name, width, fields, person.name))
        return to(request, f"/approvals/{name}/answered" if written else f"{again}&changed=1")

    return [
        Route("/approvals/{id}/rule", choose, methods=["GET"]),
        Route("/approvals/{id}/rule", write, methods=["POST"]),
    ]


def _offered(context: PageContext, name: str, end: str) -> dict[str, Any]:
    asked, now = context.session.approvals.get(name), time.time()
    until = rule_end(end, now)
    choices: list[Choice] = []
    left: tuple[tuple[str, str], ...] = ()
    file, problem, hint = "", "", ""
    try:
        context.session.approvals.check_waits(asked)
        choices, left, file = _choices(context, asked, now, until)
    except CallError as error:
        problem, hint = error.message, error.advice or ""
    except PolicyError as error:
        problem = f"The policy does not load: {error.problems[0].message}"
    return {
        "asked": asked,
        "view": RequestView(asked),
        "choices": choices,
        "left_out": left,
        "file": file,
        "problem": problem,
        "hint": hint,
        "proved": PROVED,
        "end": end,
        "until": until,
        "ends": [(word, rule_end(word, now)) for word in (TODAY, WEEK, NEVER)],
        "scopes": list(scopes(asked))[1:] if asked.state == PENDING else [],
        "counts": _counts(context, asked, now),
    }


def _choices(
    context: PageContext, asked: ApprovalRequest, now: float, until: int | None
) -> tuple[list[Choice], tuple[tuple[str, str], ...], str]:
    if context.source is None:
        raise CallError(
            "permission_denied",
            "There is no policy file that a rule could be written to",
            hint="`ringfence init` makes one",
        )
    session, policy = context.session, context.session.policy_now()
    made, file = answering.offers_for(session.workspace, policy, context.source, asked, now=now, until=until)
    before = file.reload(file.data).at(now)
    choices = [
        Choice(
            offer,
            by_rule(session.approvals, asked, before, offer.after.at(now), session.fold),
            hashlib.sha256(offer.data).hexdigest(),
        )
        for offer in made.offers
    ]
    return choices, made.left_out, file.name


def _counts(context: PageContext, asked: ApprovalRequest, now: float) -> tuple[int, int]:
    """Return how often the same rules asked the agent in the last week, and how often the answer was yes."""
    every = context.session.approvals.listing(every=True)
    same = [
        one
        for one in every
        if one.agent == asked.agent and one.rules == asked.rules and now - one.asked <= _WEEK
    ]
    return len(same), sum(one.state in (GRANTED, USED, SETTLED) for one in same)


def _write(context: PageContext, name: str, width: str, fields: dict[str, str], by: str) -> bool:
    """Write a rule; whether it was still the rule that the page showed. Raises CallError."""
    session, now = context.session, time.time()
    approvals = session.approvals
    asked = approvals.get(name)
    if context.source is None:
        raise CallError("permission_denied", "There is no policy file that a rule could be written to")
    policy = session.policy_now()
    if answering.complete(approvals, policy, name, by=by) is not None:
        return True
    approvals.check_waits(asked)
    until = _until(fields.get("until", ""), now)
    try:
        made, file = answering.offers_for(
            session.workspace, policy, context.source, asked, now=now, until=until, widths=(width,)
        )
    except PolicyError as error:
        raise CallError("policy_invalid", f"The policy does not load: {error.problems[0].message}") from None
    offer = made.of_width(width)
    shown = fields.get(f"digest-{width}", "")
    if offer is None or not secrets.compare_digest(hashlib.sha256(offer.data).hexdigest(), shown):
        return False
    answering.write(approvals, asked, offer, file, by=by, reason=fields.get("reason", ""))
    return True


def _until(text: str, now: float) -> int | None:
    """Return the end that a page showed. CallError `invalid_arguments` for one that has passed, or none."""
    if not text:
        return None
    until = int(text) if text.isascii() and text.isdigit() and len(text) < 13 else 0
    if until <= now:
        raise CallError("invalid_arguments", "The rule would end before it begins", where="until")
    return until
