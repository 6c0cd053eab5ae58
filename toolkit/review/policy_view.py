"""Data of the policy page: rules with the decisions that they made lately, the user's own ones first.

Reads the policy and the audit; changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ringfence.policy import READY_MADE, Policy, PolicyError
from ringfence.policy.model import Content, Rule
from ringfence.toolkit.approvals.requests import GRANTED, REFUSED, SETTLED, Request
from ringfence.toolkit.audit import counts
from ringfence.toolkit.audit.counts import Counted
from ringfence.toolkit.errors import CallError
from ringfence.toolkit.review.context import PageContext
from ringfence.toolkit.rule_offers.marks import AnsweredRule, answered_rules, mark, request_of
from ringfence.toolkit.session.session import Session

DAYS = 7  # for which decisions are counted
_INHERITED = frozenset(f"rules/{name}.yaml" for name in READY_MADE)
EVERYBODY = "Everybody"
_Key = tuple[str, str | None, str, str]


@dataclass(frozen=True, slots=True)
class RuleRow:
    """Rules that stand at one place: what they say, how often they decided lately, and when last.

    `last` in POSIX seconds; None: never lately.
    """

    rules: tuple[Rule, ...]
    hits: int
    last: float | None

    @property
    def rule(self) -> Rule:
        """The first rule, which the others resemble."""
        return self.rules[0]

    @property
    def patterns(self) -> list[str]:
        """The patterns, each once."""
        return list(dict.fromkeys(rule.pattern for rule in self.rules))


@dataclass(frozen=True, slots=True)
class Given:
    """A rule that a person's answer wrote, with the request that was answered, where it is still kept."""

    answer: AnsweredRule
    request: Request | None
    rows: list[RuleRow]
    over: bool  # whether it has ended


@dataclass(frozen=True, slots=True)
class Group:
    """Own rules of one agent, or of everybody."""

    title: str
    agent: str | None
    rows: list[RuleRow]


@dataclass(frozen=True, slots=True)
class Figures:
    """Numbers of the last days; `whole`: all records of these days were counted."""

    calls: int
    asked: int
    approved: int
    refused: int
    whole: bool

    @property
    def open(self) -> int:
        """Questions without an answer."""
        return max(self.asked - self.approved - self.refused, 0)

    @property
    def a_day(self) -> float:
        """Questions a day."""
        return self.asked / DAYS


@dataclass(frozen=True, slots=True)
class PolicyView:
    """A policy as the page shows it; `problem`: why the newest file is not in force."""

    policy: Policy
    problem: str | None
    figures: Figures
    given: list[Given]
    own: list[Group]
    floor: list[RuleRow]
    inherited: list[RuleRow]

    @property
    def floor_files(self) -> list[str]:
        """The files that mandatory items stand in, each once."""
        return list(dict.fromkeys(row.rule.where.file for row in self.floor if row.rule.where))

    @property
    def ending(self) -> int:
        """How many rules that people gave have an end that is still to come."""
        return sum(one.answer.until is not None and not one.over for one in self.given)


def current(context: PageContext) -> tuple[Policy, str | None]:
    """Return the policy in force, and what is wrong with its file if that no longer loads."""
    known = context.session.policy
    if context.source is None:
        return known, None
    try:
        return Policy.load(context.source), None
    except PolicyError as error:
        return known, str(error.problems[0]) if error.problems else str(error)
    except OSError as error:
        return known, f"{context.source.name} cannot be read: {error.strerror}"


def view(context: PageContext) -> PolicyView:
    """Return the policy with the decisions of the last days. Records of earlier revisions count where the
    rule is the same.
    """
    policy, problem = current(context)
    found, whole = counts.since(context.session.state, time.time() - DAYS * 86400)
    hits = _hits(found)
    content = policy.whole  # with the rules on trial
    every = list(_rules(content))
    own = [rule for rule in every if not _is_inherited(rule)]
    return PolicyView(
        policy,
        problem,
        _figures(found, whole),
        list(_given(context.session, content, hits)),
        list(_groups([rule for rule in own if mark(rule.reason) is None], hits)),
        [_row(item.rules, hits) for item in (*content.mandatory, *content.run_floor) if item.rules],
        [_row((rule,), hits) for rule in every if _is_inherited(rule)],
    )


def _is_inherited(rule: Rule) -> bool:
    return rule.where is not None and rule.where.file in _INHERITED


def _rules(content: Content) -> Iterator[Rule]:
    for agent in content.agents.values():
        for listed in agent.rules.values():
            yield from listed
        yield from agent.run
    for listed in content.rules.values():
        yield from listed
    yield from content.run


def _key(rule: Rule) -> _Key:
    return rule.tier, rule.agent, rule.key, rule.pattern


def _hits(found: Iterable[Counted]) -> dict[_Key, tuple[int, float]]:
    hits: dict[_Key, tuple[int, float]] = {}
    for one in found:
        if one.kind.event == "call" and one.kind.rule is not None:
            tier, agent, key, pattern = one.kind.rule
            name = (str(tier), agent, str(key), str(pattern))
            number, last = hits.get(name, (0, 0.0))
            hits[name] = number + one.records, max(last, one.last)
    return hits


def _row(rules: tuple[Rule, ...], hits: dict[_Key, tuple[int, float]]) -> RuleRow:
    known = [hits[key] for key in dict.fromkeys(map(_key, rules)) if key in hits]
    return RuleRow(rules, sum(number for number, _ in known), max((last for _, last in known), default=None))


def _groups(rules: list[Rule], hits: dict[_Key, tuple[int, float]]) -> Iterator[Group]:
    for agent in dict.fromkeys([*(rule.agent for rule in rules if rule.agent is not None), None]):
        some = [_row((rule,), hits) for rule in rules if rule.agent == agent]
        if some:
            yield Group(EVERYBODY if agent is None else agent, agent, some)


def _given(session: Session, content: Content, hits: dict[_Key, tuple[int, float]]) -> Iterator[Given]:
    now = time.time()
    for answer in answered_rules(content):
        over = answer.until is not None and answer.until <= now
        rows = [_row((rule,), hits) for rule in answer.rules]
        yield Given(answer, request_for(session, answer.id), rows, over)


def request_for(session: Session, rule: str) -> Request | None:
    """Return the request whose answer wrote a rule; None if it is no longer kept."""
    try:
        return session.approvals.get(request_of(rule))
    except CallError:
        return None  # or it was answered in another state


def _figures(found: list[Counted], whole: bool) -> Figures:
    def number(event: str, *outcomes: str) -> int:
        return sum(
            one.records
            for one in found
            if one.kind.event == event and (not outcomes or one.kind.outcome in outcomes)
        )

    return Figures(
        number("call"),
        number("approval", "asked"),
        number("approval", GRANTED, SETTLED),
        number("approval", REFUSED),
        whole,
    )
