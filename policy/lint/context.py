"""Lint context: a policy's rules, where each map of rules applies, and the paths for which a rule decides.

Reads no files and reports no findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.pattern_queries import Budget, Unless, Wanted, Witness
from ringfence.policy.analysis.verdict_queries import (
    EVERY_EFFECT,
    QueryContext,
    Tier,
    VerdictQueries,
    context,
    only,
    pairs,
)
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.lint.earlier_answers import Answer, Answers, Change, Map, Question
from ringfence.policy.model import Effect, Limit, Rule
from ringfence.policy.patterns.matcher import Matcher
from ringfence.policy.patterns.syntax import Fold, Folding

_MOST_NAMED = 12


class LintContext:
    """One policy under examination; results of questions are remembered.

    `files`: only rules of these files, as `Where.file` names them, get findings; None: rules of all files.
    `fold`: differences between names that the workspace's file system ignores. Methods raise Undecided once
    the budget is spent.
    """

    def __init__(
        self,
        policy: Engine,
        files: frozenset[str] | None,
        budget: Budget,
        fold: Fold = Folding.NONE,
        answers: Answers | None = None,
    ) -> None:
        self.policy = policy
        self.budget = budget
        self.files = files
        self.fold = fold
        self.answers = Answers(policy, fold) if answers is None else answers
        more = (*policy.commands.discard, *policy.commands.through)
        more += tuple(change.pattern for change in self.answers.changed)
        self.questions = VerdictQueries([policy], more, budget, fold)
        self.names = agents([policy], budget=budget)
        self.pairs = pairs([policy])
        self.dead: set[tuple[str | None, str, int]] = set()
        self._within: dict[tuple[int, int], bool] = {}
        self._places: dict[tuple[str | None, str], list[tuple[QueryContext, int, int, int]]] = {}
        self._machines: dict[int, Matcher] = {}  # by the identity of a map, which is its key here
        self._denied: dict[tuple[int, ...], list[Wanted]] = {}
        self._contexts: dict[tuple[str, str, str], QueryContext] = {}

    def own(self, rule: Rule | Limit) -> bool:
        """Whether a rule or limit is written in one of the files under examination."""
        return self.files is None or (rule.where is not None and rule.where.file in self.files)

    def within(self, one: int, other: int) -> bool:
        """Whether every path that one pattern matches is matched by the other; both are given by number."""
        known = self._within.get((one, other))
        if known is None:
            known = self._within[one, other] = self.questions.automaton.holds(one, [other])
        return known

    def hits(self, rules: Sequence[Rule], witness: Witness) -> list[int]:
        """Return the indexes of all rules of a map that match a path, as the engine finds them."""
        machine = self._machines.get(id(rules))
        if machine is None:
            # Each rule is a group of its own: the matcher then reports every match, not only the last.
            machine = Matcher([rule.pattern for rule in rules], self.fold, range(len(rules)))
            self._machines[id(rules)] = machine
        state = machine.at(witness.path)
        return sorted((state.directory if witness.directory else state.file).last.values())

    def question(self, what: tuple[str, ...], place: Map, rules: Sequence[Rule], at: int) -> Question:
        """Return a question about one rule of a map."""
        return Question(what, place, at, self.questions.numbered(rules).numbers[at])

    def still(self, question: Question) -> bool:
        """Whether an earlier path is an answer still."""
        answer = self.answers.earlier(question)
        self.budget.spend(1)
        if answer is None or answer.witness is None or self._touched(question, answer, self.answers.changed):
            return False
        self.answers.note(question, answer)
        return True

    def nearest(
        self,
        question: Question,
        changes: Sequence[Change],
        ways: Callable[[Change | None], Iterable[Wanted]],
        unless: Unless = lambda _: False,
    ) -> Answer:
        """Return the shortest path of some ways, as an answer.

        Where an earlier path is an answer still, only the ways that a change opens are searched for a
        shorter one.
        """
        ask, number = self.questions.automaton, self.questions.number
        answer = self.answers.earlier(question)
        self.budget.spend(1)
        if answer is None or self._touched(question, answer, changes):
            found = ask.nearest(ways(None), unless=unless)
            answer = Answer(found.witness, found.least) if found else Answer(None)
        else:
            for change in changes:
                if ask.share(question.pattern, number[change.pattern], answer.least):
                    found = ask.nearest(ways(change), unless=unless, below=answer.least)
                    answer = Answer(found.witness, found.least) if found else answer
        self.answers.note(question, answer)
        return answer

    @cached_property
    def regions(self) -> dict[Change, Wanted]:
        """Every change since the earlier answers, with the paths that the changed rule decides in its map."""
        ask = self.questions
        return {
            change: Wanted(
                ((ask.number[change.pattern],),), ask.numbered(rules).after[len(rules) - change.end]
            )
            for _, _, rules in self.maps()
            for change in self.answers.changes(rules)
        }

    def opened(self, where: QueryContext) -> dict[Change, Wanted]:
        """Return the regions of the maps of a context."""
        if not self.regions:
            return {}
        lists = {id(rules): rules for ladder in where.ladders for tier in ladder for rules in tier}
        changes = (change for rules in lists.values() for change in self.answers.changes(rules))
        return {change: self.regions[change] for change in changes}

    def _touched(self, question: Question, answer: Answer, changes: Iterable[Change]) -> bool:
        """Whether a changed rule matches the path of an answer."""
        witness = answer.witness
        number, near = self.questions.number, self.questions.automaton.near
        return witness is not None and any(
            near(number[change.pattern]) >> question.pattern & 1 and change.matches(witness)
            for change in changes
        )

    def denied(self, tier: Tier) -> list[Wanted]:
        """Return the ways for one of the policy's tiers to deny."""
        key = tuple(map(id, tier))
        if key not in self._denied:
            self._denied[key] = list(self.questions.tier(tier, only(Effect.DENY)))
        return self._denied[key]

    def context(self, name: str, tool: str, action: str) -> QueryContext:
        """Return the query context of one agent, tool and action."""
        key = name, tool, action
        if key not in self._contexts:
            self._contexts[key] = context(self.policy, *key, self.fold)
        return self._contexts[key]

    def maps(self) -> Iterator[tuple[str | None, str, Sequence[Rule]]]:
        """Return each map of rules as agent (None: everybody), key and rules."""
        content = self.policy.content
        owners = [(None, content.rules), *((agent.name, agent.rules) for agent in content.agents.values())]
        return ((owner, key, listed) for owner, rules in owners for key, listed in rules.items())

    def contexts(self, owner: str | None, key: str) -> list[tuple[QueryContext, int, int, int]]:
        """Return where a map applies: the context, and the indexes of its tier chain, tier and map."""
        found = self._places.get((owner, key))
        if found is None:
            found = self._places[owner, key] = list(self._contexts_of(owner, key))
        return found

    def _contexts_of(self, owner: str | None, key: str) -> Iterator[tuple[QueryContext, int, int, int]]:
        for name in self.names:
            for tool, action in self.pairs:
                self.questions.automaton.budget.spend(1)
                (keys,) = self.policy.keys(tool, action)
                if key not in keys:
                    continue
                where = self.context(name, tool, action)
                entries = list(dict.fromkeys(e.name if e else None for _, e in self.policy.chain(name)))
                for ladder, entry in enumerate(entries):
                    if owner is not None and entry != owner:
                        continue
                    tier = len(where.ladders[ladder]) - 1 if owner is None else 0
                    yield where, ladder, tier, keys.index(key)

    def deciding(self, where: QueryContext, ladder: int, tier: int, place: int, at: int) -> Iterator[Wanted]:
        """Yield the ways for one rule to be the rule that the engine names."""
        rule = where.ladders[ladder][tier][place][at]
        under = self.questions.floor_below(where.floor, Effect(max(rule.effect - 1, 0)))
        others = [
            only_below(rule.effect, strict=n < ladder) for n in range(len(where.ladders)) if n != ladder
        ]
        rest = [each for n, each in enumerate(where.ladders) if n != ladder]
        if any(not effects for effects in others):
            return
        for wanted in self.settling(where, ladder, tier, place, at):
            for more in self.questions.chains(rest, others):
                yield wanted & under & more

    def settling(self, where: QueryContext, ladder: int, tier: int, place: int, at: int) -> Iterator[Wanted]:
        """Yield the ways for one rule to decide its tier chain, other chains and mandatory rules aside."""
        ask = self.questions
        tool, kind, action, _ = here = where.ladders[ladder][tier]
        rule = here[place][at]
        denies = rule.effect is Effect.DENY
        base = ask.is_last(here[place], at)
        for earlier in where.ladders[ladder][:tier]:
            for rules in earlier:
                base &= ask.none_of(rules)
        if place == 3:
            yield base & ask.none_of(tool) & ask.none_of(kind) & ask.none_of(action)
        elif place == 2 and denies:
            yield from ask.undenied(base, tool, kind)
        elif place == 2:
            yield base & ask.none_of(tool) & ask.none_of(kind)
        elif place == 1 and denies:
            yield from ask.undenied(base, tool)
        elif place == 1:
            yield from ask.undenied(base & ask.none_of(tool), action)
        elif denies:
            yield base
        else:
            yield from ask.undenied(base, kind, action)

    def covering(self, rules: Sequence[Rule], at: int) -> list[Rule]:
        """Return few later rules that together match every path that one rule matches."""
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
    """Return the effects that are looser than this one; unless strict, the effect itself too."""
    return frozenset(each for each in EVERY_EFFECT if each < effect or (each == effect and not strict))


def rule_text(rule: Rule) -> str:
    """Return a rule as it is written in a policy: pattern and effect; of a set's pattern, the set too."""
    line = f" (line {rule.set_where.line})" if rule.set_where else ""
    origin = f" of the set {rule.set_name}{line}" if rule.set_name else ""
    return f'"{rule.pattern}"{origin}: {rule.effect}'


def line(rule: Rule) -> str:
    """Return a rule as written, with its line number where it has one."""
    return f"{rule_text(rule)} (line {rule.where.line})" if rule.where else rule_text(rule)


def listed(rules: Sequence[Rule]) -> str:
    """Return the rules as one text; after the first 12 only the number of the others."""
    more = f" and {len(rules) - _MOST_NAMED} more" if len(rules) > _MOST_NAMED else ""
    return ", ".join(line(rule) for rule in rules[:_MOST_NAMED]) + more
