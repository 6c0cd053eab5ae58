"""Limits on what may be changed and read: in a call, in a session, in an hour or a day.

Pure counting: the caller provides the amounts so far. A limit never makes a verdict looser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from ringfence.policy.model import (
    ACTIONS,
    LANGUAGE_TOOLS,
    SECONDS,
    Amount,
    Counting,
    Effect,
    Limit,
    LimitHit,
    LimitMap,
    names_action,
    path_needs,
)
from ringfence.policy.value_classes import dataclass


def _files(limit: Limit, amount: Amount) -> bool:
    return limit.max_files is not None and amount.files > limit.max_files


def _bytes(limit: Limit, amount: Amount) -> bool:
    return limit.max_bytes is not None and amount.bytes > limit.max_bytes


# Countable bounds: the field in a policy, and whether an amount exceeds it.
LIMITS: Mapping[str, Callable[[Limit, Amount], bool]] = MappingProxyType(
    {"max_bytes": _bytes, "max_files": _files}
)

# For each period, those whose amount is never greater than that of the same calls in it. What a session does
# may take longer than a day, and an hour may have several sessions.
WITHIN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "call": frozenset({"call"}),
        "session": frozenset({"call", "session"}),
        "hour": frozenset({"call", "hour"}),
        "day": frozenset({"call", "hour", "day"}),
    }
)
_NONE = Amount()
# Deleting more than this in one call asks, unless the policy says how many.
BUILT_IN = Limit(key="delete", max_files=500, per="call", over=Effect.ASK)


def keys_of(tool: str, tools: Mapping[str, tuple[tuple[str, str], ...]] = LANGUAGE_TOOLS) -> tuple[str, ...]:
    """Return the keys whose limits apply to a tool (or a bare action)."""
    if names_action(tool):
        return (tool.partition(".")[0], "*")
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


@dataclass(frozen=True, slots=True)
class Counted:
    """A limit in force, the agent whose total it counts (the caller or a parent), and the actions."""

    agent: str
    limit: Limit
    actions: tuple[str, ...]


def counting(limits: Sequence[Counted]) -> Counting:
    """Return what these limits count."""
    reads = [each.limit.per for each in limits if each.actions == ("read",)]
    changes = [each.limit.per for each in limits if each.actions != ("read",)]
    return Counting(
        reads=bool(reads),
        kept_reads=any(per != "call" for per in reads),
        timed_reads=any(per in SECONDS for per in reads),
        timed_changes=any(per in SECONDS for per in changes),
    )


def counted(actions: tuple[str, ...], usage: Mapping[str, Amount]) -> Amount:
    """Return the amount of these actions together."""
    if len(actions) == 1:
        return usage.get(actions[0], _NONE)
    return sum((usage[action] for action in actions if action in usage), _NONE)


def over(limit: Limit, amount: Amount) -> LimitHit | None:
    """Return the hit if this amount exceeds the limit, else None."""
    exceeded = tuple(name for name, test in LIMITS.items() if test(limit, amount))
    return LimitHit(limit, amount, exceeded) if exceeded else None


def describe(hit: LimitHit) -> str:
    """Return one line that names the exceeded limit and the amount reached."""
    reached = {"max_bytes": hit.amount.bytes, "max_files": hit.amount.files}
    ceiling = {"max_bytes": hit.limit.max_bytes, "max_files": hit.limit.max_files}
    parts = [f"{reached[name]:,} {name[4:]} where {ceiling[name]:,} are allowed" for name in hit.exceeded]
    return f"{' and '.join(parts)} in one {hit.limit.per} ({hit.limit.key})"
