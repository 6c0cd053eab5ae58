"""Explanation of entries that do not count now: ended, on trial, or only where something is found in content.

What they would change is judged by the policy's projections.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ringfence.policy.evaluation.agent_patterns import applies
from ringfence.policy.evaluation.dates import rfc3339
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.evaluation.projection import Entry, special_entries
from ringfence.policy.model import RUN, Effect, Mandatory, Rule, Step
from ringfence.policy.patterns.matcher import matches
from ringfence.policy.patterns.syntax import Fold
from ringfence.policy.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Would:
    """A stricter or other verdict that something would lead to: `if_what` says what."""

    if_what: str
    effect: Effect
    rule: Rule | None

    def to_json(self) -> dict[str, Any]:
        """Return the verdict and its rule as JSON values; `rule` is None where no rule decides."""
        return {
            "if": self.if_what,
            "effect": str(self.effect),
            "rule": self.rule.to_json() if self.rule else None,
        }


def not_counting(  # noqa: PLR0913  the parameters of Engine.verdict, and a time
    policy: Engine,
    agent: str,
    tool: str,
    action: str,
    path: str,
    directory: bool,
    *,
    fold: Fold = False,
    at: float | None = None,
) -> Iterator[Step]:
    """Yield a step for each entry on the path that does not count, with the reason.

    `policy` is the whole policy, with what has ended at a time, in seconds since 1970.
    """
    keys = {key for row in policy.keys(tool, action) for key in row if key} if action != RUN else {RUN}
    owners = {entry.name if entry else None for _, entry in policy.chain(agent)} | {None}
    for entry in special_entries(policy.whole):
        why = _why(entry, at)
        if not why:
            continue
        if isinstance(entry, Mandatory):
            if keys.isdisjoint(entry.keys) or tool in entry.except_tools or not applies(entry, agent):
                continue
            if any(_fits(action, text, path, directory, fold) for text in entry.excepts):
                continue
            rules: tuple[Rule, ...] = entry.rules
        else:
            rules = (entry,) if entry.key in keys and entry.agent in owners else ()
        for rule in rules:
            if _fits(action, rule.pattern, path, directory, fold):
                yield Step(action, agent, rule, True, False, f"matches, but {why}")


def _why(entry: Entry, at: float | None) -> str:
    """Return why an entry does not count; empty if it does."""
    if entry.until is not None and at is not None and entry.until <= at:
        return f"it ended at {rfc3339(entry.until)}"
    reasons = [f"it is on trial: it would say {entry.effect}"] if entry.trial else []
    if entry.content:
        reasons.append(f"it counts only where {' or '.join(map(str, entry.content))} is found")
    return ", and ".join(reasons)


def _fits(action: str, pattern: str, path: str, directory: bool, fold: Fold) -> bool:
    if action == RUN:
        from ringfence.policy.commands.needs import judged
        from ringfence.policy.commands.patterns import parse

        return any(parse(pattern).fits(words) for words in judged(path))
    return matches(pattern, path, directory, fold=fold)
