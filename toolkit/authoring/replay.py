"""Replay of recorded decisions under another policy: how many verdicts would differ, and which.

Reads records one by one and stores counts only, so a log of any length needs little memory. A record is
judged as at its own time. Limits are not applied again, nor is a path judged that the record does not name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final

from ringfence.policy import ACTIONS, Decision, Effect, Need, Policy
from ringfence.policy.model import EFFECTS, KINDS, RUN, RUN_TOOL
from ringfence.policy.upstreams.rows import CALL, split_key
from ringfence.toolkit.tools import TOOLS

_MOST_GROUPS: Final = 5_000
_OTHERS: Final = "(others)"


@dataclass(frozen=True, slots=True)
class Group:
    """A kind of change: agent, tool, the pattern that decides now, and the verdict before and after."""

    agent: str
    tool: str
    pattern: str
    before: Effect
    after: Effect

    @property
    def widens(self) -> bool:
        """Whether the new verdict permits more than the recorded one."""
        return self.after < self.before


@dataclass(slots=True)
class Replayed:
    """Result of a replay. `groups` has the count and the first path of each kind of change.

    `would`: how many calls would get another verdict with the policy's rules on trial, by that verdict.
    """

    records: int = 0
    same: int = 0
    changed: int = 0
    widened: int = 0
    limited: int = 0  # a limit gave the verdict, so the rules cannot be compared
    unjudged: int = 0  # refused before the policy judged it, or by a built-in protection
    unreadable: int = 0
    groups: dict[Group, tuple[int, str]] = field(default_factory=dict)
    would: dict[str, int] = field(default_factory=lambda: {str(effect): 0 for effect in Effect})

    def to_json(self) -> dict[str, Any]:
        """Return the counts by name, and the groups in the order of `ranked`."""
        numbers = ("records", "same", "changed", "widened", "limited", "unjudged", "unreadable")
        groups = [
            {
                "agent": group.agent,
                "tool": group.tool,
                "pattern": group.pattern or None,
                "before": str(group.before),
                "after": str(group.after),
                "widens": group.widens,
                "calls": count,
                "example": path,
            }
            for group, (count, path) in self.ranked()
        ]
        return {**{name: getattr(self, name) for name in numbers}, "would": self.would, "groups": groups}

    def ranked(self) -> list[tuple[Group, tuple[int, str]]]:
        """Return the groups: those that permit more first, then by frequency."""
        return sorted(self.groups.items(), key=lambda each: (not each[0].widens, -each[1][0]))


Changed = Callable[[dict[str, Any], Effect, Decision], None]


def records_of(lines: Iterable[str | bytes]) -> Iterator[dict[str, Any] | None]:
    """Yield the records of a file of JSON lines; None for an invalid line, such as an incomplete last one."""
    for line in lines:
        if not line.strip():
            continue
        try:
            record = json.loads(line if isinstance(line, str) else line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            record = None
        yield record if isinstance(record, dict) else None


def replay(
    records: Iterable[dict[str, Any] | None],
    policy: Policy,
    on_change: Changed | None = None,
    *,
    at: float | None = None,
) -> Iterator[Replayed]:
    """Judge each record again; yield the same result object, updated, after every record.

    `at`, in POSIX seconds, replaces the time of each record: entries of the policy that have ended by then
    are absent.
    """
    out = Replayed()
    judge = lru_cache(maxsize=20_000)(_judge)
    for record in records:
        if record is not None and record.get("event", "call") != "call":
            continue  # an approval, or the recovery of an open call
        out.records += 1
        _one(out, record, policy.at(_time(record) if at is None else at), judge, on_change)
        yield out


def _time(record: dict[str, Any] | None) -> float:
    found = record.get("time") if record else None
    return float(found) if isinstance(found, int | float) else 0.0


def _one(
    out: Replayed,
    record: dict[str, Any] | None,
    policy: Policy,
    judge: Callable[..., Decision | None],
    on_change: Changed | None,
) -> None:
    recorded = record.get("decision") if record else None
    if record is None or not isinstance(recorded, dict | None):
        out.unreadable += 1
        return
    before = EFFECTS.get(str((recorded or {}).get("effect")))
    built_in = before is Effect.DENY and not (recorded or {}).get("rule")
    if recorded is None or before is None or (built_in and not recorded.get("limit")):
        out.unjudged += 1
        return
    if recorded.get("limit"):
        out.limited += 1
        return
    named = record.get("paths")
    paths = tuple(path for path in named if isinstance(path, str)) if isinstance(named, list) else ()
    needs = _Recorded(
        str(record.get("tool")),
        paths,
        _kind(record),
        str(recorded.get("action")),
        str(recorded.get("path")),
        _kind(recorded),
    )
    found = judge(policy, str(record.get("agent")), needs)
    if found is None:
        out.unjudged += 1
        return
    if policy.has_trials:
        tried = judge(policy.with_trials(), str(record.get("agent")), needs)
        if tried is not None and tried.effect is not found.effect:
            out.would[str(tried.effect)] += 1
    if found.effect is before:
        out.same += 1
    else:
        _count(out, before, found)
        if on_change:
            on_change(record, before, found)


def _count(out: Replayed, before: Effect, found: Decision) -> None:
    group = Group(found.agent, found.tool, found.rule.pattern if found.rule else "", before, found.effect)
    if group not in out.groups and len(out.groups) >= _MOST_GROUPS:
        group = Group(_OTHERS, _OTHERS, "", before, found.effect)
    count, path = out.groups.get(group, (0, found.path))
    out.groups[group] = count + 1, path
    out.changed += 1
    out.widened += group.widens


@dataclass(frozen=True, slots=True)
class _Recorded:
    """What a record has of a call's needs: its paths, the kind of the write to one of them, and the action,
    path and kind of the decision.
    """

    tool: str
    paths: tuple[str, ...]
    kind: str
    action: str
    path: str
    decided_kind: str


def _kind(fields: dict[str, Any]) -> str:
    """Return the kind of a write in a record or its decision; "" in records of older versions."""
    found = fields.get("kind")
    return found if found in KINDS else ""


def _judge(policy: Policy, agent: str, recorded: _Recorded) -> Decision | None:
    """Return the verdict on a recorded call; None if its paths are invalid."""
    try:
        return policy.decide(agent, recorded.tool, dict.fromkeys(_needs(policy, recorded)))
    except ValueError:
        return None


def _needs(policy: Policy, recorded: _Recorded) -> Iterator[Need]:
    """Yield what the call needed, as far as its record has it: its path arguments, and the path of the
    decision.
    """
    tool, paths = recorded.tool, recorded.paths
    decided = Need(recorded.action, recorded.path, kind=recorded.decided_kind)
    directory = tool in TOOLS and TOOLS[tool].on_directories
    if tool == RUN_TOOL or split_key(tool):  # what was done to each of its paths is not in the record
        if decided.action in (*ACTIONS, RUN, CALL):
            yield decided
        if split_key(tool) and decided.action in ACTIONS:  # nor is whether the path is a directory
            yield replace(decided, directory=True)
        return
    needs = policy.tools.get(tool, ())
    parameters = list(dict.fromkeys(parameter for _, parameter in needs))
    for action, parameter in needs:
        if len(parameters) == 1:
            chosen = paths
        else:  # in the order of the parameters; a link's real path is judged only where it decided
            at = parameters.index(parameter)
            chosen = paths[at : at + 1]
        kind = recorded.kind if action == "write" else ""
        yield from (Need(action, path, directory, kind=kind) for path in chosen)
    if decided.action in ACTIONS:
        yield replace(decided, directory=directory and decided.path in paths)
