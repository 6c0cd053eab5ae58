"""Policy parts that can never be used: exceptions and agents' entries that nothing reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ringfence.policy.analysis.bit_sets import mask
from ringfence.policy.analysis.pattern_queries import PatternQueries, Wanted
from ringfence.policy.analysis.verdict_queries import VerdictQueries
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext
from ringfence.policy.model import Agent, Limit, Mandatory, Rule


def excepts(lint: LintContext) -> Iterator[Finding]:
    """Yield exceptions of mandatory items that leave nothing of the item, or exclude nothing."""
    ask = lint.questions
    for item in lint.policy.content.mandatory:
        if not item.excepts or not lint.own(item.rules[0]):
            continue
        numbers = [ask.number[text] for text in item.excepts]
        for rule in item.rules:
            if ask.automaton.holds(ask.number[rule.pattern], numbers):
                message = f'the exceptions leave nothing of "{rule.pattern}"'
                yield Finding("except-covers-all", message, rule.where)
        yield from _unused_excepts(ask, item)


def _unused_excepts(ask: VerdictQueries, item: Mandatory) -> Iterator[Finding]:
    for text in item.excepts:
        if ask.find([ask.inside(text) & ask.inside(*(rule.pattern for rule in item.rules))]) is None:
            yield Finding(
                "except-unused", f'the exception "{text}" meets none of the paths', item.rules[0].where
            )


def unused_agents(lint: LintContext) -> Iterator[Finding]:
    """Yield entries under `agents` for which later or exact entries leave no name."""
    content: Mapping[str, Agent] = lint.policy.content.agents
    keys = list(content)
    automaton = PatternQueries(
        [f"/{key}" for key in keys], covers=False, budget=lint.questions.automaton.budget
    )
    for at, key in enumerate(keys):
        if not set(key) & set("*?["):
            continue
        entry = content[key]
        written: list[Rule | Limit] = [each for listed in entry.rules.values() for each in listed]
        written += [each for listed in entry.limits.values() for each in listed]
        own = next((each for each in written if lint.own(each)), None)
        if own is None:
            continue
        later = mask(n for n, other in enumerate(keys) if n > at or not set(other) & set("*?["))
        if automaton.find([Wanted(((at,),), later)]) is None:
            message = f'the entry "{key}" applies to no agent: later or exact entries match all its names'
            yield Finding("agent-unused", message, own.where)
