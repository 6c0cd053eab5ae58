"""Differences between two sections on commands, and whether one of them is looser."""

from __future__ import annotations

from ringfence.policy.model import COMMAND_LEVELS, CommandLimits, Commands


def changed_commands(old: Commands, new: Commands) -> tuple[list[str], bool]:
    """Return the differences as text, and whether one of them is looser.

    A directory that is written at once is looser, and so is a longer limit; what is dropped is neither.
    """
    changes: list[str] = []
    looser = False
    if old.require != new.require:
        changes.append(f"commands require: {old.require} -> {new.require}")
        looser |= COMMAND_LEVELS.index(new.require) > COMMAND_LEVELS.index(old.require)
    if old.network != new.network:
        changes.append(f"commands network: {_switch(old.network)} -> {_switch(new.network)}")
        looser |= new.network
    for lane in ("discard", "through"):
        were, are = set(getattr(old, lane)), set(getattr(new, lane))
        changes += [f"commands {lane}: no longer {pattern}" for pattern in sorted(were - are)]
        changes += [f"commands {lane}: now also {pattern}" for pattern in sorted(are - were)]
        looser |= lane == "through" and bool(are - were)
    for name in CommandLimits.__match_args__:
        was, now = getattr(old.limits, name), getattr(new.limits, name)
        if was != now:
            changes.append(f"commands limits {name}: {was:,} -> {now:,}")
            looser |= now > was
    return changes, looser


def _switch(value: bool) -> str:
    return "on" if value else "off"
