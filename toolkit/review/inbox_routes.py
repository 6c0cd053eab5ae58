"""Inbox: what waits, by session and with what destroys first; the last answer, and figures of questions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.toolkit.approvals.requests import GRANTED, PENDING, REFUSED, SETTLED, USED
from ringfence.toolkit.approvals.requests import Request as ApprovalRequest
from ringfence.toolkit.review import activity
from ringfence.toolkit.review.accounts import LOOK
from ringfence.toolkit.review.context import PageContext, person_of
from ringfence.toolkit.review.question_figures import Figures
from ringfence.toolkit.review.request_view import RequestView
from ringfence.toolkit.rule_offers.settling import together

MOST = 200  # requests on one page
_LAST = 600.0  # seconds for which the inbox shows a person's last answer
WAITING, GIVEN, ANSWERED = "waiting", "granted", "answered"


@dataclass(frozen=True, slots=True)
class Group:
    """The questions of one session: those that one answer could settle are together."""

    session: str
    agents: tuple[str, ...]
    bundles: tuple[tuple[RequestView, ...], ...]
    last: float | None

    @property
    def total(self) -> int:
        """How many questions the session has here."""
        return sum(map(len, self.bundles))


def routes(context: PageContext) -> list[Route]:
    """Return the routes of the inbox."""
    figures = Figures(context)

    async def inbox(request: Request) -> Response:
        """Show the questions that wait, or with `show` what was granted or answered today."""
        person = person_of(request, LOOK).name
        show = request.query_params.get("show", WAITING)
        found = await context.run(lambda: _inbox(context, person, show))
        return await context.page(request, "inbox", figures=await context.run(figures.short), **found)

    async def questions(request: Request) -> Response:
        """Show all figures of questions and answers."""
        return await context.page(request, "questions", **await context.run(figures.whole))

    return [
        Route("/", inbox, methods=["GET"]),
        Route("/questions", questions, methods=["GET"]),
    ]


def _inbox(context: PageContext, person: str, show: str) -> dict[str, Any]:
    every = context.session.approvals.listing(every=True)
    now = time.time()
    midnight = datetime.now().replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    by_state = {
        WAITING: [one for one in every if one.state == PENDING],
        GIVEN: [one for one in every if one.state == GRANTED],
        ANSWERED: [one for one in every if one.decided is not None and one.decided >= midnight],
    }
    found = by_state.get(show, by_state[WAITING])
    shown = found if show != ANSWERED else sorted(found, key=lambda one: -(one.decided or 0))
    views = [RequestView(one) for one in shown[:MOST]]
    return {
        "show": show if show in by_state else WAITING,
        "counts": {name: len(rows) for name, rows in by_state.items()},
        "groups": _groups(context, views) if show != ANSWERED else [],
        "views": views,
        "total": len(shown),
        "destroying": sum(view.destroys for view in views),
        "oldest": min((one.asked for one in found), default=None),
        "last": _last(every, person, now),
    }


def _groups(context: PageContext, views: Sequence[RequestView]) -> list[Group]:
    """Return the sessions: those whose questions destroy come first, then by age; the same inside."""
    known = {view.request.id: view for view in views}
    sessions: dict[str, list[tuple[RequestView, ...]]] = {}
    for bundle in together([view.request for view in views]):
        rows = tuple(known[one.id] for one in bundle)
        sessions.setdefault(rows[0].request.session, []).append(rows)
    found = [
        Group(
            name,
            tuple(dict.fromkeys(view.request.agent for rows in bundles for view in rows)),
            tuple(sorted(bundles, key=_order)),
            activity.last_call(context.session, name),
        )
        for name, bundles in sessions.items()
    ]
    return sorted(found, key=lambda group: min(map(_order, group.bundles)))


def _order(rows: Sequence[RequestView]) -> tuple[bool, float]:
    return not any(view.destroys for view in rows), min(view.request.asked for view in rows)


def _last(every: Sequence[ApprovalRequest], person: str, now: float) -> RequestView | None:
    """Return the person's last answer of the last minutes, whose reversal the inbox offers."""
    mine = [
        one
        for one in every
        if one.by == person
        and one.state in (GRANTED, REFUSED, SETTLED, USED)
        and one.decided is not None
        and now - one.decided <= _LAST
    ]
    latest = max(mine, key=lambda one: one.decided or 0, default=None)
    return None if latest is None else RequestView(latest)
