"""Questions about single rules of a policy: the shortest path that a rule decides, and what comes before it.

Exact, by the analysis that `check` uses; beyond its bound a question raises Undecided.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ringfence.policy import Effect, Folding, Policy
from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.command_queries import CommandQueries, confirmed, meaning
from ringfence.policy.analysis.pattern_queries import Budget, Witness
from ringfence.policy.analysis.shortest_witness import MAX_WORK
from ringfence.policy.lint.context import LintContext
from ringfence.policy.model import (
    ACTIONS,
    RUN,
    Agent,
    Content,
    Mandatory,
    Rule,
    asked_actions,
    names_action,
    path_needs,
)

SECONDS = 3.0  # for one question
_MOST = 6


@dataclass(frozen=True, slots=True)
class Placed:
    """A rule with its place in the policy: `owner` is the agent's entry, `item` its mandatory item."""

    rule: Rule
    owner: str | None
    at: int
    item: Mandatory | None = None


class RuleQuestions:
    """The rules of one file of a policy. One question at a time: threads wait for each other."""

    def __init__(self, policy: Policy, file: str, fold: Folding) -> None:
        self.policy = policy
        self.file = file
        self.fold = fold
        self._lock = threading.Lock()
        self._contexts: dict[int, tuple[Policy, LintContext]] = {}
        self._who: dict[tuple[int | str, ...], dict[str, tuple[frozenset[Effect], ...]]] = {}

    def rules_at(self, line: int, column: int) -> list[Rule]:
        """Return the rules written at a place, which counts from 0; several where a set stands there."""
        return self._by_place.get((line + 1, column + 1), [])

    @cached_property
    def _by_place(self) -> dict[tuple[int, int], list[Rule]]:
        content = self.policy.whole
        owners: tuple[Content | Agent, ...] = (content, *content.agents.values())
        listed = [rules for owner in owners for rules in (*owner.rules.values(), owner.run)]
        listed += [item.rules for item in (*content.mandatory, *content.run_floor)]
        out: dict[tuple[int, int], list[Rule]] = {}
        for rules in listed:
            for rule in rules:
                if rule.where is not None and rule.where.file == self.file:
                    out.setdefault((rule.where.line, rule.where.column), []).append(rule)
        return out

    def witness(self, rule: Rule) -> Witness | None:
        """Return the shortest path that a rule decides; None if there is none.

        For a rule on trial or about content: as if it were real. Undecided beyond the bound.
        """
        with self._lock:
            policy, lint = self._context(rule)
            placed = _placed(policy, rule)
            if placed is None:
                return None
            if placed.item is not None:
                return self._mandatory_witness(lint, placed.item, rule)
            found: list[Witness] = []
            for place in lint.contexts(placed.owner, rule.key):
                deciders = lint.deciding(*place, placed.at)
                witness = lint.questions.find(deciders)
                if witness is not None:
                    found.append(witness)
            return min(found, key=lambda each: (len(each.path), each.path), default=None)

    def command(self, rule: Rule) -> str | None:
        """Return the shortest command that a rule on commands decides for some agent; None if there is none.

        For a rule on trial: as if it were real. Undecided beyond the bound.
        """
        with self._lock:
            policy = self._policy_of(rule)
            end = time.monotonic() + SECONDS
            budget = Budget(expired=lambda: time.monotonic() > end)
            ask = CommandQueries([policy], budget=budget)
            names = {meaning(policy, name): name for name in agents([policy], budget=budget)}
            for each in ask.classes:
                for name in names.values() if ask.fits(rule.pattern, each) else ():
                    judged = ask.judge(policy, name, each)
                    if judged[1] is not None and _same(judged[1], rule):
                        return confirmed(policy, name, each, judged).line
            return None

    def _mandatory_witness(self, lint: LintContext, item: Mandatory, rule: Rule) -> Witness | None:
        """Return the shortest path of an item that nothing stricter, and no item before it, decides."""
        ask = lint.questions
        items = lint.policy.content.mandatory
        wanted = ask.inside(rule.pattern) & ask.outside(item.excepts)
        for other in items[: items.index(item)]:
            if other.effect >= item.effect and set(other.keys) >= set(item.keys) and not other.excepts:
                wanted &= ask.outside(each.pattern for each in other.rules)
        return ask.find([wanted])

    def overriding(self, rule: Rule) -> list[Rule]:
        """Return the rules that decide on some path of a rule in its place, at most 6, the nearest first."""
        with self._lock:
            policy, lint = self._context(rule)
            placed = _placed(policy, rule)
            if placed is None:
                return []
            meet, number = lint.questions.automaton.meet, lint.questions.number
            found = (
                other for other in _ahead(policy, placed) if meet(number[rule.pattern], number[other.pattern])
            )
            return [other for other, _ in zip(found, range(_MOST), strict=False)]

    def who_may(self, rules: Sequence[Rule]) -> dict[str, tuple[frozenset[Effect], ...]]:
        """Return the verdicts that occur on the paths of rules, for each kind of agent and each action.

        The rules are of one place; those on trial or about content count as if they were real. Agents that no
        entry fits are one kind, named "".
        """
        patterns = tuple(rule.pattern for rule in rules)
        policy = self._policy_of(rules[0])
        with self._lock:
            known = self._who.get((id(policy), *patterns))
            if known is not None:
                return known
            lint = self._context(rules[0])[1]
            ask, out = lint.questions, {}
            region = ask.inside(*patterns)
            for name in lint.names:
                wheres = [lint.context(name, action, action) for action in ACTIONS]
                verdicts = tuple(
                    frozenset(effect for effect in Effect if ask.ever(where, effect, region))
                    for where in wheres
                )
                entries = any(entry is not None for _, entry in policy.chain(name))
                out[name if entries else ""] = verdicts
            self._who[id(policy), *patterns] = out
            return out

    def _policy_of(self, rule: Rule) -> Policy:
        """Return the policy in which a rule counts."""
        policy = self.policy.with_trials() if rule.trial else self.policy
        return policy.where_content(rule.content[0]) if rule.content else policy

    def _context(self, rule: Rule) -> tuple[Policy, LintContext]:
        """Return the policy in which a rule counts, and its questions with a bound for the next one."""
        policy = self._policy_of(rule)
        end = time.monotonic() + SECONDS
        known = self._contexts.get(id(policy))
        if known is None:
            budget = Budget(expired=lambda: time.monotonic() > end)
            known = policy, LintContext(policy, frozenset({self.file}), budget, self.fold)
            self._contexts[id(policy)] = known
        budget = known[1].budget
        budget.work, budget.reserved, budget.expired = MAX_WORK, 0, lambda: time.monotonic() > end
        return known


def _same(one: Rule, other: Rule) -> bool:
    """Whether two rules are one rule of the text."""
    return (one.where, one.pattern, one.set_where) == (other.where, other.pattern, other.set_where)


def _placed(policy: Policy, rule: Rule) -> Placed | None:
    """Return where a rule is in a policy that may be a projection of the one it was read from."""
    content = policy.content
    if rule.tier == "mandatory":
        for item in content.mandatory:
            for at, other in enumerate(item.rules):
                if _same(other, rule):
                    return Placed(other, None, at, item)
        return None
    owner = content.agents.get(rule.agent) if rule.agent is not None else content
    listed = owner.rules.get(rule.key, ()) if owner else ()
    return next(
        (Placed(other, rule.agent, at) for at, other in enumerate(listed) if _same(other, rule)), None
    )


def _ahead(policy: Policy, placed: Placed) -> Iterator[Rule]:
    """Yield the rules that are compared before a rule, or that stand against it, as the engine does."""
    content, rule = policy.content, placed.rule
    for item in content.mandatory:
        if item.effect > rule.effect and (placed.item is not None or _meets(policy, rule.key, item.keys)):
            yield from item.rules
    if placed.item is not None:
        return
    owner = content.agents[placed.owner] if placed.owner is not None else content
    yield from owner.rules[rule.key][placed.at + 1 :]
    yield from _other_keys(policy, owner, rule)
    for agent in content.agents.values() if placed.owner is None else ():
        for key, listed in agent.rules.items():
            if _meets(policy, rule.key, (key,)):
                yield from listed


def _other_keys(policy: Policy, owner: Content | Agent, rule: Rule) -> Iterator[Rule]:
    """Yield the rules of a tier under keys that are looked at first, and the denies that stand."""
    for key, listed in owner.rules.items():
        if key == rule.key or not _meets(policy, rule.key, (key,)):
            continue
        if _rank(key) < _rank(rule.key):
            yield from listed
        elif key != "*":
            yield from (other for other in listed if other.effect is Effect.DENY > rule.effect)


def _rank(key: str) -> int:
    """Return when a key is looked at in its tier: tool, kind of writing, action, then `*`."""
    return 3 if key == "*" else 2 if key in ACTIONS else 1 if names_action(key) else 0


def _meets(policy: Policy, key: str, others: tuple[str, ...]) -> bool:
    """Whether one call can be judged by two keys."""
    return any(_call_of_both(policy, key, other) for other in others)


def _call_of_both(policy: Policy, one: str, other: str) -> bool:
    if "*" in (one, other) or one == other:
        return True
    return bool(_does(policy, one) & _does(policy, other))


def _does(policy: Policy, key: str) -> set[str]:
    """Return the actions, with their kinds, of the calls that a key is about."""
    if names_action(key):
        return set(asked_actions("", key, kinds=True))
    if key == RUN or key not in policy.tools:
        return set()
    needs = path_needs(key, policy.tools)
    return {name for action, _ in needs for name in asked_actions(key, action, kinds=True)}
