"""Proposals of rules in `watch`, from people's answers of the last seven days."""

from __future__ import annotations

import time

from ringfence.policy import Policy
from ringfence.policy.errors import PolicyError
from ringfence.toolkit.approvals.requests import PENDING, Request
from ringfence.toolkit.cli.watch.program import Program
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.rule_offers import answering
from ringfence.toolkit.rule_offers.offers import answers
from ringfence.toolkit.rule_offers.proposals import ENOUGH, Proposal

WEEK = 7 * 86_400.0  # seconds


def weekly(program: Program) -> list[Proposal]:
    """Return the proposals, each with its proof; none without a policy that a rule can be written to."""
    source, now = program.source, time.time()
    if source is None:
        return []
    found = program.approvals.listing(every=True)
    if sum(one.decided is not None and one.decided >= now - WEEK for one in found) < ENOUGH:
        return []  # the policy need not be loaded
    try:
        with program.act_as("default", "") as session:
            return answering.proposed(
                session.workspace,
                Policy.load(source),
                source,
                found,
                session.fold,
                now=now,
                since=now - WEEK,
            )
    except (CallError, PolicyError):
        return []  # whoever asks for a rule gets the reason there


def waits_for(proposal: Proposal, pending: tuple[Request, ...]) -> Request | None:
    """Return a waiting request that the rule of a proposal answers; None if there is none."""
    after = proposal.offer.after.at(time.time())
    return next((one for one in pending if one.state == PENDING and answers(after, one)), None)
