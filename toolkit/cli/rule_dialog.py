"""Dialog at the terminal about a rule that answers a request for good: offers, end, confirmation."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from ringfence.policy.errors import PolicyError
from ringfence.toolkit.approvals.requests import RULE, Request
from ringfence.toolkit.cli.approval_prompt import Terminal, whoami
from ringfence.toolkit.cli.rule_offers_shown import (
    named,
    rule_end,
    show_left_out,
    show_offer,
)
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.granting.confirmations import confirmation
from ringfence.toolkit.rule_offers import answering
from ringfence.toolkit.rule_offers.rule_ends import ENDS, WEEK
from ringfence.toolkit.rule_offers.settling import by_rule
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import plural


def answer_by_rule(session: Session, source: Path, request: Request, terminal: Terminal) -> bool:
    """Offer rules for a request, and write the confirmed one; return whether one was written."""
    try:
        return _answer(session, source, request, terminal)
    except CallError as error:
        terminal.screen.line(f"no rule was written: {error.message}; {error.advice or ''}", "red")
    except PolicyError as error:
        terminal.screen.line(
            f"no rule was written: the policy does not load: {error.problems[0].message}", "red"
        )
    return False


def _answer(session: Session, source: Path, request: Request, terminal: Terminal) -> bool:
    end = WEEK
    while True:
        now = time.time()
        made, file = answering.offers_for(
            session.workspace, session.policy, source, request, now=now, until=rule_end(end, now)
        )
        policy = file.reload(file.data).at(now)
        choices: dict[str, str] = {}
        for number, offer in enumerate(made.offers, 1):
            settled = by_rule(session.approvals, request, policy, offer.after.at(now), session.fold)
            terminal.screen.line(f"{number}:", "bold")
            show_offer(offer, settled, terminal.screen)
            choices[str(number)] = offer.words
        show_left_out(made, terminal.screen)
        if not choices:
            return False
        chosen = terminal.ask(
            f"Which rule? It ends {ENDS[end]}", {**choices, "e": "another end", "n": "no rule"}
        )
        if chosen == "e":
            letters = {"w": "in a week", "t": "at the end of today", "x": "without an end"}
            letter = terminal.ask("When does the rule end?", letters)
            end = dict(zip(letters, ENDS, strict=True)).get(letter, end)
            continue
        if chosen not in choices:
            return False
        offer = made.offers[int(chosen) - 1]
        question = f"Write the rule for {offer.words} into {file.name}?"
        if terminal.ask(question, {"y": "yes", "n": "no"}) != "y":
            return False
        settled = by_rule(session.approvals, request, policy, offer.after.at(now), session.fold)
        done = answering.write(session.approvals, request, offer, file, by=whoami())
        for text, style in confirmation(done).lines():
            terminal.screen.line(text, style)
        _others(session, offer.id, settled.waiting, terminal)
        return True


def _others(session: Session, rule: str, waiting: Sequence[Request], terminal: Terminal) -> None:
    if not waiting:
        return
    terminal.screen.line(f"  {named(waiting)}")
    question = f"The rule answers {plural(len(waiting), 'other request')} that waits. Settle too?"
    if terminal.ask(question, {"y": "yes", "n": "no"}) == "y":
        answering.settle_others(session.approvals, waiting, rule, RULE, by=whoami())
