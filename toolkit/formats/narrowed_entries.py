"""Entries of a policy that no other program can express: those that end, are on trial or depend on content.

An entry that depends on content is exported as if it held for any content, which is stricter; one on trial
decides nothing and is left out; one that ends is exported as long as it counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from ringfence.policy import Policy
from ringfence.policy.evaluation.agent_patterns import applies
from ringfence.policy.evaluation.projection import special_entries
from ringfence.policy.model import Agent, Content, Effect, Mandatory, Rule, RuleMap
from ringfence.toolkit.formats.model import Left


def left_out(policy: Policy, agent: str) -> Iterator[Left]:
    """Yield what the settings lack, or have in a stricter form, of the entries that concern an agent."""
    entry = policy.chain(agent)[0][1]
    for each in special_entries(policy.whole):
        if isinstance(each, Mandatory):
            if applies(each, agent):
                yield from _lacking(each, each.rules[0], f"mandatory for {', '.join(each.keys)}")
        elif each.agent is None or (entry and each.agent == entry.name):
            yield from _lacking(each, each, f"{each.key}: {each.pattern}: {each.effect}")
    for item in (*policy.content.mandatory, *policy.content.run_floor):
        if not applies(item, agent):
            what = f"except_agents {', '.join(item.except_agents)}"
            why = f"{agent} is one of them, so the item is left out"
            yield Left(place(item.rules[0]), what, why, harmless=True)


def _lacking(entry: Rule | Mandatory, rule: Rule, what: str) -> Iterator[Left]:
    where = place(rule)
    if entry.trial:
        yield Left(where, what, "on trial: it decides nothing, and is left out", harmless=True)
        return
    if entry.content:
        found = ", ".join(map(str, entry.content))
        yield Left(where, what, f"only for content with {found}; applied to any content, which is stricter")
    if entry.until is not None:
        end = datetime.fromtimestamp(entry.until, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        yield Left(where, what, f"ends at {end}; written as it is until then: export again after it")


def place(rule: Rule) -> str:
    """Return where a rule is written."""
    return f"{rule.where.file}:{rule.where.line}" if rule.where else ""


def for_content(policy: Policy, agent: str, keys: Sequence[str]) -> list[tuple[str, Effect]]:
    """Return the rules under some keys that depend on content, without their conditions."""
    if not policy.detectors:
        return []
    entry = policy.chain(agent)[0][1]
    own = policy.whole.agents[entry.name] if entry else None
    return list(_for_content(policy.whole, own, agent, keys))


def _for_content(
    whole: Content, own: Agent | None, agent: str, keys: Sequence[str]
) -> Iterator[tuple[str, Effect]]:
    tiers: list[RuleMap] = [whole.rules, *([own.rules] if own else [])]
    for tier in tiers:
        for key in keys:
            for rule in tier.get(key, ()):
                if rule.content and not rule.trial:
                    yield rule.pattern, rule.effect
    for item in whole.mandatory:
        if item.content and not item.trial and set(keys) & set(item.keys) and applies(item, agent):
            yield from ((rule.pattern, item.effect) for rule in item.rules)
