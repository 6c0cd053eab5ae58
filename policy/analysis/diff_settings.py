"""Differences of two policies outside their rules: settings and limits, and whether one is looser."""

from __future__ import annotations

from collections.abc import Iterable

from ringfence.policy.analysis.command_settings import changed_commands
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.evaluation.limits import WITHIN
from ringfence.policy.model import Limit, Retention

_DURABLE = (False, "log", True)  # the strictest last


def changed_settings(old: Engine, new: Engine, names: Iterable[str]) -> tuple[list[str], bool]:
    """Return differences outside the rules, as text, and whether one of them is looser."""
    changes: list[str] = []
    looser = False
    for name in ("mode", "hard_links", "durable"):
        was, now = getattr(old, name), getattr(new, name)
        if was != now:
            changes.append(f"{name}: {was} -> {now}")
            looser |= now in ("monitor", "replace")
    looser |= _DURABLE.index(new.durable) < _DURABLE.index(old.durable)
    kept_for, keeps_for = old.retention, new.retention
    if kept_for != keeps_for:
        shorter = not _keeps_as_much(keeps_for, kept_for)
        changes.append(f"retention: {'shorter' if shorter else 'longer'}")
        looser |= shorter
    about_commands, loosened = changed_commands(old.commands, new.commands)
    changes += about_commands
    looser |= loosened
    for agent in names:
        for tool in sorted(set(old.tools) | set(new.tools)):
            were, are = old.limits(agent, tool), new.limits(agent, tool)
            dropped = [limit for limit in were if not any(_as_strict(each, limit) for each in are)]
            gained = [limit for limit in are if not any(_as_strict(each, limit) for each in were)]
            if dropped or gained:
                word = "looser" if dropped else "stricter"
                changes.append(f"limits of {tool} for agent {agent}: {word}")
                looser |= bool(dropped)
    return changes, looser


def _keeps_as_much(one: Retention, other: Retention) -> bool:
    """Whether one retention keeps everything that the other keeps."""

    def as_long(mine: int | None, theirs: int | None) -> bool:
        return mine is None or (theirs is not None and mine >= theirs)

    longer = as_long(one.days, other.days) and as_long(one.max_bytes, other.max_bytes)
    return longer and one.keep >= other.keep


def _as_strict(one: Limit, other: Limit) -> bool:
    """Whether one limit stops everything that the other stops, as strictly."""

    def within(mine: int | None, theirs: int | None) -> bool:
        return theirs is None or (mine is not None and mine <= theirs)

    return (
        one.key == other.key
        and other.per in WITHIN[one.per]
        and one.over >= other.over
        and within(one.max_files, other.max_files)
        and within(one.max_bytes, other.max_bytes)
    )
