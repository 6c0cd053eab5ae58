"""Limits on what a call, or a whole session, may change.

Pure counting: the caller provides the amount changed so far. A limit never makes a verdict looser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from ringfence.policy.model import (
    ACTIONS,
    LANGUAGE_TOOLS,
    Amount,
    Effect,
    Limit,
    LimitHit,
    LimitMap,
    path_needs,
)


def _files(limit: Limit, amount: Amount) -> bool:
    return limit.max_files is not None and amount.files > limit.max_files


def _bytes(limit: Limit, amount: Amount) -> bool:
    return limit.max_bytes is not None and amount.bytes > limit.max_bytes


# Countable bounds: the field in a policy, and whether an amount exceeds it.
LIMITS: Mapping[str, Callable[[Limit, Amount], bool]] = MappingProxyType(
    {"max_bytes": _bytes, "max_files": _files}
)

# Deleting more than this in one call asks, unless the policy says how many.
BUILT_IN = Limit(key="delete", max_files=500, per="call", over=Effect.ASK)


def keys_of(tool: str, tools: Mapping[str, tuple[tuple[str, str], ...]] = LANGUAGE_TOOLS) -> tuple[str, ...]:
    """Return the keys whose limits apply to a tool (or a bare action)."""
    if tool in ACTIONS:
        return (tool, "*")
    actions = dict.fromkeys(action for action, _ in path_needs(tool, tools)) if tool in tools else ACTIONS
    return (tool, *actions, "*")


def in_force(own: LimitMap, everybody: LimitMap, keys: Iterable[str]) -> tuple[Limit, ...]:
    """Return one agent's limits for these keys: its own, else everybody's, else the built-in limit."""
    found: list[Limit] = []
    for key in keys:
        limits = own.get(key) or everybody.get(key) or ()
        found += limits
        stated = any(limit.per == "call" and limit.max_files is not None for limit in limits)
        if key == BUILT_IN.key and not stated:
            found.append(BUILT_IN)
    return tuple(found)


def counted(key: str, usage: Mapping[str, Amount]) -> Amount:
    """Return the amount that a key counts: one action's share, or everything for a tool or `*`."""
    if key in ACTIONS:
        return usage.get(key, Amount())
    return sum(usage.values(), Amount())


def over(limit: Limit, amount: Amount) -> LimitHit | None:
    """Return the hit if this amount exceeds the limit, else None."""
    exceeded = tuple(name for name, test in LIMITS.items() if test(limit, amount))
    return LimitHit(limit, amount, exceeded) if exceeded else None


def describe(hit: LimitHit) -> str:
    """Return one line that names the exceeded limit and the amount reached."""
    reached = {"max_bytes": hit.amount.bytes, "max_files": hit.amount.files}
    ceiling = {"max_bytes": hit.limit.max_bytes, "max_files": hit.limit.max_files}
    parts = [f"{reached[name]:,} {name[4:]} where {ceiling[name]:,} are allowed" for name in hit.exceeded]
    span = "in one call" if hit.limit.per == "call" else "in one session"
    return f"{' and '.join(parts)} {span} ({hit.limit.key})"
