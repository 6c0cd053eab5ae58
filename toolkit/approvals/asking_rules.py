"""Why a call asks: its needs whose verdict is `ask`, and the rules that give this verdict.

Pure. A directory that is made on the way never asks, so no grant has to cover it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ringfence.policy import Effect, Need, Policy
from ringfence.policy.patterns.syntax import Fold


def asking(
    policy: Policy, agent: str, tool: str, needs: Iterable[Need], fold: Fold
) -> tuple[tuple[Need, ...], tuple[dict[str, Any], ...]]:
    """The needs that ask and the rules that ask, each once; a rule is {} where none decides."""
    asks: dict[Need, None] = {}
    rules: dict[Any, dict[str, Any]] = {}
    for need in needs:
        if need.incidental:
            continue
        name = need.name if policy.has_kinds else need.action
        effect, rule = policy.verdict(agent, tool, name, need.path, need.directory, fold=fold)
        if effect is Effect.ASK:
            asks[need] = None
            if rule not in rules:
                rules[rule] = {} if rule is None else rule.to_json()
    return tuple(asks), tuple(rules.values())
