"""`explain`: one verdict, and every rule that was looked at on the way to it.

Looks at the workspace's names to know what is a directory and what is in it; reads no content.
"""

from __future__ import annotations

import argparse
import itertools
import os
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from policy import ACTIONS, Decision, Effect, Limit, Need, Policy, Step
from policy.errors import nearest
from toolkit import paths
from toolkit.cli.perform import DONE, UsageError
from toolkit.cli.place import policy_of, root_of
from toolkit.cli.prompt import because
from toolkit.cli.screen import STYLES, Screen
from toolkit.errors import CallError
from toolkit.text import size

STATE_FOLDER = ".ringfence"
SHOWN_NEEDS = 20
NO_MATCH = "does not match"


def explain(arguments: argparse.Namespace, screen: Screen) -> int:
    """Judge what the action or tool needs, and say how the verdict came about."""
    root = root_of(arguments)
    policy = policy_of(arguments, root)
    what, agent = arguments.what, arguments.agent
    needs = tuple(_needs(policy, root, what, arguments.path, arguments.destination))
    decision = policy.decide(agent, what, needs)
    if screen.as_json:
        screen.json(_to_json(policy, agent, what, decision, needs))
    else:
        _show(policy, agent, what, decision, needs, screen)
    return DONE


def _needs(policy: Policy, root: Path, what: str, path: str, to: str | None) -> Iterator[Need]:
    """What a call would need, as far as the names in the workspace tell."""
    pairs = _pairs(policy, what)
    parameters = [parameter for parameter in dict.fromkeys(parameter for _, parameter in pairs) if parameter]
    if to is not None and len(parameters) < 2:
        raise UsageError(f"{what} has one path")
    if to is None and len(parameters) > 1:
        raise UsageError(f"{what} needs two paths: from where, and where to")
    given = {"": paths.ROOT, **dict(zip(parameters, (path, to or ""), strict=False))}
    tree = _canonical(root, given[parameters[0]] if parameters else paths.ROOT)
    for action, parameter in pairs:
        text = given[parameter]
        target = _canonical(root, text)
        is_directory = text.endswith("/") or _is_directory(root, target)
        if target != tree:
            is_directory = is_directory or _is_directory(root, tree)
        yield Need(action, target, is_directory)
        if action == "write":
            yield from (Need(action, parent, True, True) for parent in _missing_parents(root, target))
        if action == "delete" or target != tree:
            for names, below in _below(root / tree):
                yield Need(action, paths.join([*paths.parts(target), *names]), below)


def _pairs(policy: Policy, what: str) -> tuple[tuple[str, str], ...]:
    """Each action with the parameter that names its path."""
    if what in ACTIONS:
        return ((what, "path"),)
    if what in policy.tools:
        return policy.tools[what]
    near = nearest(what, (*ACTIONS, *policy.tools))
    meant = f"; did you mean {near}?" if near else ""
    raise UsageError(f"{what} is neither an action ({', '.join(ACTIONS)}) nor a tool{meant}")


def _is_directory(root: Path, path: str) -> bool:
    return (root / path).is_dir()


def _canonical(root: Path, text: str) -> str:
    try:
        return paths.normalise(text, str(root.resolve()))
    except CallError as error:
        raise UsageError(f"{text}: {error.message} ({error.code}, whatever the policy says)") from None


def _missing_parents(root: Path, path: str) -> Iterator[str]:
    names = paths.parts(path)
    for depth in range(1, len(names)):
        parent = paths.join(names[:depth])
        if not (root / parent).exists():
            yield parent


def _below(folder: Path) -> Iterator[tuple[list[str], bool]]:
    """Every descendant by its names; links are entries, and are not followed."""
    if folder.is_symlink() or not folder.is_dir():
        return
    for current, folders, files in os.walk(folder):
        base = list(Path(current).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if name != STATE_FOLDER)
        for name in folders:
            yield [*base, name], not (Path(current) / name).is_symlink()
        for name in sorted(files):
            yield [*base, name], False


def _steps(policy: Policy, agent: str, what: str, decision: Decision, needs: Iterable[Need]) -> list[Step]:
    """What was looked at for the action and path that decided."""
    chosen = (decision.action, decision.path)
    directory = any(need.directory for need in needs if (need.action, need.path) == chosen)
    explanation = policy.explain(agent, what, decision.path, directory)
    return [step for step in explanation.steps if step.action == decision.action]


def _verdicts(policy: Policy, agent: str, what: str, needs: Iterable[Need]) -> list[tuple[Need, Effect]]:
    return [
        (need, policy.effect(agent, what, need.action, need.path, need.directory))
        for need in needs
        if not need.incidental
    ]


def _show(
    policy: Policy, agent: str, what: str, decision: Decision, needs: tuple[Need, ...], screen: Screen
) -> None:
    verdict = str(decision.effect)
    screen.line(
        f"{verdict}: {what} for agent {agent}, because of {decision.action} {decision.path}", STYLES[verdict]
    )
    screen.line(f"  {because(decision.to_json())}")
    if decision.hint:
        screen.line(f"  hint: {decision.hint}")
    verdicts = _verdicts(policy, agent, what, needs)
    if len(verdicts) > 1:
        screen.line("\nWhat it needs:")
        rows = [(need.action, need.path, str(effect)) for need, effect in verdicts[:SHOWN_NEEDS]]
        screen.table(("action", "path", "verdict"), rows)
        if len(verdicts) > SHOWN_NEEDS:
            screen.line(f"and {len(verdicts) - SHOWN_NEEDS:,} more; --json has them all")
    steps = _steps(policy, agent, what, decision, needs)
    if steps:
        screen.line(f"\nRules looked at for {decision.action} {decision.path}:")
        _show_steps(steps, screen)
    limits = policy.limits(agent, what)
    if limits and any(need.action != "read" for need in needs):
        screen.line("\nLimits it would meet:")
        screen.table(("limit", "at most", "per", "over it"), [_limit_row(limit) for limit in limits])


def _show_steps(steps: list[Step], screen: Screen) -> None:
    """A table of the rules that match or nearly do; the others by name, as there can be many."""
    told = [step for step in steps if step.matched or step.why != NO_MATCH]
    if told:
        screen.table(("rule", "tier", "key", "pattern", "says", "why"), [_row(step) for step in told])
    for group in _groups(step for step in steps if not step.matched and step.why == NO_MATCH):
        first, last = group[0].rule, group[-1].rule
        lines = f"-{last.where.line}" if last.where and last is not first else ""
        patterns = ", ".join(f'"{step.rule.pattern}"' for step in group)
        where, tier, key, _, says, _ = _row(group[0])
        text = f"does not match: {where}{lines}, {tier} {key} ({says}): {patterns}"
        screen.line(textwrap.fill(text, 100, subsequent_indent="  ", break_on_hyphens=False), "dim")


def _groups(steps: Iterable[Step]) -> list[list[Step]]:
    """Neighbours that differ in their patterns only."""

    def of(step: Step) -> tuple[Any, ...]:
        rule = step.rule
        return rule.tier, rule.agent, rule.key, rule.effect, rule.where and rule.where.file

    return [list(group) for _, group in itertools.groupby(steps, of)]


def _row(step: Step) -> tuple[str, ...]:
    rule = step.rule
    where = f"{rule.where.file}:{rule.where.line}" if rule.where else ""
    tier = f"{rule.tier} {rule.agent}" if rule.agent else rule.tier
    return where, tier, rule.key, rule.pattern, str(rule.effect), step.why


def _limit_row(limit: Limit) -> tuple[str, ...]:
    files = [f"{limit.max_files:,} files"] if limit.max_files is not None else []
    volume = [size(limit.max_bytes)] if limit.max_bytes is not None else []
    where = f"{limit.where.file}:{limit.where.line}" if limit.where else "built in"
    return f"{limit.key} ({where})", ", ".join(files + volume), limit.per, str(limit.over)


def _to_json(
    policy: Policy, agent: str, what: str, decision: Decision, needs: tuple[Need, ...]
) -> dict[str, Any]:
    return {
        "agent": agent,
        "what": what,
        "decision": decision.to_json(),
        "needs": [
            {"action": need.action, "path": need.path, "directory": need.directory, "effect": str(effect)}
            for need, effect in _verdicts(policy, agent, what, needs)
        ],
        "steps": [
            {
                "action": step.action,
                "agent": step.agent,
                "rule": step.rule.to_json(),
                "effect": str(step.rule.effect),
                "matched": step.matched,
                "decided": step.decided,
                "why": step.why,
            }
            for step in _steps(policy, agent, what, decision, needs)
        ],
        "limits": [limit.to_json() for limit in policy.limits(agent, what)],
    }
