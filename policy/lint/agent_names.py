"""Agent names in cases, invariants and options: whether a policy has an entry for each.

Reads no files. A name without an entry is no error: everybody's rules apply to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.pattern_queries import Undecided
from ringfence.policy.errors import nearest
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.lint.codes import Finding
from ringfence.policy.model import DEFAULT_AGENT, Case, Invariant

_WILD = frozenset("*?[")


def unknown_agent(policy: Engine, name: str) -> str | None:
    """Return a message about a name, or pattern of names, that matches no entry under `agents`; else None.

    A policy without entries gets no message, nor does `default`, the name of an agent without a name.
    """
    entries = policy.content.agents
    if not entries or name in (DEFAULT_AGENT, "*", "**"):
        return None
    try:
        named = agents([policy], name) if _WILD & set(name) else [name]
    except Undecided:
        return None
    if any(entry is not None for each in named for _, entry in policy.chain(each)):
        return None
    close = nearest(name, entries) or nearest(name.split("/")[0], entries)
    suggestion = f"; did you mean '{close}'?" if close else ", so only everybody's rules apply"
    return f"no entry under agents fits '{name}'{suggestion}"


def unknown_agents(policy: Engine, cases: Iterable[Case], invariants: Iterable[Invariant]) -> list[Finding]:
    """Return a finding for each case and invariant whose agent matches no entry."""
    named = [(case.agent, case.where) for case in cases]
    named += [(invariant.agent, invariant.where) for invariant in invariants]
    known = {name: unknown_agent(policy, name) for name, _ in named}
    return [Finding("agent-unknown", message, where) for name, where in named if (message := known[name])]
