"""Consent to a call that another program will carry out: planned, judged and asked about, never applied.

The audit log has what was asked, granted and used. The call itself is not recorded, as nothing is known of
how it ends.
"""

from __future__ import annotations

from ringfence.toolkit.call import ToolCall
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.plan.changes import Plan
from ringfence.toolkit.progress import Progress
from ringfence.toolkit.session import responses
from ringfence.toolkit.session.attempt import Attempt
from ringfence.toolkit.session.crash_recovery import recover_left_open
from ringfence.toolkit.session.pipeline import _approve, run
from ringfence.toolkit.session.session import Session


class _Permitted(Exception):
    """Ends the call before anything is applied."""


def consent(session: Session, call: ToolCall) -> CallError | None:
    """Return None if the policy or a person permits exactly what the call would do; else the error.

    A grant for one call is used up. Without a grant the request waits for a person, and the error
    (`approval_required`) has its id.
    """
    attempt: Attempt | None = None
    try:
        attempt = Attempt(session.context, session.policy_now(), call)
        recover_left_open(session.context)
        run(attempt, Progress(), approve=_permit)
    except _Permitted:
        return None
    except CallError as error:
        return error if attempt is None else responses.redacted(attempt, error)
    finally:
        if attempt is not None:
            attempt.release()
    return None  # there is nothing to change


def _permit(attempt: Attempt, plan: Plan) -> None:
    _approve(attempt, plan)
    raise _Permitted
