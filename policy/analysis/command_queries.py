"""Questions about the verdicts on commands, exact over every command line, each answer from the engine.

A policy is for one agent a few lists of patterns of words; the verdict depends only on which of them match,
so it is the same for all commands of a class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ringfence.policy.analysis.command_classes import CommandClass, classes
from ringfence.policy.analysis.shortest_witness import Budget
from ringfence.policy.evaluation.agent_patterns import applies
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.model import RUN, Agent, Content, Effect, Rule
from ringfence.policy.value_classes import dataclass

Judged = tuple[Effect, "Rule | None"]


@dataclass(frozen=True, slots=True)
class Found:
    """A command with its verdict for an agent, and the rule that decides it."""

    agent: str
    line: str
    effect: Effect
    rule: Rule | None


def lists(content: Content) -> Iterator[tuple[str | None, Sequence[Rule]]]:
    """Yield each list of rules on commands, with its agent's key; None is everybody's."""
    yield None, content.run
    for entry in content.agents.values():
        yield entry.name, entry.run


def patterns(content: Content) -> Iterator[str]:
    """Yield every pattern that verdicts on commands depend on."""
    for _, rules in lists(content):
        yield from (rule.pattern for rule in rules)
    for item in content.run_floor:
        yield from (rule.pattern for rule in item.rules)
        yield from item.excepts


class CommandQueries:
    """The classes of commands that some policies, and more patterns, tell apart."""

    def __init__(
        self, policies: Sequence[Engine], more: Iterable[str] = (), budget: Budget | None = None
    ) -> None:
        self.budget = budget or Budget()
        texts = dict.fromkeys(text for policy in policies for text in patterns(policy.content))
        texts.update(dict.fromkeys(more))
        self.number = {text: number for number, text in enumerate(texts)}
        self.classes = classes(list(texts), self.budget)

    def fits(self, pattern: str, each: CommandClass) -> bool:
        """Return whether a pattern matches the commands of a class."""
        return bool(each.matched >> self.number[pattern] & 1)

    def last(self, rules: Sequence[Rule], each: CommandClass, without: Rule | None = None) -> int | None:
        """Return the index of the rule of a list that decides for a class, or None."""
        self.budget.spend(1 + len(rules))
        found = (n for n in range(len(rules) - 1, -1, -1) if self.fits(rules[n].pattern, each))
        return next((n for n in found if without is None or rules[n] is not without), None)

    def judge(self, policy: Engine, agent: str, each: CommandClass, *, without: Rule | None = None) -> Judged:
        """Return the verdict on a class for an agent, and its rule, as the engine finds them.

        `without`: a rule that is left out.
        """
        effect, rule = self._floor(policy.content, agent, each)
        best: Judged | None = None
        for entry in chain(policy, agent):
            verdict = self._tiers(policy.content, entry, each, without)
            if best is None or verdict[0] > best[0]:
                best = verdict
        assert best is not None
        return (effect, rule) if rule is not None and effect >= best[0] else best

    def _tiers(
        self, content: Content, entry: Agent | None, each: CommandClass, without: Rule | None
    ) -> Judged:
        for rules in (entry.run if entry else (), content.run):
            at = self.last(rules, each, without)
            if at is not None:
                return rules[at].effect, rules[at]
        return Effect.ASK, None

    def _floor(self, content: Content, agent: str, each: CommandClass) -> Judged:
        effect, rule = Effect.ALLOW, None
        for item in content.run_floor:
            self.budget.spend(1 + len(item.rules))
            if item.effect <= effect or not applies(item, agent):
                continue
            if not any(self.fits(text, each) for text in item.excepts):
                found = next((one for one in item.rules if self.fits(one.pattern, each)), None)
                effect, rule = (item.effect, found) if found else (effect, rule)
        return effect, rule


def chain(policy: Engine, agent: str) -> list[Agent | None]:
    """Return the entries that judge an agent's commands, each once."""
    return list({entry.name if entry else None: entry for _, entry in policy.chain(agent)}.values())


def meaning(policy: Engine, agent: str) -> object:
    """Return what an agent's verdicts on commands follow from: equal for agents with the same verdicts."""
    entries = [
        tuple((rule.pattern, rule.effect) for rule in entry.run) if entry else ()
        for entry in chain(policy, agent)
    ]
    floor = [
        (item.effect, tuple(rule.pattern for rule in item.rules), item.excepts)
        for item in policy.content.run_floor
        if applies(item, agent)
    ]
    everybody = tuple((rule.pattern, rule.effect) for rule in policy.content.run)
    return tuple(entries), everybody, tuple(floor)


def confirmed(policy: Engine, agent: str, each: CommandClass, judged: Judged) -> Found:
    """Return a verdict on the shortest command of a class; AssertionError if the engine disagrees."""
    found = policy.verdict(agent, RUN, RUN, each.line)
    if found != judged:
        raise AssertionError(
            f"the engine says {found} where the analysis says {judged}: {agent} {each.line!r}"
        )
    return Found(agent, each.line, *found)


def shortest(
    policies: Sequence[Engine], names: Iterable[str], region: str, effects: Iterable[Effect], budget: Budget
) -> Found | None:
    """Return the shortest command that a pattern matches with one of the verdicts for one of the agents.

    The strictest verdict of the policies is the verdict.
    """
    ask = CommandQueries(policies, [region], budget)
    wanted = frozenset(effects)
    kinds: dict[tuple[object, ...], str] = {}
    for name in names:
        kinds.setdefault(tuple(meaning(each, name) for each in policies), name)
    for each in ask.classes:
        if not ask.fits(region, each):
            continue
        for name in kinds.values():
            verdict, policy = _strictest(ask, policies, name, each)
            if verdict[0] in wanted:
                return confirmed(policy, name, each, verdict)
    return None


@dataclass(frozen=True, slots=True)
class Differing:
    """The commands that get another verdict by the same rules, with the shortest of them."""

    before: Found
    after: Found
    pattern: str


def differing(
    old: Sequence[Engine], new: Sequence[Engine], names: Iterable[str], budget: Budget
) -> Iterator[Differing]:
    """Yield what is judged differently: for each kind of agent, verdicts and deciding pattern.

    The strictest verdict of the old policies is compared with the strictest of the new ones.
    """
    ask = CommandQueries([*old, *new], (), budget)
    kinds: dict[tuple[object, ...], str] = {}
    for name in names:
        key = tuple(tuple(meaning(each, name) for each in side) for side in (old, new))
        kinds.setdefault(key, name)
    for (before, after), name in kinds.items():
        if before == after:
            continue
        seen: set[tuple[Effect, Effect, str]] = set()
        for each in ask.classes:
            (was, by), (now, against) = (_strictest(ask, side, name, each) for side in (old, new))
            decides = now[1] or was[1]
            if was[0] is now[0] or decides is None:
                continue
            verdicts = was[0], now[0], decides.pattern
            if verdicts not in seen:
                seen.add(verdicts)
                yield Differing(
                    confirmed(by, name, each, was), confirmed(against, name, each, now), decides.pattern
                )


def _strictest(
    ask: CommandQueries, policies: Sequence[Engine], name: str, each: CommandClass
) -> tuple[Judged, Engine]:
    judged = [(ask.judge(policy, name, each), policy) for policy in policies]
    return max(judged, key=lambda found: found[0][0])
