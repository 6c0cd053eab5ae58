"""Command `log --stats`: questions a day, their answers, the rules behind them, the width of grants."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from contextlib import suppress
from typing import Any

from ringfence.policy import Policy, PolicyError
from ringfence.toolkit.approvals.requests import GRANTED, ONCE, Request
from ringfence.toolkit.audit import log as audit
from ringfence.toolkit.cli.context import policy_in, root_of
from ringfence.toolkit.cli.output import Screen
from ringfence.toolkit.cli.runner import DONE
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.reach import Reach, reach
from ringfence.toolkit.granting.scopes import granted_in_words
from ringfence.toolkit.rule_offers.answering import names_in
from ringfence.toolkit.rule_offers.offers import Names
from ringfence.toolkit.rule_offers.statistics import ANSWERS, questions, widths
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import escape, plural

_LISTED = 10  # rows of one kind
_WORDS = {
    "once": "yes, once",
    "pattern": "yes, for paths",
    "session": "yes, for the session",
    "rule": "by a rule",
}


def stats(session: Session, wanted: audit.RecordFilter, arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the figures for the records that match."""
    found = questions(audit.matching(session.state, wanted))
    policy = _policy(arguments)
    names = Names(())
    with suppress(CallError):
        names = names_in(session.workspace, policy)
    rules = {} if not policy.files else widths(policy.at(time.time()), names)
    grants = [one for one in session.approvals.listing() if one.state == GRANTED and one.scope != ONCE]
    reached = [(one, _reach(session, policy, one)) for one in grants]
    if screen.as_json:
        screen.json({**found.to_json(), "rules": rules, "grants": [_grant(*each) for each in reached]})
        return DONE
    days = plural(len(found.days), "day")
    screen.line(f"{plural(found.asked, 'question')} on {days}: {found.a_day():.1f} a day")
    _rows(Counter(dict(sorted(found.days.items())[-_LISTED:])), screen)
    screen.line("answers:")
    _rows(Counter({_WORDS.get(name, name): found.answers[name] for name in ANSWERS}), screen)
    if found.asking:
        screen.line("asked by:")
        _rows(Counter(dict(found.asking.most_common(_LISTED))), screen)
    if rules:
        screen.line("rules from answers:")
    for rule, number in rules.items():
        opens = "" if number is None else f"; matches {plural(number, 'path')} that are there now"
        screen.line(f"  {rule}: allowed {plural(found.answered[rule], 'call')}{opens}")
    if reached:
        screen.line("wide grants that can be used:")
    for one, opens_now in reached:
        words = f"; {opens_now.in_words()}" if opens_now else ""
        screen.line(f"  {one.id}: {granted_in_words(one)}{words}")
    return DONE


def _rows(found: Counter[str], screen: Screen) -> None:
    for name, number in found.items():
        if number:
            screen.line(f"  {number:>6,}  {escape(name)}")


def _policy(arguments: argparse.Namespace) -> Policy:
    place = policy_in(arguments, root_of(arguments)[0])
    with suppress(PolicyError):
        if place is not None:
            return Policy.load(place)
    return Policy.empty()


def _reach(session: Session, policy: Policy, request: Request) -> Reach | None:
    try:
        return reach(session.workspace, policy, request, request.scope, request.pattern)
    except (CallError, ValueError):
        return None


def _grant(request: Request, opens: Reach | None) -> dict[str, Any]:
    return {
        "id": request.id,
        "scope": request.scope,
        "pattern": request.pattern,
        "until": request.until,
        "by": request.by,
        "opens": None if opens is None else opens.to_json(),
    }
