"""Audit pages: records with filters, verification of the chain, and the policy with each rule's hits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from ringfence.policy import Policy
from ringfence.policy.model import ACTIONS, DEFAULT_AGENT, Rule
from ringfence.policy.patterns.syntax import PatternError
from ringfence.toolkit.audit import command_records
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.authoring.matrix import matrix
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.html_page import page
from ringfence.toolkit.review.context import PageContext
from ringfence.toolkit.session.session import Session

RECORDS = 200
_FILTERS = ("session", "agent", "tool", "path", "command", "effect", "would", "outcome", "by")


@dataclass(frozen=True, slots=True)
class Hit:
    """A rule and the number of calls that it decided."""

    rule: Rule
    count: int


def routes(desk: PageContext) -> list[Route]:
    """Return the routes of the audit pages."""

    async def log(request: Request) -> Response:
        """Show the last records that match the filters."""
        wanted: dict[str, Any] = {name: request.query_params.get(name) or None for name in _FILTERS}
        found = await desk.run(lambda: _last(desk.session, wanted))
        return await desk.page(request, "audit", records=list(reversed(found)), wanted=wanted, most=RECORDS)

    async def verify(request: Request) -> Response:
        """Check the chain and show its faults."""
        state = desk.session.state
        return await desk.page(
            request, "verify", found=await desk.run(lambda: audit.checked(state, state.key))
        )

    async def policy(request: Request) -> Response:
        """Show the rules of the policy with their hits."""
        hits = await desk.run(lambda: _hits(desk.session))
        return await desk.page(request, "policy", policy=desk.session.policy, hits=hits)

    async def tree(_: Request) -> Response:
        """Show the verdicts on the tree of files."""
        text = await desk.run(lambda: _matrix(desk))
        # The page has its own content security policy; a browser enforces both.
        return HTMLResponse(text, headers={"Content-Security-Policy": "frame-ancestors 'none'"})

    return [
        Route("/audit", log, methods=["GET"]),
        Route("/audit/verify", verify, methods=["GET"]),
        Route("/policy", policy, methods=["GET"]),
        Route("/policy/matrix", tree, methods=["GET"]),
    ]


def _last(session: Session, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the last records that match. CallError `invalid_arguments` for words that are no pattern."""
    if wanted["command"] is not None:
        try:
            command_records.pattern(wanted["command"])
        except PatternError as error:
            raise CallError("invalid_arguments", error.message, where="command", hint=error.hint) from None
    return audit.newest(session.state, audit.RecordFilter(**wanted), RECORDS)


def _hits(session: Session) -> list[Hit]:
    """Return the rules in the policy's order.

    Records of earlier revisions count where the rule is the same.
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    for kind, count in audit.kinds(session.state):
        if kind.rule is not None:
            counts[kind.rule] += count
    return [Hit(rule, counts[_key(rule)]) for rule in _rules(session.policy)]


def _key(rule: Rule) -> tuple[Any, ...]:
    return rule.tier, rule.agent, rule.key, rule.pattern


def _rules(policy: Policy) -> Iterator[Rule]:
    content = policy.whole  # with the rules on trial
    for item in content.mandatory:
        yield from item.rules
    for agent in content.agents.values():
        for listed in agent.rules.values():
            yield from listed
    for listed in content.rules.values():
        yield from listed


def _matrix(desk: PageContext) -> str:
    with desk.act_as(DEFAULT_AGENT, None) as session:
        agents = [DEFAULT_AGENT, *(name for name in session.policy.content.agents if "*" not in name)]
        found = matrix(session.workspace, session.policy, ".", list(dict.fromkeys(agents)), ACTIONS)
    root = PurePath(session.workspace.url).name or session.workspace.url
    return page("matrix", f"Ringfence: {root}", {"root": root, **found.to_json()})
