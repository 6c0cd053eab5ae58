"""Limits that can never stop a call: nothing counts, the rules are as strict, or another limit is first."""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator

from ringfence.policy.analysis.verdict_queries import together, up_to
from ringfence.policy.evaluation.limits import LIMITS, WITHIN, Counted, keys_of
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext
from ringfence.policy.model import ACTIONS, POLICY_TOOLS, Effect, Limit, counted_actions, path_needs
from ringfence.policy.patterns.matcher import ROOT


def limits(lint: LintContext) -> Iterator[Finding]:
    """Yield limits that stop no call: nothing that counts is changed or read, or it asks or is denied anyway,
    or another limit stops the call.
    """
    content = lint.policy.content
    every = [
        (key, limit)
        for listed in (content.limits, *(agent.limits for agent in content.agents.values()))
        for key, some in listed.items()
        for limit in some
        if lint.own(limit)
    ]
    found: dict[int, Finding] = {}
    for key, limit in reversed(every):  # so of two that stop the same, the first one stays
        why = _why_unreachable(lint, limit, found)
        if why is not None:
            message = f"the limit on {key} can never stop a call: {why}"
            found[id(limit)] = Finding("limit-unreachable", message, limit.where)
    yield from reversed(found.values())


def _why_unreachable(lint: LintContext, limit: Limit, gone: Container[int]) -> str | None:
    """Return why no call is stopped by a limit; None if one is. `gone`: ids of limits that are not needed."""
    reads = counted_actions(limit.key, lint.policy.tools) == ("read",)
    tools = [tool for tool in (*ACTIONS, *lint.policy.tools) if _countable(lint, tool, limit)]
    if not tools:
        return f"no {'answer gives' if reads else 'call changes'} as much as it allows"
    calls = [(name, tool) for name in lint.names for tool in tools if limit in lint.policy.limits(name, tool)]
    if not calls:
        return "every agent has limits of its own"
    looser = up_to(Effect(limit.over - 1))
    calls = [(name, tool) for name, tool in calls if _permits(lint, name, tool, looser)]
    if not calls:
        outcome = "is denied" if limit.over is Effect.DENY else "asks or is denied"
        return f"every {'reading' if reads else 'change'} that it counts {outcome} anyway"
    if all(_stopped_before(lint, limit, name, tool, gone) for name, tool in calls):
        return "another limit stops every call that it would stop"
    return None


def _countable(lint: LintContext, tool: str, limit: Limit) -> bool:
    """Whether one call of a tool, or several such calls, can exceed the limit."""
    if limit.key not in keys_of(tool, lint.policy.tools):
        return False
    counts = counted_actions(limit.key, lint.policy.tools)
    if not _actions(lint, tool).intersection(counts):
        return False
    return any(_exceeds(lint, tool, limit, bound) for bound in LIMITS)


def _exceeds(lint: LintContext, tool: str, limit: Limit, bound: str) -> bool:
    """Whether the amounts of a tool can exceed one bound of a limit that counts its actions."""
    most, value = _most(lint, tool, limit), getattr(limit, bound)
    if value is None or most == "no file":
        return False
    if bound == "max_bytes" or limit.per != "call":
        return True
    # `max_tasks` counts tasks, not `max_files`; over time the files of other calls count.
    return most == "files" or (most == "one file" and value == 0)


def _most(lint: LintContext, tool: str, limit: Limit) -> str:
    """Return what one call of a tool can change, or give where the limit is on reading."""
    counts, known = counted_actions(limit.key, lint.policy.tools), POLICY_TOOLS.get(tool)
    return "files" if known is None else known.gives if counts == ("read",) else known.changes


def _actions(lint: LintContext, tool: str) -> set[str]:
    return {tool} if tool in ACTIONS else {action for action, _ in path_needs(tool, lint.policy.tools)}


def _permits(lint: LintContext, name: str, tool: str, effects: frozenset[Effect]) -> bool:
    """Whether some call of a tool has one of these verdicts; the root itself cannot be changed."""
    needs = [(tool, "")] if tool in ACTIONS else path_needs(tool, lint.policy.tools)
    for parameter in dict.fromkeys(parameter for _, parameter in needs):
        # A call writes in one of the ways that its tool has, and one of them is enough.
        combinations = itertools.product(
            *(lint.policy.names(tool, action) for action, each in needs if each == parameter)
        )
        if not any(
            _permits_kind(lint, [(name, tool, each) for each in kinds], effects) for kinds in combinations
        ):
            return False
    return True


def _permits_kind(lint: LintContext, asked: list[tuple[str, str, str]], effects: frozenset[Effect]) -> bool:
    wheres = [lint.context(*each) for each in asked]
    whole = together(wheres)
    found = (
        (lint.questions.ever(whole, effect) for effect in sorted(effects))
        if len(wheres) == 1
        else (lint.questions.find(lint.questions.verdict(whole, effect)) for effect in sorted(effects))
    )
    return any(each is not None and each.path != ROOT for each in found)


def _stopped_before(lint: LintContext, limit: Limit, name: str, tool: str, gone: Container[int]) -> bool:
    """Whether other limits, as strict ones, stop every call of a tool that the limit stops."""
    every = lint.policy.counted_limits(name, tool)
    others = [each for each in every if each.limit is not limit and id(each.limit) not in gone]
    acting = _actions(lint, tool)
    return all(
        any(
            _stops_all(lint, tool, other, one) or _covers(lint, other, one, bound, acting) for other in others
        )
        for one in every
        if one.limit is limit
        for bound in LIMITS
        if _exceeds(lint, tool, limit, bound)
    )


def _stops_all(lint: LintContext, tool: str, other: Counted, one: Counted) -> bool:
    """Whether a limit of nothing stops, as strictly, each call of a tool that another limit counts."""
    most = other.limit.max_bytes if _most(lint, tool, one.limit) == "tasks" else other.limit.max_files
    return (
        most == 0
        and other.limit.over >= one.limit.over
        and _actions(lint, tool).intersection(one.actions) <= set(other.actions)
    )


def _covers(lint: LintContext, other: Counted, one: Counted, bound: str, acting: set[str]) -> bool:
    """Whether one limit is exceeded, as strictly, whenever this bound of another one is."""
    mine = getattr(other.limit, bound)
    return (
        mine is not None
        and mine <= getattr(one.limit, bound)
        and other.limit.over >= one.limit.over
        and one.limit.per in WITHIN[other.limit.per]
        and _counts_as_much(lint, other, one, acting)
    )


def _counts_as_much(lint: LintContext, other: Counted, one: Counted, acting: set[str]) -> bool:
    """Whether one limit's amount is never less than another's, for calls with these actions."""
    if one.limit.per == "call":  # nothing before the call counts, and `other` counts at least the call
        return acting.intersection(one.actions) <= set(other.actions)
    if not (one.agent == other.agent or one.agent.startswith(f"{other.agent}/")):
        return False
    if one.limit.key == other.limit.key:
        return True
    wide = other.limit.key in ACTIONS or other.limit.key == "*"
    rows = set(one.actions) if one.limit.key in (*ACTIONS, "*") else _changing(lint, one)
    return wide and rows <= set(other.actions)


def _changing(lint: LintContext, one: Counted) -> set[str]:
    """Return the actions that calls of the limit's tool have amounts of."""
    return _actions(lint, one.limit.key).intersection(one.actions)
