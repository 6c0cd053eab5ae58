"""Effects of a grant as lines of text, for the person who gives it.

The lines have the scope in words, how many paths it opens, and which pending or refused requests it covers.
"""

from __future__ import annotations

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import ONCE, PENDING, Answer, Request
from ringfence.toolkit.audit.command_records import TO_RUN
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.reach import Reach, reach
from ringfence.toolkit.granting.scopes import in_words
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import escape

_NAMED = 5  # requests that are named


def effects(session: Session, request: Request, answer: Answer, policy: Policy | None = None) -> list[str]:
    """Return the effects of an answer as lines. `policy` replaces the session's policy.

    Raises CallError `invalid_arguments` for a pattern that is none.
    """
    lines = [f"for {in_words(request, answer.scope, answer.pattern, answer.until)}"]
    if answer.scope == ONCE:
        return lines
    if request.of_command == TO_RUN:
        lines.append(
            "lets every command run that the same rule asks about; their changes are judged by themselves"
        )
    else:
        lines.append(_opens(reach_of(session, request, answer, policy)))
    approvals = session.approvals
    reached = approvals.covered(request, answer)
    refused = [one for one in reached if approvals.refusal(one) is not None]
    waiting = [one for one in reached if one.state == PENDING and one not in refused]
    if waiting:
        lines.append(f"also lets through what waits: {_named(waiting)}")
    if refused:
        lines.append(f"does not let through what was refused: {_named(refused)}")
    return lines


def reach_of(
    session: Session, request: Request, answer: Answer, policy: Policy | None = None
) -> Reach | None:
    """Return what the grant opens; None if that is this change alone, or the store does not answer."""
    if answer.scope == ONCE:
        return None
    try:
        return reach(session.workspace, policy or session.policy, request, answer.scope, answer.pattern)
    except ValueError as error:
        raise CallError("invalid_arguments", f"This is not a pattern: {error}", where="pattern") from None
    except CallError:
        return None  # a person can decide although the store does not answer


def _opens(found: Reach | None) -> str:
    return "how many paths it opens is not known" if found is None else found.in_words()


def _named(requests: list[Request]) -> str:
    named = "; ".join(f"{one.id} {escape(one.title)}" for one in requests[:_NAMED])
    more = len(requests) - _NAMED
    return f"{named}; and {more:,} more" if more > 0 else named
