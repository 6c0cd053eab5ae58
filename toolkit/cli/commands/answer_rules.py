"""Commands `approvals grant --always`, `rules` and `revoke-rule`: answers that are rules of the policy.

Only a person at this machine runs these; no channel and no token of an agent leads here.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ringfence.policy import Policy
from ringfence.toolkit.approvals.requests import RULE, Request
from ringfence.toolkit.approvals.store import Approvals
from ringfence.toolkit.cli.approval_prompt import confirm, whoami
from ringfence.toolkit.cli.column_layout import Column
from ringfence.toolkit.cli.context import options_of, policy_of, root_of, source_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.record_table import print_table
from ringfence.toolkit.cli.requests_elsewhere import NO_POLICY, NOT_YET, open_for_answer, open_to_see
from ringfence.toolkit.cli.rule_offers_shown import named, rule_end, show_left_out, show_offer
from ringfence.toolkit.cli.runner import DONE, UsageError
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.confirmations import confirmation
from ringfence.toolkit.granting.effects import Asked
from ringfence.toolkit.rule_offers import answering, policy_file
from ringfence.toolkit.rule_offers.marks import AnsweredRule, answered_rules, request_of
from ringfence.toolkit.rule_offers.offers import Offer, Offers
from ringfence.toolkit.rule_offers.settling import by_rule
from ringfence.toolkit.state.open import names_schema
from ringfence.toolkit.text import escape, plural, when

_COLUMNS = (
    Column("id"),
    Column("agent", folds_to=10),
    Column("key"),
    Column("pattern", folds_to=20),
    Column("effect"),
    Column("until"),
    Column("by", leaves=2),
    Column("for", folds_to=20, leaves=1),
    Column("place", folds_to=14),
)


def source(arguments: argparse.Namespace) -> Path:
    """The policy's file. Raises UsageError without one."""
    found = source_of(arguments, root_of(arguments)[0])
    if found is None:
        raise UsageError(
            NO_POLICY
            if names_schema(arguments.state)
            else "there is no policy that a rule could be written to; `ringfence init` makes one"
        )
    return found


def grant_always(arguments: argparse.Namespace, screen: Screen) -> int:
    """Answer a request by a rule, after showing the rule and what it opens."""
    if screen.as_json and not arguments.yes:
        raise UsageError("--always --json: add --yes; `ringfence approvals show --json` prints the offers")
    if arguments.pattern is not None or arguments.scope != "once":
        raise UsageError("--always is an answer of its own: leave --scope and --pattern out")
    now, place = time.time(), source(arguments)
    until = rule_end(arguments.until, now)
    policy = policy_of(arguments, root_of(arguments)[0])
    with open_for_answer(arguments) as session:
        approvals = session.approvals
        request = approvals.get(arguments.id)
        finished = answering.complete(approvals, policy, request.id, by=whoami())
        if finished is not None:
            return _report(finished, None, [], [], arguments, screen)
        approvals.check_waits(request)
        found, file = answering.offers_for(
            session.workspace, policy, place, request, now=now, until=until, widths=(arguments.always,)
        )
        offer = _chosen(found, arguments.always)
        settled = by_rule(approvals, request, policy.at(now), offer.after.at(now), session.fold)
        if not screen.as_json:
            show_offer(offer, settled, screen)
        if not arguments.yes and not confirm(f"Write this rule into {file.name}?"):
            raise UsageError("nothing was written: add --yes to confirm")
        request = answering.write(approvals, request, offer, file, by=whoami(), reason=arguments.reason)
        others = settle_with(arguments, settled.waiting, screen)
        done = answering.settle_others(approvals, others, offer.id, RULE, by=whoami())
    if names_schema(arguments.state):
        screen.note(NOT_YET, "yellow")
    return _report(request, offer, list(settled.waiting), done, arguments, screen)


def settle_with(arguments: argparse.Namespace, waiting: Sequence[Request], screen: Screen) -> list[Request]:
    """The other requests to settle: all with --with-others, else as the person at the terminal says."""
    if not waiting:
        return []
    if arguments.with_others:
        return list(waiting)
    if screen.as_json or arguments.yes:
        return []
    for one in waiting:
        screen.note(f"  {one.id} {escape(one.title)}")
    question = f"The same answer settles {plural(len(waiting), 'other request')} that waits. Settle too?"
    return list(waiting) if confirm(question) else []


def _chosen(found: Offers, width: str) -> Offer:
    offer = found.of_width(width)
    if offer is not None:
        return offer
    why = "; ".join(f"{words}: {reason}" if words else reason for words, reason in found.left_out)
    message = f"This rule ({width}) is not offered" + (f": {why}" if why else "")
    hint = "`ringfence approvals show` prints the rules that are offered"
    raise CallError("invalid_arguments", message, where="always", hint=hint)


def _report(  # noqa: PLR0913  what was answered and settled, and how the command was run
    request: Request,
    offer: Offer | None,
    waiting: list[Request],
    done: list[Request],
    arguments: argparse.Namespace,
    screen: Screen,
) -> int:
    ids = {one.id for one in done}
    left = [one for one in waiting if one.id not in ids]
    if screen.as_json:
        screen.json(
            {
                "request": request.to_json(),
                "rule": offer.to_json() if offer else None,
                "settled": [one.id for one in done],
                "still_waiting": [one.id for one in left],
            }
        )
        return DONE
    confirmed = confirmation(request)
    screen.line(confirmed.what, "green")
    if offer is not None:
        screen.line(f"  {offer.rule_in_words()}")
    if done:
        screen.line(f"  settled with it: {named(done)}")
    if left:
        screen.line(f"  the rule also answers, once it is asked again: {named(left)}")
    screen.line(f"  {confirmed.next}")
    screen.line(f"  {confirmed.reversal}: {confirmed.command}{options_of(arguments)}", "dim")
    return DONE


def show_offers(session: Asked, request: Request, arguments: argparse.Namespace, screen: Screen) -> None:
    """Print the rules that would answer a request, each with its command, or why there is none."""
    try:
        found, _ = offered(session, request, arguments)
    except CallError as error:
        screen.line(
            f"  no rule can answer it for good: {escape(error.message)}; {escape(error.advice or '')}", "dim"
        )
        return
    now = time.time()
    policy = policy_of(arguments, root_of(arguments)[0]).at(now)
    if found.offers:
        screen.line("  a rule of the policy can answer it for good:", "dim")
    for offer in found.offers:
        screen.line()
        settled = by_rule(session.approvals, request, policy, offer.after.at(now), session.fold)
        show_offer(offer, settled, screen)
        screen.line(f"ringfence approvals grant {request.id} --always={offer.width}", "dim")
    show_left_out(found, screen)


def offered(
    session: Asked, request: Request, arguments: argparse.Namespace
) -> tuple[Offers, policy_file.PolicyFile]:
    """The offers for a request, with the end that is proposed first, and the file for the rule.

    Raises CallError `permission_denied`, also where there is no policy.
    """
    place = source_of(arguments, root_of(arguments)[0])
    if place is None:
        hint = NO_POLICY if names_schema(arguments.state) else "`ringfence init` makes one"
        raise CallError("permission_denied", "There is no policy", hint=hint)
    now = time.time()
    policy = Policy.load(place)
    return answering.offers_for(session.workspace, policy, place, request, now=now, until=rule_end(None, now))


def offers_json(session: Asked, request: Request, arguments: argparse.Namespace) -> dict[str, Any]:
    """The offers as JSON values, with the reasons for what is not offered."""
    try:
        found, file = offered(session, request, arguments)
    except CallError as error:
        return {"offers": [], "left_out": [{"words": "", "why": error.message}], "file": None}
    return {
        "offers": [offer.to_json() for offer in found.offers],
        "left_out": [{"words": words, "why": why} for words, why in found.left_out],
        "file": file.name,
    }


def rules(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the rules of the policy that answers wrote."""
    policy = policy_of(arguments, root_of(arguments)[0])
    found = answered_rules(policy.whole)
    with open_to_see(arguments) as session:
        known = {each.id: _request(session.approvals, each.id) for each in found}
    if screen.as_json:
        screen.json([_json(each, known[each.id]) for each in found])
        return DONE
    rows = [row for each in found for row in _rows(each, known[each.id])]
    if not print_table(_COLUMNS, rows, arguments, screen):
        screen.note("the policy has no rule from an answer")
    return DONE


def _request(approvals: Approvals, rule: str) -> Request | None:
    try:
        return approvals.get(request_of(rule))
    except CallError:
        return None  # answered in another state, or forgotten


def _json(each: AnsweredRule, request: Request | None) -> dict[str, Any]:
    more = {"by": request.by, "decided": request.decided, "title": request.title} if request else {}
    return {**each.to_json(), "expired": _expired(each), **more}


def _expired(each: AnsweredRule) -> bool:
    return each.until is not None and each.until <= time.time()


def _rows(each: AnsweredRule, request: Request | None) -> list[tuple[str, ...]]:
    until = "" if each.until is None else when(each.until) + (" (over)" if _expired(each) else "")
    return [
        (
            each.id,
            rule.agent or "",
            rule.key,
            rule.pattern,
            str(rule.effect),
            until,
            request.by if request else "",
            request.title if request else "",
            f"{rule.where.file}:{rule.where.line}" if rule.where else "",
        )
        for rule in each.rules
    ]


def revoke_rule(arguments: argparse.Namespace, screen: Screen) -> int:
    """Take a rule that an answer wrote out of the policy; every comment stays."""
    place = source(arguments)
    policy = Policy.load(place, kept=False)
    file, data = answering.without(policy, place, arguments.id)
    found = answering.find(policy, arguments.id)
    with open_for_answer(arguments) as session:
        settled = session.approvals.revoke_rule(
            arguments.id,
            by=whoami(),
            reason=arguments.reason,
            first=lambda: policy_file.replace(file, data),
        )
    if screen.as_json:
        screen.json({**found.to_json(), "settled": [one.id for one in settled], "file": file.name})
        return DONE
    screen.line(f"revoked: rule {arguments.id} is out of {file.name}", "red")
    for rule in found.rules:
        screen.line(f'  {escape(rule.key)} "{escape(rule.pattern)}": {rule.effect}')
    screen.line("what it allowed is asked about again, from the next call on")
    return DONE
