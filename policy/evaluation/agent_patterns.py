"""Patterns of agent names: which agents a key under `agents` or an entry of `except_agents` names."""

from __future__ import annotations

from ringfence.policy.model import Mandatory
from ringfence.policy.patterns.name_index import NameMatcher
from ringfence.policy.patterns.syntax import Name, parse_agent


def fits(names: tuple[Name, ...], parts: list[str]) -> bool:
    """Return whether a parsed pattern names the agent of these parts (`coder/helper` has two)."""
    if len(names) != len(parts):
        return False
    return all(part and NameMatcher(name).fits(part) for name, part in zip(names, parts, strict=True))


def applies(item: Mandatory, agent: str) -> bool:
    """Return whether a mandatory item applies to an agent: to itself, or to one of its parents."""
    if not item.except_agents:
        return True
    excepts = [parse_agent(pattern) for pattern in item.except_agents]
    parts = agent.split("/")
    chain = (parts[:depth] for depth in range(1, len(parts) + 1))
    return not all(any(fits(names, each) for names in excepts) for each in chain)
