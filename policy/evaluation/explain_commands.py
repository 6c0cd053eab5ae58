"""Explanation of a verdict on a command line: every rule that each simple command was compared with.

Follows the engine's order, and takes the verdict from the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringfence.policy.commands.needs import judged
from ringfence.policy.commands.patterns import parse
from ringfence.policy.commands.words import Words, written
from ringfence.policy.evaluation.agent_patterns import applies
from ringfence.policy.evaluation.decisions import decision
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.evaluation.run_rules import last_match
from ringfence.policy.model import RUN, Agent, Explanation, Rule, Step

_NOT_WHOLE = 'does not match: the line is more than simple commands, and only "*" matches such a line'


def explain_command(policy: Engine, agent: str, line: str) -> Explanation:
    """Judge a command line, and list every rule compared with each of its simple commands."""
    effect, winner = policy.verdict(agent, RUN, RUN, line)
    parts = judged(line)
    steps: list[Step] = []
    for words in parts:
        about = "" if len(parts) == 1 else f"{'the whole line' if words is None else written(words)}: "
        explanation = _CommandExplanation(policy, words, winner, about)
        steps += explanation.floor(agent)
        seen: set[str | None] = set()
        for name, entry in policy.chain(agent):
            owner = entry.name if entry else None
            if owner not in seen:
                seen.add(owner)
                steps += explanation.tiers(name, entry)
    return Explanation(decision(effect, winner, agent, RUN, RUN, line), tuple(steps))


class _CommandExplanation:
    """One simple command (None: a line that is not whole), with the rule that the engine chose."""

    def __init__(self, policy: Engine, words: Words | None, winner: Rule | None, about: str) -> None:
        self.policy = policy
        self.words = words
        self.winner = winner
        self.about = about

    def floor(self, agent: str) -> Iterator[Step]:
        """Yield a step for each mandatory rule on commands."""
        for item in (each for each in self.policy.content.run_floor if applies(each, agent)):
            left_out = next((text for text in item.excepts if parse(text).fits(self.words)), None)
            for rule in item.rules:
                if not self._fits(rule):
                    yield self._step(rule, agent, self._miss())
                elif left_out is not None:
                    yield Step(RUN, agent, rule, False, False, f'{self.about}left out by except "{left_out}"')
                elif rule is self.winner:
                    yield self._step(rule, agent, "decides")
                else:
                    yield self._step(rule, agent, "matches, but another rule is as strict or stricter")

    def tiers(self, name: str, entry: Agent | None) -> Iterator[Step]:
        """Yield a step for each rule of one agent's list and of everybody's, in the order of comparison."""
        decided = ""
        own = [("agent's rules", entry.run)] if entry else []
        for title, rules in [*own, ("global rules", self.policy.content.run)]:
            yield from self._list(name, rules, decided)
            if not decided and last_match(rules, self.words) is not None:
                decided = f"the {title} decided already"

    def _list(self, name: str, rules: Sequence[Rule], decided: str) -> Iterator[Step]:
        last = last_match(rules, self.words)
        for rule in reversed(rules):
            if not self._fits(rule):
                yield self._step(rule, name, self._miss())
            elif rule is self.winner:
                yield self._step(rule, name, "decides")
            elif decided:
                yield self._step(rule, name, f"matches, but {decided}")
            elif rule is not last:
                line = f" (line {last.where.line})" if last and last.where else ""
                later = last.pattern if last else ""
                yield self._step(rule, name, f'matches, but "{later}" comes later{line}')
            else:
                yield self._step(rule, name, "matches, but a stricter verdict holds")

    def _fits(self, rule: Rule) -> bool:
        return parse(rule.pattern).fits(self.words)

    def _miss(self) -> str:
        return _NOT_WHOLE if self.words is None else "does not match"

    def _step(self, rule: Rule, name: str, why: str) -> Step:
        matched = self._fits(rule)
        why = why if why == "does not match" else f"{self.about}{why}"
        return Step(RUN, name, rule, matched, matched and rule is self.winner, why)
