"""Amended requests: a person changes a call's arguments and grants the changed call, which is planned and
judged again.

Permits and never executes: the agent learns which call to send instead. What a policy denies stays denied.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from ringfence.policy import Effect
from ringfence.toolkit.approvals.requests import PENDING, Answer, Request
from ringfence.toolkit.call import ToolCall
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Plan
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session import pipeline, responses
from ringfence.toolkit.session.approval_request import request_of
from ringfence.toolkit.session.attempt import Attempt

if TYPE_CHECKING:
    from ringfence.toolkit.session.session import Session


class _Planned(Exception):
    """Ends the pipeline at the stage that asks: `request` is None if the policy allows the call without
    asking.
    """

    def __init__(self, request: Request | None) -> None:
        self.request = request


def _stop(attempt: Attempt, plan: Plan) -> NoReturn:
    """Raise _Planned at the stage where the call would ask or act."""
    asks = attempt.decided.effect == Effect.ASK and attempt.enforcing
    raise _Planned(request_of(attempt, plan) if asks else None)


def amended(session: Session, approval: str, arguments: dict[str, Any]) -> Request | None:
    """Return the request with other arguments; None if the policy allows that call without asking.

    `session` belongs to the agent and session of the request. Nothing is changed or stored. Raises CallError
    `approval_stale` (the request was used or replaced, or belongs to another agent, session or policy), and
    the changed call's own errors.
    """
    request = session.approvals.get(approval)
    if request.state != PENDING:
        raise CallError("approval_stale", f"The approval '{approval}' is already {request.state}")
    if (request.agent, request.session, request.revision) != (
        session.agent,
        session.session,
        session.policy.revision,
    ):
        raise CallError(
            "approval_stale",
            f"The approval '{approval}' was asked by another agent or session, or under another policy",
            hint="start with the --policy that the agent runs under",
        )
    attempt = Attempt(session.context, session.policy, ToolCall(request.tool, arguments))
    try:
        pipeline.run(attempt, Progress(), _stop)
    except _Planned as planned:
        return planned.request
    except CallError as error:
        raise responses.redacted(attempt, error) from None
    finally:
        attempt.release()
        scratch, attempt.scratch = attempt.scratch, None
        if scratch is not None:  # the original request still waits for the changes in it
            scratch.release()
    raise AssertionError("a trial ends where it would ask or act")


def amend(
    session: Session, approval: str, arguments: dict[str, Any], *, digest: str, by: str
) -> Request | None:
    """Grant the changed call once, and refuse the original request with the arguments to send instead.

    `digest` is the digest of the plan that the person saw ("" if no approval is needed); if the plan has
    changed since, CallError `approval_stale` is raised. Returns the granted request.
    """
    request = amended(session, approval, arguments)
    if (request.digest if request is not None else "") != digest:
        raise CallError(
            "approval_stale", "The changed call would do something else by now", hint="look again"
        )
    approvals = session.approvals
    if request is not None and request.changes and request.digest == approvals.get(approval).digest:
        # The other arguments make the same change: refusing the original request would refuse this one, too.
        return approvals.answer(approval, Answer(True, by=by))
    granted = None
    if request is not None:
        filed, _ = approvals.ask(request, most=None)
        granted = approvals.answer(filed.id, Answer(True, by=by))
    reason = f"changed by a person; send instead {json.dumps(arguments, ensure_ascii=False)}"
    if approvals.get(approval).state == PENDING:
        approvals.answer(approval, Answer(False, reason=reason, by=by))
    return granted
