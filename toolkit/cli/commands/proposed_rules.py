"""Command `suggest --rules`: rules for the policy in force, from people's answers, each with its proof."""

from __future__ import annotations

import argparse
import time

from ringfence.policy import Policy
from ringfence.toolkit.cli.context import open_record, root_of, source_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.rule_offers_shown import show_offer
from ringfence.toolkit.cli.runner import DONE, UsageError
from ringfence.toolkit.cli.time_option import moment_of
from ringfence.toolkit.rule_offers import answering


def propose_rules(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the proposals with what each opens, its proof and the policy's diff."""
    source = source_of(arguments, root_of(arguments)[0])
    if source is None:
        raise UsageError("--rules: there is no policy that a rule could be proposed for")
    now = time.time()
    policy = Policy.load(source)
    with open_record(arguments) as session:
        found = answering.proposed(
            session.workspace,
            policy,
            source,
            session.approvals.listing(every=True),
            session.fold,
            now=now,
            since=moment_of(arguments, "since") or 0.0,
        )
    if screen.as_json:
        screen.json([proposal.to_json() for proposal in found])
        return DONE
    for proposal in found:
        screen.line(proposal.in_words(), "bold")
        show_offer(proposal.offer, None, screen)
        screen.line()
    if found:
        screen.note(
            "answer the next request with `ringfence approvals grant ID --always=folder`, or apply a diff"
        )
    else:
        screen.note("no rule is proposed: no folder has enough answers that were yes")
    return DONE
