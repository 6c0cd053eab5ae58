"""Proposals of rules from people's answers: folders where most were yes, each with its proof.

Pure over requests and a function that makes offers. Never proposes a rule that would allow what was refused,
however long ago.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ringfence.policy import Policy
from ringfence.policy.patterns.syntax import Fold
from ringfence.toolkit.approvals.requests import GRANTED, REFUSED, SETTLED, USED, Request
from ringfence.toolkit.rule_offers.offers import Offer, Offers, answers
from ringfence.toolkit.text import escape, plural

ENOUGH = 3  # answers with yes in one folder before a rule is proposed
MOST = 10  # folders that are looked at, those with most answers first
_YES = (GRANTED, USED, SETTLED)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A rule, with how many answers in its folder were yes, and how many of those it would have given."""

    folder: str
    yes: int
    answered: int
    gives: int
    offer: Offer

    def in_words(self) -> str:
        """Return the reason for a proposal: `17 of 20 answers were yes under docs/`."""
        where = f"under {escape(self.folder)}/" if self.folder else "in the workspace's root"
        return f"{self.yes} of {plural(self.answered, 'answer')} were yes {where}"

    def to_json(self) -> dict[str, Any]:
        """Return the proposal as JSON values."""
        counts = {"folder": self.folder, "yes": self.yes, "answered": self.answered, "gives": self.gives}
        return {**counts, **self.offer.to_json()}


def proposals(  # noqa: PLR0913  what was answered, and what a rule is offered for
    requests: Iterable[Request],
    offers: Callable[[Request], Offers],
    before: Policy,
    now: float,
    fold: Fold,
    *,
    since: float = 0.0,
) -> list[Proposal]:
    """Return proposals from the answers given from `since` on, those with most answers first.

    `before`: the policy as it is `now`. Times are POSIX seconds.
    """
    groups: dict[tuple[str, str, str], list[Request]] = {}
    refused = []
    for one in requests:
        if one.state not in (*_YES, REFUSED) or not one.asking or one.of_command:
            continue
        if (one.decided or 0.0) >= since:
            groups.setdefault((one.agent, one.tool, _folder(one)), []).append(one)
        refused += [one] if one.state == REFUSED else []
    found = []
    for (_, _, folder), answered in sorted(groups.items(), key=lambda each: -len(each[1]))[:MOST]:
        yes = [one for one in answered if one.state in _YES and not answers(before, one, fold)]
        if len(yes) < ENOUGH:
            continue
        for offer in offers(yes[-1]).offers:
            after = offer.after.at(now)
            gives = sum(answers(after, one, fold) for one in yes)
            if gives >= ENOUGH and not any(answers(after, one, fold) for one in refused):
                found.append(Proposal(folder, len(yes), len(answered), gives, offer))
                break
    return found


def _folder(request: Request) -> str:
    """Return the folder that has all the paths which a request asks about; "" is the root."""
    names = [path.split("/")[:-1] for path in request.asking]
    shared = []
    for each in zip(*names, strict=False):
        if len(set(each)) > 1:
            break
        shared.append(each[0])
    return "/".join(shared)
