"""Policy engine: decides what agents may do to files, from a YAML policy to a verdict.

Pure: no clock, no randomness, and no file access except for reading policies. Imports nothing of `toolkit`.
"""

from __future__ import annotations

from ringfence.policy.errors import PolicyError, Problem, Where
from ringfence.policy.loading.ready_made import READY_MADE, ready_made
from ringfence.policy.model import (
    ACTIONS,
    TOOL_ACTIONS,
    Amount,
    Case,
    Decision,
    Effect,
    Explanation,
    Invariant,
    Limit,
    LimitHit,
    Need,
    Rule,
    Step,
)
from ringfence.policy.patterns.syntax import Folding
from ringfence.policy.policy import Policy

load = Policy.load
loads = Policy.loads

__all__ = [
    "ACTIONS",
    "READY_MADE",
    "TOOL_ACTIONS",
    "Amount",
    "Case",
    "Decision",
    "Effect",
    "Explanation",
    "Folding",
    "Invariant",
    "Limit",
    "LimitHit",
    "Need",
    "Policy",
    "PolicyError",
    "Problem",
    "Rule",
    "Step",
    "Where",
    "load",
    "loads",
    "ready_made",
]
