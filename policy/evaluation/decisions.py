"""Decisions: a verdict with its reason and what to try next, and the same beyond a limit."""

from __future__ import annotations

from ringfence.policy.evaluation.limits import describe
from ringfence.policy.model import Decision, Effect, LimitHit, Rule
from ringfence.policy.value_classes import replace

_ASK_HINT = "a person has to grant this; send the same call again once it is granted"
_DENY_HINT = "do without it, or ask whoever owns the policy"
_LIMIT_HINTS = {
    Effect.ASK: _ASK_HINT,
    Effect.DENY: _DENY_HINT,
    Effect.ALLOW: "",
}


def decision(  # noqa: PLR0913  the fields of a Decision
    effect: Effect, rule: Rule | None, agent: str, tool: str, action: str, path: str, kind: str = ""
) -> Decision:
    """Return a verdict as a decision, with its reason and what to try next."""
    if rule is None:
        reason = "no rule decides, so a person is asked"
    else:
        reason = rule.reason or str(rule)
    if effect is Effect.ALLOW:
        hint = ""
    elif effect is Effect.ASK:
        hint = _ASK_HINT
    elif rule is not None and rule.tier == "mandatory":
        hint = "only a change of the policy can loosen this; do without it"
    else:
        hint = _DENY_HINT
    return Decision(effect, rule, agent, tool, action, path, reason, hint, kind=kind)


def over_limit(decided: Decision, hit: LimitHit) -> Decision:
    """Return a decision as an exceeded limit leaves it; `hit` is at least as strict as the decision."""
    if hit.limit.over == decided.effect:
        return replace(decided, limit=hit)
    return replace(
        decided,
        effect=hit.limit.over,
        reason=f"over the limit: {describe(hit)}",
        hint=_LIMIT_HINTS[hit.limit.over],
        limit=hit,
    )
