"""Policy parts that can never be used: exceptions, limits and agents' entries that nothing reaches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ringfence.policy.analysis.bit_sets import mask
from ringfence.policy.analysis.pattern_queries import PatternQueries, Wanted
from ringfence.policy.analysis.verdict_queries import VerdictQueries, together, up_to
from ringfence.policy.evaluation.limits import keys_of
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext
from ringfence.policy.model import ACTIONS, POLICY_TOOLS, Agent, Effect, Limit, Mandatory, Rule, path_needs
from ringfence.policy.patterns.matcher import ROOT


def excepts(look: LintContext) -> Iterator[Finding]:
    """Yield exceptions of mandatory items that leave nothing of the item, or exclude nothing."""
    ask = look.questions
    for item in look.policy.content.mandatory:
        if not item.excepts or not look.own(item.rules[0]):
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


def limits(look: LintContext) -> Iterator[Finding]:
    """Yield limits that no call can exceed: it changes nothing that counts, or asks or is denied anyway."""
    content = look.policy.content
    for listed in (content.limits, *(agent.limits for agent in content.agents.values())):
        for key, some in listed.items():
            for limit in some:
                if look.own(limit) and not _reachable(look, limit):
                    message = f"the limit on {key} can never stop a call: {_why(look, limit)}"
                    yield Finding("limit-unreachable", message, limit.where)


def _why(look: LintContext, limit: Limit) -> str:
    if limit.key == "read" or not any(_countable(look, tool, limit) for tool in _tools(look)):
        return "no call changes as much as it allows"
    if not any(limit in look.policy.limits(name, tool) for name in look.names for tool in _tools(look)):
        return "every agent has limits of its own"
    outcome = "is denied" if limit.over is Effect.DENY else "asks or is denied"
    return f"every change that it counts {outcome} anyway"


def _tools(look: LintContext) -> tuple[str, ...]:
    return (*ACTIONS, *look.policy.tools)


def _countable(look: LintContext, tool: str, limit: Limit) -> bool:
    """Whether one call of a tool, or a session of such calls, can exceed the limit."""
    changes = POLICY_TOOLS[tool].changes if tool in POLICY_TOOLS else "files"
    if limit.key not in keys_of(tool, look.policy.tools) or changes == "no file":
        return False
    if changes == "tasks" and limit.max_bytes is None:  # `max_tasks` counts tasks, not `max_files`
        return False
    actions = {tool} if tool in ACTIONS else {action for action, _ in path_needs(tool, look.policy.tools)}
    counted = (actions & {limit.key} if limit.key in ACTIONS else actions) - {"read"}
    one_file = changes == "one file" and limit.per == "call" and limit.max_bytes is None
    return bool(counted) and not (one_file and limit.max_files)


def _reachable(look: LintContext, limit: Limit) -> bool:
    looser = up_to(Effect(limit.over - 1))
    return any(
        _countable(look, tool, limit)
        and limit in look.policy.limits(name, tool)
        and _let(look, name, tool, looser)
        for name in look.names
        for tool in _tools(look)
    )


def _let(look: LintContext, name: str, tool: str, effects: frozenset[Effect]) -> bool:
    """Whether some call of a tool has one of these verdicts; the root itself cannot be changed."""
    needs = [(tool, "")] if tool in ACTIONS else path_needs(tool, look.policy.tools)
    for parameter in dict.fromkeys(parameter for _, parameter in needs):
        wheres = [look.context(name, tool, action) for action, each in needs if each == parameter]
        whole = together(wheres)
        found = (
            (look.questions.ever(whole, effect) for effect in sorted(effects))
            if len(wheres) == 1
            else (look.questions.find(look.questions.verdict(whole, effect)) for effect in sorted(effects))
        )
        if all(each is None or each.path == ROOT for each in found):
            return False
    return True


def unused_agents(look: LintContext) -> Iterator[Finding]:
    """Yield entries under `agents` for which later or exact entries leave no name."""
    content: Mapping[str, Agent] = look.policy.content.agents
    keys = list(content)
    automaton = PatternQueries(
        [f"/{key}" for key in keys], covers=False, budget=look.questions.automaton.budget
    )
    for at, key in enumerate(keys):
        if not set(key) & set("*?["):
            continue
        entry = content[key]
        written: list[Rule | Limit] = [each for listed in entry.rules.values() for each in listed]
        written += [each for listed in entry.limits.values() for each in listed]
        own = next((each for each in written if look.own(each)), None)
        if own is None:
            continue
        later = mask(n for n, other in enumerate(keys) if n > at or not set(other) & set("*?["))
        if automaton.find([Wanted(((at,),), later)]) is None:
            message = f'the entry "{key}" applies to no agent: later or exact entries match all its names'
            yield Finding("agent-unused", message, own.where)
