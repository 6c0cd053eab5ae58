"""Limits that are passed another way: by several small calls, or by a command that reads."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.policy.evaluation.limits import LIMITS, keys_of
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext
from ringfence.policy.model import Effect, Limit, LimitMap, counted_actions


def per_call(lint: LintContext) -> Iterator[Finding]:
    """Yield limits that deny by the size of one call while no limit counts the same over several."""
    everybody = lint.policy.content.limits
    for own in (everybody, *(agent.limits for agent in lint.policy.content.agents.values())):
        for key, listed in own.items():
            keys = keys_of(key, lint.policy.tools) if key != "*" else ("*",)
            for limit in listed:
                if lint.own(limit) and _passed_in_parts(limit, _beside(own, everybody, keys)):
                    message = (
                        f"the limit on {key} denies one call, and several smaller calls pass it together"
                    )
                    yield Finding("limit-per-call", message, limit.where)


def past_commands(lint: LintContext) -> Iterator[Finding]:
    """Yield limits on reading of agents that may run a command, whose reading nothing counts."""
    content = lint.policy.content
    every = [content.limits, *(agent.limits for agent in content.agents.values())]
    reading = [
        limit
        for own in every
        for key, listed in own.items()
        for limit in listed
        if counted_actions(key, lint.policy.tools) == ("read",) and lint.own(limit)
    ]
    if not reading:
        return
    from ringfence.policy.analysis.command_queries import CommandQueries, lists

    if not any(rules for _, rules in lists(content)):
        return  # without rules on commands, each one asks
    ask = CommandQueries([lint.policy], (), lint.budget)
    for limit in reading:
        tool = limit.key
        for name in lint.names:
            allowed = next(
                (each for each in ask.classes if ask.judge(lint.policy, name, each)[0] is Effect.ALLOW), None
            )
            if allowed is not None and limit in lint.policy.limits(name, tool):
                message = f"the limit on {limit.key} does not count what commands read, and some are allowed"
                yield Finding("limit-past-commands", message, limit.where)
                break


def _beside(own: LimitMap, everybody: LimitMap, keys: tuple[str, ...]) -> list[Limit]:
    return [limit for key in keys for limit in own.get(key) or everybody.get(key) or ()]


def _passed_in_parts(limit: Limit, beside: list[Limit]) -> bool:
    if limit.per != "call" or limit.over is not Effect.DENY:
        return False
    # A limit of zero stops even the smallest call.
    bounded = [name for name in LIMITS if getattr(limit, name)]
    over_all = [other for other in beside if other.per != "call"]
    return any(all(getattr(other, name) is None for other in over_all) for name in bounded)
