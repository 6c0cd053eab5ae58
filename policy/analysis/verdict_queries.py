"""Verdict queries: turns questions about verdicts into pattern queries, and has the engine confirm answers.

A policy is, for one agent, tool and action, a few lists in which the last match decides. "Is there a path
with this verdict" becomes: matched by these and not by those patterns, once for each way to the verdict.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Iterable, Iterator, Sequence

from ringfence.policy.analysis.bit_sets import mask
from ringfence.policy.analysis.bit_sets import numbers as numbers_of
from ringfence.policy.analysis.pattern_queries import Budget, PatternQueries, Wanted, Witness
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.evaluation.rule_table import Keys
from ringfence.policy.model import (
    ACTIONS,
    Effect,
    Mandatory,
    Rule,
    RuleMap,
    asked_actions,
    names_action,
    path_needs,
)
from ringfence.policy.patterns.syntax import Fold, Folding
from ringfence.policy.rule_list import RuleList
from ringfence.policy.upstreams.rows import CALL
from ringfence.policy.value_classes import dataclass, replace

Effects = frozenset[Effect]
# A tier's lists: by tool, by kind of writing, by action, by `*`.
Tier = tuple[tuple[Rule, ...], tuple[Rule, ...], tuple[Rule, ...], tuple[Rule, ...]]
Ladder = tuple[Tier, ...]
ANYTHING = Wanted()
EVERY_EFFECT: Effects = frozenset(Effect)


def up_to(effect: Effect) -> Effects:
    """Return an effect and all looser effects."""
    return frozenset(each for each in Effect if each <= effect)


def only(effect: Effect) -> Effects:
    """Return the set of this effect alone."""
    return frozenset({effect})


@dataclass(frozen=True, slots=True)
class QueryContext:
    """The lists that apply to one agent, tool and action; the same as in the engine, rule by rule."""

    policy: Engine
    agent: str
    tool: str
    action: str
    ladders: tuple[Ladder, ...]
    floor: tuple[Mandatory, ...]
    fold: Fold = Folding.NONE  # how the engine compares names

    @property
    def meaning(self) -> tuple[object, ...]:
        """Equal for contexts that give the same verdicts by the same rules."""
        return self.ladders, self.floor


def context(policy: Engine, agent: str, tool: str, action: str, fold: Fold = Folding.NONE) -> QueryContext:
    """Collect the lists for one agent, tool (or bare action) and action, which may be a kind of writing.

    For `write` alone these are the lists of all kinds that the tool's calls can be: the strictest counts.
    """

    def tier(rules: RuleMap, keys: Keys) -> Tier:
        """Return a tier's lists by each of the keys."""
        by_tool, by_kind, by_action, by_any = (rules.get(key, ()) if key else () for key in keys)
        return by_tool, by_kind, by_action, by_any  # type: ignore[return-value]

    entries = {entry.name if entry else None: entry for _, entry in policy.chain(agent)}
    ladders: list[Ladder] = []
    rows = policy.keys(tool, action)
    for keys in rows:
        everybody = tier(policy.content.rules, keys)
        ladders += [
            (tier(each.rules, keys), everybody) if each else (everybody,) for each in entries.values()
        ]
    chosen = tuple(dict.fromkeys(ladders) if len(rows) > 1 else ladders)
    return QueryContext(policy, agent, tool, action, chosen, policy.floor(agent, tool, action), fold)


def together(wheres: list[QueryContext]) -> QueryContext:
    """Return several actions on one path as one context: the strictest verdict is the call's."""
    first = wheres[0]
    ladders = tuple(dict.fromkeys(ladder for where in wheres for ladder in where.ladders))
    floor = tuple(dict.fromkeys(item for where in wheres for item in where.floor))
    return replace(first, ladders=ladders, floor=floor)


def pairs(policies: Sequence[Engine]) -> list[tuple[str, str]]:
    """Return the tools and actions that can differ.

    These are each action for the tools without a key of their own, then each tool with one. Where one of the
    policies tells the kinds of writing apart, they are in the place of `write`.
    """
    named: set[str] = set()
    tools: dict[str, Sequence[tuple[str, str]]] = {}
    for policy in policies:
        tools.update(policy.tools)
        named.update(policy.content.rules)
        for agent in policy.content.agents.values():
            named.update(agent.rules)
        for item in policy.content.mandatory:
            named.update(item.keys, item.except_tools)
    kinds = any(policy.has_kinds for policy in policies)
    found = [(each, each) for action in ACTIONS for each in asked_actions("", action, kinds=kinds)]
    found += [(CALL, CALL)] if CALL in named or any(each.content.upstreams for each in policies) else []
    for tool in sorted(key for key in named if key != "*" and not names_action(key)):
        needs = path_needs(tool, tools) if tool in tools else ()
        needed = dict.fromkeys(action for action, _ in needs)
        found += [(tool, each) for action in needed for each in asked_actions(tool, action, kinds=kinds)]
    return found


def patterns(policy: Engine) -> Iterator[str]:
    """Yield every pattern that verdicts depend on."""
    content = policy.content
    for rules in (content.rules, *(agent.rules for agent in content.agents.values())):
        for listed in rules.values():
            for rule in listed:
                yield rule.pattern
    for item in content.mandatory:
        yield from (rule.pattern for rule in item.rules)
        yield from item.excepts


class _Numbered:
    """The numbers of a list's patterns; `after[n]` holds the patterns of its last n rules, as bits."""

    __slots__ = ("after", "numbers", "places", "rules")

    def __init__(self, rules: Sequence[Rule], numbers: list[int]) -> None:
        self.rules = rules  # so that nothing else gets its identity
        self.numbers = numbers
        self.after = [0]
        for number in reversed(numbers):
            self.after.append(self.after[-1] | 1 << number)
        self.places: dict[int, list[int]] = {}
        for at, number in enumerate(numbers):
            self.places.setdefault(number, []).append(at)

    def last(self, matched: int, end: int | None = None) -> int | None:
        """Return the index of the last matching rule before an end, or None."""
        places = (at for n in numbers_of(matched & self.after[-1]) for at in self.places[n])
        return max((at for at in places if end is None or at < end), default=None)


class VerdictQueries:
    """Questions about one or more policies, with all their patterns in one automaton.

    A `Wanted` describes one way for a path to get a verdict; several are alternatives.
    """

    def __init__(
        self,
        policies: Sequence[Engine],
        more: Iterable[str] = (),
        budget: Budget | None = None,
        fold: Fold = Folding.NONE,
    ) -> None:
        self.policies = tuple(policies)
        texts = dict.fromkeys(text for policy in self.policies for text in patterns(policy))
        texts.update(dict.fromkeys(more))
        self.number = {text: number for number, text in enumerate(texts)}
        self._lists: dict[int, _Numbered] = {}
        self.automaton = PatternQueries(list(texts), budget=budget, fold=fold)

    def inside(self, *texts: str) -> Wanted:
        """Return the paths that one of these patterns matches."""
        return Wanted((tuple(self.number[text] for text in texts),))

    def outside(self, texts: Iterable[str]) -> Wanted:
        """Return the paths that none of these patterns matches."""
        return Wanted(none=mask(self.number[text] for text in texts))

    def none_of(self, rules: Sequence[Rule]) -> Wanted:
        """Return the paths that no rule of a list matches."""
        return Wanted(none=self.numbered(rules).after[-1]) if rules else ANYTHING

    def numbered(self, rules: Sequence[Rule]) -> _Numbered:
        """Return the numbers of a list's patterns; remembered for lists of a policy."""
        found = self._lists.get(id(rules))
        if found is None:
            texts = rules.patterns if isinstance(rules, RuleList) else [rule.pattern for rule in rules]
            found = _Numbered(rules, [self.number[text] for text in texts])
            if isinstance(rules, RuleList):  # others are made for one question
                self._lists[id(rules)] = found
        return found

    def last_in(self, rules: Sequence[Rule], effects: Effects) -> Iterator[Wanted]:
        """Yield the ways for the last match in one list to have one of these effects."""
        later = 0
        for rule, number in zip(reversed(rules), reversed(self.numbered(rules).numbers), strict=True):
            if rule.effect not in effects:
                later |= 1 << number
            elif not later >> number & 1:
                yield Wanted(((number,),), later)

    def is_last(self, rules: Sequence[Rule], at: int) -> Wanted:
        """Return the paths for which exactly this rule is the last match."""
        numbered = self.numbered(rules)
        return Wanted(((numbered.numbers[at],),), numbered.after[len(rules) - 1 - at])

    def not_denied(self, rules: Sequence[Rule]) -> Iterator[Wanted]:
        """Yield the ways for the last match in one list not to be a deny, or for no rule to match."""
        yield self.outside(rule.pattern for rule in rules if rule.effect is Effect.DENY)
        first = next((at for at, rule in enumerate(rules) if rule.effect is Effect.DENY), len(rules))
        yield from self.last_in(rules[first:], up_to(Effect.ASK))

    def tier(self, tier: Tier, effects: Effects) -> Iterator[Wanted]:
        """Yield the ways for one tier to decide with one of these effects."""
        tool, kind, action, anything = tier
        denies = Effect.DENY in effects  # a deny of the kind or of the action stands
        if denies:
            yield from self.last_in(kind, only(Effect.DENY))
            yield from self.last_in(action, only(Effect.DENY))
        for chosen in self.last_in(tool, effects):
            yield from (chosen,) if denies else self.undenied(chosen, kind, action)
        passed = self.none_of(tool)
        for chosen in self.last_in(kind, effects):
            yield from (chosen & passed,) if denies else self.undenied(chosen & passed, action)
        passed &= self.none_of(kind)
        yield from (chosen & passed for chosen in self.last_in(action, effects))
        passed &= self.none_of(action)
        yield from (chosen & passed for chosen in self.last_in(anything, effects))

    def undenied(self, wanted: Wanted, *lists: Sequence[Rule]) -> Iterator[Wanted]:
        """Yield the parts of a way in which the last match in none of these lists is a deny."""
        lists = tuple(rules for rules in lists if rules)
        for chosen in itertools.product(*map(self.not_denied, lists)):
            yield functools.reduce(operator.and_, chosen, wanted)

    def ladder(self, ladder: Ladder, effects: Effects) -> Iterator[Wanted]:
        """Yield the ways for a tier chain (agent, global, then `ask`) to have one of these effects."""
        passed = ANYTHING
        for tier in ladder:
            yield from (passed & each for each in self.tier(tier, effects))
            for rules in tier:
                passed &= self.none_of(rules)
        if Effect.ASK in effects:
            yield passed

    def floor_below(self, floor: Iterable[Mandatory], effect: Effect) -> Wanted:
        """Return the paths for which no mandatory item is stricter than this effect."""
        out = ANYTHING
        for item in floor:
            if item.effect <= effect:
                continue
            paths = tuple(rule.pattern for rule in item.rules)
            if item.excepts:
                here = tuple(self.number[text] for text in paths)
                out &= Wanted(unless=((here, tuple(self.number[text] for text in item.excepts)),))
            else:
                out &= self.outside(paths)
        return out

    def floor_at(self, floor: Iterable[Mandatory], effect: Effect) -> Iterator[Wanted]:
        """Yield the ways for a mandatory item to have this effect."""
        for item in floor:
            if item.effect is effect:
                yield self.inside(*(rule.pattern for rule in item.rules)) & self.outside(item.excepts)

    def verdict(self, where: QueryContext, effect: Effect) -> Iterator[Wanted]:
        """Yield the ways for the verdict to be this effect."""
        under = self.floor_below(where.floor, effect)
        if effect is not Effect.ALLOW:
            most = up_to(effect)
            rest = [ANYTHING] if effect is Effect.DENY else None
            for at_floor in self.floor_at(where.floor, effect):
                for each in rest or self.chains(where.ladders, [most] * len(where.ladders)):
                    yield under & at_floor & each
        for chosen in range(len(where.ladders)) if effect is not Effect.ALLOW else (0,):
            wanted = [up_to(effect)] * len(where.ladders)
            wanted[chosen] = only(effect)
            for each in self.chains(where.ladders, wanted):
                yield under & each

    def chains(self, ladders: Sequence[Ladder], effects: Sequence[Effects]) -> Iterator[Wanted]:
        """Yield the ways for each tier chain to have one of the effects at its place in `effects`."""
        if not ladders:
            yield ANYTHING
            return
        if effects[0] == EVERY_EFFECT:
            yield from self.chains(ladders[1:], effects[1:])
            return
        for rest in self.chains(ladders[1:], effects[1:]):
            for each in self.ladder(ladders[0], effects[0]):
                yield each & rest

    def both(self, some: Iterable[Wanted], others: Sequence[Wanted]) -> Iterator[Wanted]:
        """Yield the ways that are in both sets, without most of the impossible ones."""
        automaton = self.automaton
        firsts = [each.every[0][0] if each.every and len(each.every[0]) == 1 else -1 for each in others]
        for one in some:
            automaton.budget.spend(1 + len(others) // 8)
            can = ~one.none
            for group in one.every:
                if len(group) == 1:
                    can &= automaton.near(group[0])
            for first, other in zip(firsts, others, strict=True):
                if first < 0 or can >> first & 1:
                    yield one & other

    def find(self, wanted: Iterable[Wanted], region: Wanted = ANYTHING) -> Witness | None:
        """Return the shortest path in a region; None: no such path exists, which is proved."""
        return self.automaton.find(each & region for each in wanted)

    def ever(self, where: QueryContext, effect: Effect, region: Wanted = ANYTHING) -> Witness | None:
        """Return the shortest path with this verdict, confirmed by the engine; None: there is none."""
        found = self.find(self.verdict(where, effect), region)
        if found is not None:
            confirm([where], found, effect)
        return found


def judge(where: QueryContext, witness: Witness) -> tuple[Effect, Rule | None]:
    """Return the engine's verdict on a witness, with the rule that decides."""
    path, directory = witness.path, witness.directory
    return where.policy.verdict(where.agent, where.tool, where.action, path, directory, fold=where.fold)


def strictest(wheres: Sequence[QueryContext], witness: Witness) -> tuple[Effect, Rule | None, QueryContext]:
    """Return the engine's strictest verdict on a witness, of one context or of the parts of the first one."""
    verdicts = [(*judge(where, witness), where) for where in wheres[1:] or wheres]
    return max(verdicts, key=lambda each: each[0])


def confirm(wheres: Sequence[QueryContext], witness: Witness, effect: Effect) -> Rule | None:
    """Have the engine confirm a witness; AssertionError, a defect of this program, if it disagrees.

    Of several contexts the first is the combination of the others.
    """
    judged, rule, _ = strictest(wheres, witness)
    if judged is not effect:
        where = wheres[0]
        raise AssertionError(
            f"the engine says {judged} where the analysis says {effect}: {where.agent} {where.tool}"
            f" {where.action} {witness}"
        )
    return rule
