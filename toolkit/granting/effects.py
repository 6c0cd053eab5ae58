"""Effects of a grant as lines of text, for the person who gives it.

The lines have the scope in words, how many paths it opens, and which pending or refused requests it covers.
"""

from __future__ import annotations

from typing import Protocol

from ringfence.policy import Policy
from ringfence.policy.patterns.syntax import Fold
from ringfence.toolkit.approvals.requests import ONCE, PENDING, Answer, Request
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.audit.command_records import TO_RUN
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.reach import Reach, reach
from ringfence.toolkit.granting.scopes import in_words
from ringfence.toolkit.text import escape
from ringfence.toolkit.workspace.workspace import Workspace

_NAMED = 5  # requests that are named


class Asked(Protocol):
    """What a person's answer needs: a session, or the requests of a workspace that is elsewhere."""

    @property
    def approvals(self) -> Approvals:
        """The requests and answers."""

    @property
    def workspace(self) -> Workspace | None:
        """The workspace; None if it is elsewhere."""

    @property
    def policy(self) -> Policy:
        """The policy in force, as far as it is known."""

    @property
    def fold(self) -> Fold:
        """How the workspace compares names, as far as it is known."""


def effects(session: Asked, request: Request, answer: Answer, policy: Policy | None = None) -> list[str]:
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


def reach_of(session: Asked, request: Request, answer: Answer, policy: Policy | None = None) -> Reach | None:
    """Return what the grant opens; None if that is this change alone, or the files cannot be looked at."""
    if answer.scope == ONCE or session.workspace is None:
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
