"""Policy pages: the rules with what they decided lately, and the revocation of an answer's rule."""

from __future__ import annotations

import time
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.policy import Policy, PolicyError
from ringfence.toolkit.authoring.policy_check import Examined
from ringfence.toolkit.authoring.policy_report import report
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.review import policy_view
from ringfence.toolkit.review.accounts import DECIDE
from ringfence.toolkit.review.context import PageContext, form, to
from ringfence.toolkit.rule_offers import answering, policy_file
from ringfence.toolkit.text import diff

SECONDS = 3.0  # that findings, cases and invariants may take on this page
KEPT = 60.0  # seconds that they are shown without being made anew


def routes(context: PageContext) -> list[Route]:
    """Return the routes of the policy pages."""

    known: dict[tuple[str, int], Examined | None] = {}

    def examined(policy: Policy) -> Examined | None:
        """Return the report on a policy, made at most once a minute: the cases beside it may change."""
        key = policy.revision, int(time.time() // KEPT)
        if key not in known:
            known.clear()
            known[key] = report(policy, SECONDS)
        return known[key]

    async def policy(request: Request) -> Response:
        """Show the rules of the policy with what they decided lately."""
        found = await context.run(lambda: policy_view.view(context))
        examination = await context.run(lambda: examined(found.policy))
        shown = request.query_params.get("revoked")
        return await context.page(
            request, "policy", view=found, examined=examination, days=policy_view.DAYS, revoked=shown
        )

    async def ask(request: Request) -> Response:
        """Show what the policy would lose with a rule. CallError `not_found` or `policy_invalid`."""
        rule = str(request.path_params["rule"])
        return await context.page(request, "revoke", **await context.run(lambda: _without(context, rule)))

    async def revoke(request: Request) -> Response:
        """Take a rule of an answer out of the policy."""
        person, fields = await form(request, DECIDE)
        rule = str(request.path_params["rule"])
        await context.run(lambda: _revoke(context, rule, person.name, fields.get("reason", "")))
        return to(request, f"/policy?revoked={rule}")

    return [
        Route("/policy", policy, methods=["GET"]),
        Route("/policy/rules/{rule}", ask, methods=["GET"]),
        Route("/policy/rules/{rule}", revoke, methods=["POST"]),
    ]


def _source(context: PageContext) -> tuple[Path, Policy]:
    if context.source is None:
        raise CallError("not_found", "There is no policy file that a rule could be taken out of")
    try:
        return context.source, Policy.load(context.source, kept=False)
    except PolicyError as error:
        raise CallError("policy_invalid", str(error).partition("\n")[0], where="policy") from None


def _without(context: PageContext, rule: str) -> dict[str, object]:
    place, policy = _source(context)
    file, data = answering.without(policy, place, rule)
    found = answering.find(policy, rule)
    return {
        "rule": found,
        "answered": policy_view.request_for(context.session, rule),
        "file": file.name,
        "text": diff(file.name, file.data, data),
    }


def _revoke(context: PageContext, rule: str, by: str, reason: str) -> None:
    place, policy = _source(context)
    file, data = answering.without(policy, place, rule)
    context.session.approvals.revoke_rule(
        rule, by=by, reason=reason, first=lambda: policy_file.replace(file, data)
    )
