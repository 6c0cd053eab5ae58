"""Changed rules: whether a policy's new text adds or takes out exactly the rules of one answer.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from ringfence.policy.model import RUN, Content, Rule
from ringfence.toolkit.rule_offers.marks import mark


def only_adds(before: Content, after: Content, rule: str, number: int) -> bool:
    """Whether a policy has a number of rules with this mark, and otherwise the very same rules."""
    was, now = _rules(before), _rules(after)
    added = sum(mark(each.reason) == rule for rules in now.values() for each in rules)
    rest = {
        place: kept
        for place, rules in now.items()
        if (kept := [_meaning(each) for each in rules if mark(each.reason) != rule])
    }
    same = rest == {place: [_meaning(each) for each in rules] for place, rules in was.items() if rules}
    lengths = [
        (len(each.mandatory), len(each.run_floor), len(each.cases), len(each.invariants))
        for each in (before, after)
    ]
    return same and added == number and lengths[0] == lengths[1]


def only_removes(before: Content, after: Content, gone: Sequence[Rule]) -> bool:
    """Whether a policy has all its rules but these, and no others."""
    was, now = _rules(before), _rules(after)
    left = {place: [_meaning(each) for each in rules if each not in gone] for place, rules in was.items()}
    kept = {place: list(map(_meaning, rules)) for place, rules in now.items()}
    return {place: rules for place, rules in left.items() if rules} == {
        place: rules for place, rules in kept.items() if rules
    }


def _rules(content: Content) -> dict[tuple[str | None, str], list[Rule]]:
    found: dict[tuple[str | None, str], list[Rule]] = {}
    for owner, rules, run in (
        (None, content.rules, content.run),
        *((name, agent.rules, agent.run) for name, agent in content.agents.items()),
    ):
        found |= {(owner, key): list(listed) for key, listed in rules.items()}
        found[owner, RUN] = list(run)
    return found


def _meaning(rule: Rule) -> tuple[object, ...]:
    return rule.pattern, rule.effect, rule.reason, rule.until, rule.trial, rule.content, rule.mask
