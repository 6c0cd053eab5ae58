"""Requests that one answer settles: which others a rule or a grant would answer, and which belong together.

Judges only; an answer is stored elsewhere. A refused change is settled by nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ringfence.policy import Policy
from ringfence.policy.patterns.syntax import Fold
from ringfence.toolkit.approvals.requests import GRANTED, PENDING, REFUSED, SETTLED, USED, Answer, Request
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.audit.command_records import TO_RUN
from ringfence.toolkit.rule_offers.offers import answers


@dataclass(frozen=True, slots=True)
class Settled:
    """Other requests that a rule answers: those that wait, how many of the past, and those that were refused.

    A refusal stays in force for its change; another change of the same paths would no longer ask.
    """

    waiting: tuple[Request, ...] = ()
    past: int = 0
    refused: tuple[Request, ...] = ()


def by_rule(approvals: Approvals, request: Request, before: Policy, after: Policy, fold: Fold) -> Settled:
    """Return what a rule settles beside a request; both policies are as they are now."""
    found = [
        one
        for one in approvals.listing(every=True)
        if one.id != request.id and answers(after, one, fold) and not answers(before, one, fold)
    ]
    waiting = [one for one in found if one.state == PENDING and approvals.refusal(one) is None]
    past = sum(one.state in (GRANTED, USED, SETTLED) for one in found)
    return Settled(tuple(waiting), past, tuple(one for one in found if one.state == REFUSED))


def by_grant(approvals: Approvals, request: Request, answer: Answer) -> list[Request]:
    """Return the waiting requests that a grant of this scope covers, oldest first."""
    found = approvals.covered(request, answer)
    return [one for one in found if one.state == PENDING and approvals.refusal(one) is None]


def together(requests: Iterable[Request]) -> list[list[Request]]:
    """Group waiting requests of one session that one answer could settle; groups by their oldest request.

    The same agent asks with the same tool because of the same rules, under the same policy: what a grant for
    the session covers.
    """
    groups: dict[object, list[Request]] = {}
    for one in requests:
        alone = one.state != PENDING or not one.rules or one.of_command == TO_RUN
        key = one.id if alone else (one.session, one.agent, one.tool, one.revision, one.rules)
        groups.setdefault(key, []).append(one)
    return list(groups.values())
