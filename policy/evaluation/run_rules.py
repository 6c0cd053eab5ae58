"""Rules for commands: the verdict on a command line, by patterns of words.

The order is that of paths: mandatory items, the agent's rules, everybody's rules, else ask; within one list
the last match decides, and the strictest verdict over the agent's chain and over the line's commands counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ringfence.policy.commands.needs import judged
from ringfence.policy.commands.patterns import parse
from ringfence.policy.commands.words import Words
from ringfence.policy.evaluation.agent_patterns import applies
from ringfence.policy.model import Agent, Content, Effect, Rule

Verdict = tuple[Effect, "Rule | None"]


class RunRules:
    """The rules for commands of one policy; it holds no state."""

    def __init__(self, content: Content) -> None:
        self._content = content

    def judge(self, agent: str, entries: Iterable[Agent | None], line: str) -> Verdict:
        """Return the verdict on a line for an agent and its parents, given their entries under `agents`."""
        chain = list(entries)
        worst: Verdict | None = None
        for words in judged(line):
            verdict = self._judge_one(agent, chain, words)
            if worst is None or verdict[0] > worst[0]:
                worst = verdict
        assert worst is not None  # a line without any command is judged as one that is not whole
        return worst

    def _judge_one(self, agent: str, chain: Sequence[Agent | None], words: Words | None) -> Verdict:
        effect, rule = self.floor(agent, words)
        best: Verdict | None = None
        for entry in chain:
            chosen = (last_match(entry.run, words) if entry else None) or last_match(self._content.run, words)
            verdict: Verdict = (chosen.effect, chosen) if chosen else (Effect.ASK, None)
            if best is None or verdict[0] > best[0]:
                best = verdict
        assert best is not None
        return (effect, rule) if rule is not None and effect >= best[0] else best

    def floor(self, agent: str, words: Words | None) -> Verdict:
        """Return the strictest mandatory rule that matches for an agent; of equals the one written first."""
        effect, rule = Effect.ALLOW, None
        for item in self._content.run_floor:
            if item.effect <= effect or any(parse(text).fits(words) for text in item.excepts):
                continue
            if not applies(item, agent):
                continue
            found = next((one for one in item.rules if parse(one.pattern).fits(words)), None)
            if found is not None:
                effect, rule = item.effect, found
        return effect, rule


def last_match(rules: Sequence[Rule], words: Words | None) -> Rule | None:
    """Return the rule that decides in one list, or None where none matches."""
    return next((rule for rule in reversed(rules) if parse(rule.pattern).fits(words)), None)
