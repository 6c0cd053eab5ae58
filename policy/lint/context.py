"""One look at a policy: its rules, where they are looked at, and how a rule comes to decide.

Reads no files, and finds nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ringfence.policy.analysis.pattern_queries import Budget, Wanted, Witness
from ringfence.policy.analysis.verdict_queries import (
    EVERY_EFFECT,
    QueryContext,
    Tier,
    VerdictQueries,
    agents,
    context,
    only,
    pairs,
)
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.model import ACTIONS, Effect, Limit, Rule
from ringfence.policy.patterns.matcher import Matcher
from ringfence.policy.patterns.syntax import Fold, Folding

_MOST_NAMED = 12


class LintContext:
    """One look at a policy."""

    def __init__(
        self, policy: Engine, files: frozenset[str] | None, budget: Budget, fold: Fold = Folding.NONE
    ) -> None:
        self.policy = policy
        self.budget = budget
        self.files = files
        self.fold = fold
        self.questions = VerdictQueries([policy], budget=budget, fold=fold)
        self.names = agents([policy], budget=budget)
        self.pairs = pairs([policy])
        self.dead: set[tuple[str | None, str, int]] = set()
        self._within: dict[tuple[int, int], bool] = {}
        self._places: dict[tuple[str | None, str], list[tuple[QueryContext, int, int, int]]] = {}
        self._machines: dict[int, Matcher] = {}  # by a map's identity, as below
        self._denied: dict[tuple[int, ...], list[Wanted]] = {}
        self._contexts: dict[tuple[str, str, str], QueryContext] = {}

    def own(self, rule: Rule | Limit) -> bool:
        return self.files is None or (rule.where is not None and rule.where.file in self.files)

    def within(self, one: int, other: int) -> bool:
        """Whether one pattern, by number, matches nothing that the other does not."""
        known = self._within.get((one, other))
        if known is None:
            known = self._within[one, other] = self.questions.automaton.holds(one, [other])
        return known

    def hits(self, rules: Sequence[Rule], witness: Witness) -> list[int]:
        """Return the places of all rules of a map that match a path, as the engine finds them."""
        machine = self._machines.get(id(rules))
        if machine is None:
            # Each in a group of its own, so that all that match are told and not the last one only.
            machine = Matcher([rule.pattern for rule in rules], self.fold, range(len(rules)))
            self._machines[id(rules)] = machine
        state = machine.at(witness.path)
        return sorted((state.directory if witness.directory else state.file).last.values())

    def denied(self, tier: Tier) -> list[Wanted]:
        """Ways for one of the policy's tiers to deny."""
        key = tuple(map(id, tier))
        if key not in self._denied:
            self._denied[key] = list(self.questions.tier(tier, only(Effect.DENY)))
        return self._denied[key]

    def context(self, name: str, tool: str, action: str) -> QueryContext:
        key = name, tool, action
        if key not in self._contexts:
            self._contexts[key] = context(self.policy, *key, self.fold)
        return self._contexts[key]

    def maps(self) -> Iterator[tuple[str | None, str, Sequence[Rule]]]:
        content = self.policy.content
        owners = [(None, content.rules), *((agent.name, agent.rules) for agent in content.agents.values())]
        return ((owner, key, listed) for owner, rules in owners for key, listed in rules.items())

    def contexts(self, owner: str | None, key: str) -> list[tuple[QueryContext, int, int, int]]:
        """Where a map is looked at: the context, its ladder, its tier, and its place in the tier."""
        found = self._places.get((owner, key))
        if found is None:
            found = self._places[owner, key] = list(self._contexts_of(owner, key))
        return found

    def _contexts_of(self, owner: str | None, key: str) -> Iterator[tuple[QueryContext, int, int, int]]:
        for name in self.names:
            for tool, action in self.pairs:
                self.questions.automaton.budget.spend(1)
                if key not in (tool, action, "*"):
                    continue
                where = self.context(name, tool, action)
                entries = list(dict.fromkeys(e.name if e else None for _, e in self.policy.chain(name)))
                for ladder, entry in enumerate(entries):
                    if owner is not None and entry != owner:
                        continue
                    tier = len(where.ladders[ladder]) - 1 if owner is None else 0
                    place = 2 if key == "*" else 1 if key in ACTIONS else 0
                    yield where, ladder, tier, place

    def deciding(self, where: QueryContext, ladder: int, tier: int, place: int, at: int) -> Iterator[Wanted]:
        """Ways for one rule to be what the engine names as deciding."""
        rule = where.ladders[ladder][tier][place][at]
        under = self.questions.floor_below(where.floor, Effect(max(rule.effect - 1, 0)))
        others = [
            only_below(rule.effect, strict=n < ladder) for n in range(len(where.ladders)) if n != ladder
        ]
        rest = [each for n, each in enumerate(where.ladders) if n != ladder]
        if any(not effects for effects in others):
            return
        for way in self.settling(where, ladder, tier, place, at):
            for more in self.questions._all(rest, others):
                yield way & under & more

    def settling(self, where: QueryContext, ladder: int, tier: int, place: int, at: int) -> Iterator[Wanted]:
        """Ways for one rule to decide its ladder, whatever the floor and the other ladders say."""
        ask = self.questions
        tool, action, _ = here = where.ladders[ladder][tier]
        rule = here[place][at]
        base = ask.is_last(here[place], at)
        for earlier in where.ladders[ladder][:tier]:
            for rules in earlier:
                base &= ask.none_of(rules)
        ways: Iterable[Wanted] = (base,)
        if place == 2:
            ways = (base & ask.none_of(tool) & ask.none_of(action),)
        elif place == 1 and rule.effect is Effect.DENY:
            ways = [base & each for each in ask.not_denied(tool)]
        elif place == 1:
            ways = (base & ask.none_of(tool),)
        elif rule.effect is not Effect.DENY:
            ways = [base & each for each in ask.not_denied(action)]
        yield from ways

    def covering(self, rules: Sequence[Rule], at: int) -> list[Rule]:
        """As few later rules as can be found that together match all that one rule matches."""
        ask = self.questions
        number = ask.number[rules[at].pattern]
        every = rules[at + 1 :]
        alone = next((r for r in every if ask.automaton.holds(number, [ask.number[r.pattern]])), None)
        if alone:
            return [alone]
        later = [r for r in every if ask.automaton.meet(number, ask.number[r.pattern])]
        kept = list(later)
        for rule in later[:40]:
            less = [each for each in kept if each is not rule]
            if ask.automaton.holds(number, [ask.number[each.pattern] for each in less]):
                kept = less
        return kept


def only_below(effect: Effect, *, strict: bool) -> frozenset[Effect]:
    return frozenset(each for each in EVERY_EFFECT if each < effect or (each == effect and not strict))


def said(rule: Rule) -> str:
    return f'"{rule.pattern}": {rule.effect}'


def line(rule: Rule) -> str:
    return f"{said(rule)} (line {rule.where.line})" if rule.where else said(rule)


def listed(rules: Sequence[Rule]) -> str:
    more = f" and {len(rules) - _MOST_NAMED} more" if len(rules) > _MOST_NAMED else ""
    return ", ".join(line(rule) for rule in rules[:_MOST_NAMED]) + more
