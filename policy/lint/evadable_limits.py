"""Limits that deny one big call and let several small ones pass."""

from __future__ import annotations

from collections.abc import Iterator

from ringfence.policy.evaluation.limits import LIMITS, keys_of
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext
from ringfence.policy.model import Effect, Limit, LimitMap


def per_call(look: LintContext) -> Iterator[Finding]:
    """Yield limits that deny by the size of one call while no limit counts the same over the session."""
    everybody = look.policy.content.limits
    for own in (everybody, *(agent.limits for agent in look.policy.content.agents.values())):
        for key, listed in own.items():
            keys = keys_of(key, look.policy.tools) if key != "*" else ("*",)
            for limit in listed:
                if look.own(limit) and _passed_in_parts(limit, _beside(own, everybody, keys)):
                    message = (
                        f"the limit on {key} denies one call, and several smaller calls pass it together"
                    )
                    yield Finding("limit-per-call", message, limit.where)


def _beside(own: LimitMap, everybody: LimitMap, keys: tuple[str, ...]) -> list[Limit]:
    return [limit for key in keys for limit in own.get(key) or everybody.get(key) or ()]


def _passed_in_parts(limit: Limit, beside: list[Limit]) -> bool:
    if limit.per != "call" or limit.over is not Effect.DENY:
        return False
    # A limit of zero stops even the smallest call.
    bounded = [name for name in LIMITS if getattr(limit, name)]
    over_all = [other for other in beside if other.per == "session"]
    return any(all(getattr(other, name) is None for other in over_all) for name in bounded)
