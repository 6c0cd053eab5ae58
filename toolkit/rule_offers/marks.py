"""Marks of rules that come from an answer: the id of such a rule, and which rules of a policy have one.

Pure. A rule is marked by its reason, so the mark is data of the policy: it needs no record beside it, and it
is in every decision that the rule makes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ringfence.policy.model import Content, Rule
from ringfence.toolkit.text import rfc3339

_MARK = re.compile(r"rule (r-[0-9a-f]{4,64}), from a person's answer(?:: |\Z)")


@dataclass(frozen=True, slots=True)
class AnsweredRule:
    """Rules that one answer wrote: an entry for each pattern and key."""

    id: str
    rules: tuple[Rule, ...]

    @property
    def until(self) -> int | None:
        """When the rules end, in POSIX seconds; None: never."""
        return self.rules[0].until

    def to_json(self) -> dict[str, Any]:
        """Return the rules and their places as JSON values."""
        return {
            "id": self.id,
            "request": request_of(self.id),
            "until": rfc3339(self.until) if self.until is not None else None,
            "rules": [{**rule.to_json(), "effect": str(rule.effect)} for rule in self.rules],
        }


def rule_id(approval: str) -> str:
    """Return the id of the rule that an answer to a request writes; one request has one."""
    return "r-" + approval.removeprefix("a-")


def request_of(rule: str) -> str:
    """Return the id of the request that a rule answered."""
    return "a-" + rule.removeprefix("r-")


def reason(rule: str, original: str | None = None) -> str:
    """Return the reason that marks a rule; `original` is that of a deny which it repeats."""
    return f"rule {rule}, from a person's answer{f': {original}' if original else ''}"


def mark(text: str | None) -> str | None:
    """Return the id of a rule in the reason of a decision; None if it has none."""
    found = _MARK.match(text or "")
    return found[1] if found else None


def answered_rules(content: Content) -> list[AnsweredRule]:
    """Return the marked rules of a policy, those written first at the top."""
    found: dict[str, list[Rule]] = {}
    for rule in _rules(content):
        name = mark(rule.reason)
        if name is not None:
            found.setdefault(name, []).append(rule)
    return [AnsweredRule(name, tuple(rules)) for name, rules in found.items()]


def in_force(content: Content, approval: str) -> AnsweredRule | None:
    """Return the rule that an answer to a request wrote, if the policy has it."""
    wanted = rule_id(approval)
    return next((each for each in answered_rules(content) if each.id == wanted), None)


def _rules(content: Content) -> Iterator[Rule]:
    for agent in content.agents.values():
        for listed in (*agent.rules.values(), agent.run):
            yield from listed
