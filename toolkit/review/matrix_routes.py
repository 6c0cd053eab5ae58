"""Matrix page: what each kind of agent may do on the workspace's files."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ringfence.policy import Policy
from ringfence.policy.model import DEFAULT_AGENT
from ringfence.toolkit.authoring.matrix import Matrix
from ringfence.toolkit.authoring.matrix_tree import FILTERS
from ringfence.toolkit.review import matrix_view, policy_view
from ringfence.toolkit.review.context import PageContext
from ringfence.toolkit.review.matrix_view import Asked, MatrixView
from ringfence.toolkit.review.query import number
from ringfence.toolkit.session.session import Session

KEPT = 10.0  # seconds that verdicts are shown again, unless the policy changes
_LONGEST = 4096  # characters of a path or of words in an address


def routes(context: PageContext) -> list[Route]:
    """Return the routes of the matrix page."""

    known: dict[tuple[str, bool], tuple[float, Matrix]] = {}

    def judged(session: Session, policy: Policy, *, every: bool) -> Matrix:
        """Return the verdicts, kept for a while: an open page asks again after each call of an agent."""
        key, now = (policy.revision, every), time.monotonic()
        made, found = known.get(key, (0.0, None))
        if found is None or now - made > KEPT:
            found = matrix_view.judge(session.workspace, policy, every=every)
            known.clear()
            known[key] = now, found
        return found

    def view(asked: Asked) -> MatrixView:
        policy = policy_view.current(context)[0].at(time.time())
        with context.act_as(DEFAULT_AGENT, None) as session:
            found = judged(session, policy, every=asked.every)
            return matrix_view.view(session.workspace, policy, found, asked)

    async def tree(request: Request) -> Response:
        """Show the verdicts on the tree of files."""
        asked = _asked(request)
        found = await context.run(lambda: view(asked))
        return await context.page(
            request,
            "matrix",
            view=found,
            asked=asked,
            filters=[(name, words) for name, (words, _) in FILTERS.items()],
            everybody=DEFAULT_AGENT,
            at_once=matrix_view.AGENTS,
        )

    return [Route("/policy/matrix", tree, methods=["GET"])]


def _asked(request: Request) -> Asked:
    def text(name: str) -> str:
        return request.query_params.get(name, "")[:_LONGEST]

    why = text("agent"), text("action"), text("why")
    show = text("show")
    return Asked(
        at=text("at") or ".",
        show=show if show in FILTERS else "",
        words=text("q").strip(),
        every=text("all") == "1",
        first=number(request, "agents"),
        why=why if all(why) else None,
    )
