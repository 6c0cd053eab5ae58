"""Offers: the tools that an agent's policy can ever permit, and whether they ask.

Pure. A tool is left out only when it is certain that every path is denied; in doubt it is offered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from ringfence.policy import Effect, Policy
from ringfence.policy.model import RUN
from ringfence.toolkit.tools import TOOLS, Tool

_EVERYWHERE = ("x", "x/y", "x.txt")
_SOME_TASK = "00000000-0000-4000-8000-000000000000"
_MAX_SAMPLES = 400


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool that is offered; `asks` is "never", "sometimes" or "always", by the rules alone."""

    tool: Tool
    asks: str

    @property
    def mark(self) -> str:
        """The note for the description on when a person is asked; empty if never."""
        if self.asks == "always":
            return "A person is asked before this is done."
        return "For some paths a person is asked first." if self.asks == "sometimes" else ""


def offers(
    policy: Policy, agent: str, *, tasks: bool = False, commands: bool = True, exact: bool = False
) -> tuple[Offer, ...]:
    """Return the tools that an agent is offered, in the table's order.

    `commands`: commands can run where the workspace is. The tool for them is offered only if the policy has
    something to say about commands.

    Verdicts are sampled on paths made from the policy's own patterns. Only where all of these are denied (or,
    with `exact`, none asks) all paths are analysed, which takes longer.
    """
    commands = commands and policy.content.rules_commands
    if policy.mode == "monitor":
        usable = (
            tool for tool in TOOLS.values() if (tasks or not tool.tasks) and (commands or not tool.runs)
        )
        return tuple(Offer(tool, "never") for tool in usable)
    known: dict[tuple[object, ...], frozenset[Effect]] = {}
    found = []
    for tool in TOOLS.values():
        if (tool.tasks and not tasks) or (tool.runs and not commands):
            continue
        effects = _effects(policy, agent, tool, known, exact=exact)
        if effects - {Effect.DENY}:
            asks = "never" if Effect.ASK not in effects else "sometimes"
            found.append(Offer(tool, "always" if Effect.ALLOW not in effects else asks))
    return tuple(found)


def effects_of(policy: Policy, agent: str, tool: Tool) -> frozenset[Effect]:
    """Return the verdicts that calls of a tool can get; none but deny only if that is certain."""
    return _effects(policy, agent, tool, {}, exact=False)


def _effects(
    policy: Policy, agent: str, tool: Tool, known: dict[tuple[object, ...], frozenset[Effect]], *, exact: bool
) -> frozenset[Effect]:
    """Return the verdicts that a call of the tool can get; the paths of its parameters are independent."""
    groups: dict[str, tuple[str, ...]] = {}
    for action, parameter in tool.needs:
        groups[parameter] = (*groups.get(parameter, ()), action)
    result = frozenset({Effect.ALLOW})
    for parameter, actions in groups.items():
        # Each kind of writing by itself: a call is of one of them.
        combinations = product(*(policy.names(tool.name, action) for action in actions))
        found = frozenset[Effect]().union(
            *(
                _of_combination(policy, agent, tool, parameter, combination, known, exact=exact)
                for combination in combinations
            )
        )
        result = frozenset(max(one, other) for one in result for other in found)
    return result


def _of_combination(  # noqa: PLR0913  the parts of one question
    policy: Policy,
    agent: str,
    tool: Tool,
    parameter: str,
    actions: tuple[str, ...],
    known: dict[tuple[object, ...], frozenset[Effect]],
    *,
    exact: bool,
) -> frozenset[Effect]:
    kind = parameter if parameter in ("", "task_ids") else "path"
    key = (_named(policy, tool), kind, actions)
    if key not in known:
        known[key] = (
            _of_commands(policy, agent)
            if RUN in actions
            else _group(policy, agent, tool, parameter, actions, exact=exact)
        )
    return known[key]


def _named(policy: Policy, tool: Tool) -> str:
    """Return the tool's name if a rule names it, else "": tools that no rule names are judged alike."""
    content = policy.content
    keys = {key for rules in (content.rules, *(a.rules for a in content.agents.values())) for key in rules}
    keys.update(key for item in content.mandatory for key in (*item.keys, *item.except_tools))
    return tool.name if tool.name in keys else ""


def _of_commands(policy: Policy, agent: str) -> frozenset[Effect]:
    """Return the verdicts that some command gets; all of them if the analysis is undecided."""
    if not policy.content.has_run_rules:
        return frozenset({Effect.ASK})  # the usual case, without importing the analysis
    from ringfence.policy.analysis.command_queries import CommandQueries
    from ringfence.policy.analysis.shortest_witness import Undecided

    try:
        ask = CommandQueries([policy])
        return frozenset(ask.judge(policy, agent, each)[0] for each in ask.classes)
    except Undecided:
        return frozenset(Effect)


def _group(  # noqa: PLR0913  the parts of one question
    policy: Policy, agent: str, tool: Tool, parameter: str, actions: tuple[str, ...], *, exact: bool
) -> frozenset[Effect]:
    effects: set[Effect] = set()
    for path in _samples(policy, parameter):
        for directory in (False, True):
            try:
                verdicts = [policy.effect(agent, tool.name, action, path, directory) for action in actions]
            except ValueError:  # a pattern that no canonical path could be made from
                continue
            effects.add(max(verdicts))
        if len(effects) == 3:
            break
    if parameter != "":
        wanted = {Effect.ALLOW, Effect.ASK} if exact or effects == {Effect.DENY} else set()
        effects |= _proved(policy, agent, tool, parameter, actions, wanted - effects)
    return frozenset(effects)


def _samples(policy: Policy, parameter: str) -> Iterator[str]:
    """Yield paths to sample: the root if the tool works on it alone, else one path for every pattern."""
    if parameter == "":
        yield "."
        return
    if parameter == "task_ids":
        yield f"@tasks/{_SOME_TASK}"
        return
    yield from _EVERYWHERE
    for text in list(_patterns(policy))[-_MAX_SAMPLES:]:
        path = re.sub(r"\{([^,{}]*)[^{}]*\}", r"\1", text.removeprefix("./"))
        path = re.sub(r"\[!?.[^\]]*\]|\?|\*+", "x", path).strip("/")
        if path:
            yield path


def _patterns(policy: Policy) -> dict[str, None]:
    """Return every pattern that verdicts depend on, without importing the analysis of all paths."""
    content = policy.content
    tiers = (content.rules, *(agent.rules for agent in content.agents.values()))
    found = dict.fromkeys(rule.pattern for rules in tiers for listed in rules.values() for rule in listed)
    for item in content.mandatory:
        found |= dict.fromkeys((*(rule.pattern for rule in item.rules), *item.excepts))
    return found


def _proved(  # noqa: PLR0913  the parts of one question
    policy: Policy, agent: str, tool: Tool, parameter: str, actions: tuple[str, ...], wanted: set[Effect]
) -> set[Effect]:
    """Return the wanted verdicts that some path gets; all of them if the analysis is undecided."""
    if not wanted:
        return set()
    from ringfence.policy.analysis.pattern_queries import Budget, Undecided
    from ringfence.policy.analysis.verdict_queries import ANYTHING, VerdictQueries, context, together

    region_of = ["/@tasks/*"] if parameter == "task_ids" else []
    where = together([context(policy, agent, tool.name, action) for action in actions])
    try:
        questions = VerdictQueries([policy], region_of, Budget())
        region = questions.inside(*region_of) if region_of else ANYTHING
        return {effect for effect in wanted if questions.find(questions.verdict(where, effect), region)}
    except Undecided:
        return wanted
