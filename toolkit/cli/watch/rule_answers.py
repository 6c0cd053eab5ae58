"""Answers by a rule from `watch`: the offers, the rule that is written, what else it settles, its end.

Only this dialog of a person writes a rule, and only after it has shown what the rule opens.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ringfence.policy import Policy
from ringfence.policy.errors import PolicyError
from ringfence.toolkit.approvals.requests import RULE, Request
from ringfence.toolkit.cli.approval_prompt import whoami
from ringfence.toolkit.cli.rule_offers_shown import named
from ringfence.toolkit.cli.watch.dialogs import Sure
from ringfence.toolkit.cli.watch.program import Program
from ringfence.toolkit.cli.watch.rule_screens import ANOTHER_END, Others, RuleOffers
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.rule_offers import answering, policy_file
from ringfence.toolkit.rule_offers.marks import AnsweredRule, answered_rules
from ringfence.toolkit.rule_offers.offers import Offers
from ringfence.toolkit.rule_offers.policy_file import PolicyFile
from ringfence.toolkit.rule_offers.rule_ends import ENDS, WEEK, rule_end
from ringfence.toolkit.rule_offers.settling import Settled, by_rule
from ringfence.toolkit.session.session import Session
from ringfence.toolkit.text import diff, escape

_NO_POLICY = "There is no policy file that a rule could be written to: `ringfence init` makes one."


async def answer_by_rule(program: Program, request: Request, width: str = "") -> None:
    """Offer rules for a request, the one of a `width` first, and write the confirmed one."""
    source = program.source
    if source is None:
        program.warn(_NO_POLICY)
        return
    try:
        session = await asyncio.to_thread(program.act_as, request.agent, request.session)
        with session:
            await _answer(program, session, source, request, width)
    except CallError as error:
        program.fail(error)
    except PolicyError as error:
        program.warn(f"No rule was written: the policy does not load: {error.problems[0].message}")
    await program.update_board()


async def _answer(program: Program, session: Session, source: Path, request: Request, width: str) -> None:
    finished = await asyncio.to_thread(
        lambda: answering.complete(program.approvals, Policy.load(source), request.id, by=whoami())
    )
    if finished is not None:
        program.confirm(finished)
        return
    ends = list(ENDS)
    end, first = WEEK, 0
    while True:
        made, file, settled = await asyncio.to_thread(_offered, program, session, source, request, end)
        if not made.offers:
            why = "; ".join(f"{words}: {why}" if words else why for words, why in made.left_out)
            program.warn(f"No rule is offered: {why}")
            return
        widths = [offer.width for offer in made.offers]
        first = widths.index(width) if width in widths else first
        title = f"A rule for: {escape(request.title)}"
        chosen = await program.ask(RuleOffers(title, made, settled, end, first))
        if chosen == ANOTHER_END:
            end = ends[(ends.index(end) + 1) % len(ends)]
            continue
        if chosen is None:
            return
        offer = made.offers[chosen]
        yes = f"write the rule for {offer.words}, which ends {ENDS[end]}; {offer.opens.in_words()}"
        title = f"Write this rule into {file.name}?"
        if not await program.ask(Sure(title, offer.diff, yes, program.hold())):
            first, width = chosen, ""
            continue
        done = await asyncio.to_thread(
            partial(answering.write, program.approvals, request, offer, file, by=whoami())
        )
        program.confirm(done, offer.rule_in_words())
        await program.update_board()
        await settle_others(program, done, settled[chosen].waiting, offer.id, RULE)
        return


def _offered(
    program: Program, session: Session, source: Path, request: Request, end: str
) -> tuple[Offers, PolicyFile, list[Settled]]:
    now = time.time()
    made, file = answering.offers_for(
        session.workspace, session.policy, source, request, now=now, until=rule_end(end, now)
    )
    policy = file.reload(file.data).at(now)
    settled = [
        by_rule(program.approvals, request, policy, offer.after.at(now), session.fold)
        for offer in made.offers
    ]
    return made, file, settled


async def settle_others(
    program: Program, answered: Request, others: Sequence[Request], settled_by: str, scope: str
) -> None:
    """Offer to settle other waiting requests by the same answer; none is chosen in advance."""
    if not others:
        return
    chosen = await program.ask(Others(others))
    if chosen:
        done = await asyncio.to_thread(
            lambda: answering.settle_others(program.approvals, chosen, settled_by, scope, by=whoami())
        )
        program.confirm(answered, f"settled with it: {named(done)}")
        await program.update_board()


async def revoke_rule(program: Program, name: str) -> None:
    """Take a rule that an answer wrote out of the policy, after showing the diff."""
    source = program.source
    if source is None:
        program.warn(_NO_POLICY)
        return
    try:
        file, data = await asyncio.to_thread(
            lambda: answering.without(Policy.load(source, kept=False), source, name)
        )
        text = diff(file.name, file.data, data)
        yes = "take the rule out; what it allowed asks again, from the next call on"
        if await program.ask(Sure(f"Take rule {name} out of {file.name}?", text, yes, program.hold())):
            await asyncio.to_thread(
                lambda: program.approvals.revoke_rule(
                    name, by=whoami(), first=lambda: policy_file.replace(file, data)
                )
            )
            program.tell(f"revoked: rule {name} is out of {file.name}. What it allowed asks again.")
    except CallError as error:
        program.fail(error)
    except PolicyError as error:
        program.warn(f"The policy does not load: {error.problems[0].message}")
    await program.update_board()


class PolicyRules:
    """Rules of the policy that answers wrote, read again when one of its files has changed."""

    def __init__(self, source: Path | None) -> None:
        self.found: list[AnsweredRule] = []
        self._source = source
        self._seen: object = None
        self._files: tuple[str, ...] = ()

    def refresh(self) -> bool:
        """Read what has changed; return whether anything has. A policy that does not load changes nothing."""
        if self._source is None:
            return False
        seen = _stamps((str(self._source), *self._files))
        if seen == self._seen:
            return False
        self._seen = seen
        try:
            policy = Policy.load(self._source)
        except PolicyError:
            return False
        self._files = tuple(policy.files)
        self._seen = _stamps((str(self._source), *self._files))
        before, self.found = self.found, answered_rules(policy.whole)
        return before != self.found


def _stamps(files: Sequence[str]) -> list[object]:
    found: list[object] = []
    for file in files:
        try:
            facts = Path(file).stat()
            found.append((file, facts.st_mtime_ns, facts.st_size, facts.st_ino))
        except OSError:
            found.append((file, None))
    return found
