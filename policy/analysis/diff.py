"""Policy diff over every path: newly allowed, asked and denied paths, for whom, with an example.

Reads no files. Each example is the shortest path, confirmed by both engines.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ringfence.policy.analysis.command_queries import differing
from ringfence.policy.analysis.command_settings import changed_commands
from ringfence.policy.analysis.pattern_queries import Budget, Undecided, Witness
from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.verdict_queries import (
    Ladder,
    QueryContext,
    Tier,
    VerdictQueries,
    confirm,
    context,
    pairs,
)
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.evaluation.limits import WITHIN
from ringfence.policy.model import RUN, Effect, Limit, Mandatory, Retention, Rule
from ringfence.policy.patterns.syntax import Fold, Folding

_AFTER = "every agent, tool and action after these"  # that the bound was reached at


@dataclass(frozen=True, slots=True)
class Change:
    """The paths of one pattern whose verdict changed, with the shortest of them."""

    agent: str
    tool: str
    action: str
    before: Effect
    after: Effect
    pattern: str
    example: Witness
    rule: Rule | None  # what decides now

    @property
    def widens(self) -> bool:
        """Whether the new verdict is looser."""
        return self.after < self.before

    def to_json(self) -> dict[str, Any]:
        """Return the change as JSON values; `rule` is None where no rule decides now."""
        return {
            "agent": self.agent,
            "tool": self.tool,
            "action": self.action,
            "before": str(self.before),
            "after": str(self.after),
            "widens": self.widens,
            "pattern": self.pattern,
            "example": self.example.path,
            "directory": self.example.directory,
            "rule": self.rule.to_json() if self.rule else None,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences of two policies; `undecided` names the questions that exceeded the bound."""

    changes: tuple[Change, ...]
    settings: tuple[str, ...]
    looser: bool  # a setting or a limit lets through what it did not
    undecided: tuple[str, ...] = ()

    @property
    def widens(self) -> bool:
        """Whether any verdict, setting or limit became looser."""
        return self.looser or any(change.widens for change in self.changes)


def compare(
    old: Engine, new: Engine, budget: Budget | None = None, *, fold: Fold = Folding.NONE
) -> Comparison:
    """Return the differences of two policies.

    `fold`: differences between names that the workspace's file system ignores.
    """
    budget = budget or Budget()
    changes: list[Change] = []
    undecided: list[str] = []
    try:
        questions = VerdictQueries([old, new], budget=budget, fold=fold)
        names = agents([old, new], budget=budget)
    except Undecided as error:
        return Comparison((), (), True, (str(error),))
    seen: set[tuple[object, ...]] = set()
    for name, (tool, action) in itertools.product(names, pairs([old, new])):
        before, after = (context(each, name, tool, action, fold) for each in (old, new))
        both = (action, before.meaning, after.meaning)
        try:
            budget.spend(1)
            if both in seen or _plain(before) == _plain(after):
                continue
            seen.add(both)
            changes += _changes(questions, before, after)
        except Undecided as error:
            undecided.append(f"{name}, {tool} {action}: {error}")
            if budget.over:
                undecided.append(_AFTER)
                break
    if _AFTER not in undecided:
        try:
            changes += _on_commands(old, new, names, budget)
        except Undecided as error:
            undecided.append(f"commands: {error}")
    settings, looser = _settings(old, new, names)
    return Comparison(tuple(changes), tuple(settings), looser, tuple(undecided))


def _on_commands(old: Engine, new: Engine, names: Iterable[str], budget: Budget) -> Iterator[Change]:
    """Yield the commands whose verdict changed, as changes of `run`."""
    for each in differing(old, new, names, budget):
        before, after, example = each.before, each.after, Witness(each.after.line, False)
        yield Change(after.agent, RUN, RUN, before.effect, after.effect, each.pattern, example, after.rule)


def _plain(where: QueryContext) -> object:
    """Return a context's meaning, without the places of its rules."""
    ladders = tuple(
        tuple(tuple(tuple((r.pattern, r.effect) for r in rules) for rules in tier) for tier in ladder)
        for ladder in where.ladders
    )
    return ladders, tuple(sorted(_floor(where.floor)))


def _floor(floor: Iterable[Mandatory]) -> list[tuple[Effect, tuple[str, ...], tuple[str, ...]]]:
    return [(item.effect, tuple(rule.pattern for rule in item.rules), item.excepts) for item in floor]


def _changes(ask: VerdictQueries, before: QueryContext, after: QueryContext) -> Iterator[Change]:
    """Yield the changes for paths that some changed rule matches; no other path can change."""
    for pattern in dict.fromkeys(_changed(before, after)):
        near = _near(ask, pattern, (before, after))
        old, new = _restricted(before, near), _restricted(after, near)
        # A floor that stays and only denies hides differences and makes none of its own; one that asks
        # turns an allow into an ask, so it has to be part of the question.
        same = _floor(before.floor) == _floor(after.floor) and all(
            item.effect is Effect.DENY for item in old.floor
        )
        floor = old.floor if same else ()
        if same:
            old, new = replace(old, floor=()), replace(new, floor=())
        region = ask.inside(pattern)
        for one in Effect:
            ways = [way & region for way in ask.verdict(old, one)]
            for other in Effect:
                if one is other or not ways:
                    continue
                under = ask.floor_below(floor, Effect(max(one, other) - 1))
                both = (way & each & under for each in ask.verdict(new, other) for way in ways)
                found = ask.find(both)
                if found is not None:
                    confirm(before, found, one)
                    rule = confirm(after, found, other)
                    yield Change(after.agent, after.tool, after.action, one, other, pattern, found, rule)


def _maps(where: QueryContext) -> list[tuple[Rule, ...]]:
    return [rules for ladder in where.ladders for tier in ladder for rules in tier]


def _changed(before: QueryContext, after: QueryContext) -> Iterator[str]:
    """Return the patterns of rules that were added, removed, moved or given another effect."""
    old, new = _maps(before), _maps(after)
    aligned = [len(ladder) for ladder in before.ladders] == [len(ladder) for ladder in after.ladders]
    if not aligned:
        yield from (rule.pattern for rules in (*old, *new) for rule in rules)
    for one, other in zip(old, new, strict=False) if aligned else ():
        i = k = 0
        for j, end in [*_common(one, other), (len(one), len(other))]:
            yield from (rule.pattern for rule in (*one[i:j], *other[k:end]))
            i, k = j + 1, end + 1
    was, now = _floor(before.floor), _floor(after.floor)
    for item in (*was, *now):
        if not (item in was and item in now):
            yield from item[1]


def _common(one: Sequence[Rule], other: Sequence[Rule]) -> list[tuple[int, int]]:
    """Return the indexes, in both lists, of the longest run of rules in the same order.

    Only rules that occur once in each list count. A longest increasing subsequence takes n log n steps, a
    diff can take n * n.
    """
    first, second = _once(one), _once(other)
    pairs = [(n, second[what]) for what, n in first.items() if what in second]
    ends: list[int] = []  # for each length the least end, in the second list, of a run that long
    rows: list[tuple[int, int, Any]] = []
    for n, m in pairs:
        at = bisect.bisect_left(ends, m)
        row = (n, m, rows[at - 1] if at else None)
        ends[at : at + 1], rows[at : at + 1] = [m], [row]
    found: list[tuple[int, int]] = []
    last = rows[-1] if rows else None
    while last is not None:
        found.append((last[0], last[1]))
        last = last[2]
    return found[::-1]


def _once(rules: Sequence[Rule]) -> dict[tuple[str, Effect], int]:
    """Return the index of each pattern and effect that occurs once, in order."""
    texts = [(rule.pattern, rule.effect) for rule in rules]
    often = Counter(texts)
    return {text: n for n, text in enumerate(texts) if often[text] == 1}


def _near(ask: VerdictQueries, pattern: str, wheres: Iterable[QueryContext]) -> frozenset[str]:
    """Return the patterns that share a path with this one; no other pattern can matter."""
    number = ask.number[pattern]
    texts = {rule.pattern for where in wheres for rules in _maps(where) for rule in rules}
    texts |= {rule.pattern for where in wheres for item in where.floor for rule in item.rules}
    return frozenset(
        text for text in texts if text == pattern or ask.automaton.meet(number, ask.number[text])
    )


def _restricted(where: QueryContext, near: frozenset[str]) -> QueryContext:
    def tier(maps: Tier) -> Tier:
        kept = (tuple(rule for rule in rules if rule.pattern in near) for rules in maps)
        by_tool, by_kind, by_action, by_any = kept
        return by_tool, by_kind, by_action, by_any

    ladders: tuple[Ladder, ...] = tuple(tuple(tier(maps) for maps in ladder) for ladder in where.ladders)
    kept = (
        replace(item, rules=tuple(rule for rule in item.rules if rule.pattern in near))
        for item in where.floor
    )
    return replace(where, ladders=ladders, floor=tuple(item for item in kept if item.rules))


def _settings(old: Engine, new: Engine, names: Iterable[str]) -> tuple[list[str], bool]:
    """Return differences outside the rules, as text, and whether one of them is looser."""
    said: list[str] = []
    looser = False
    for name in ("mode", "hard_links", "durable"):
        was, now = getattr(old, name), getattr(new, name)
        if was != now:
            said.append(f"{name}: {was} -> {now}")
            looser |= now in ("monitor", "replace", False)
    kept_for, keeps_for = old.retention, new.retention
    if kept_for != keeps_for:
        shorter = not _keeps_as_much(keeps_for, kept_for)
        said.append(f"retention: {'shorter' if shorter else 'longer'}")
        looser |= shorter
    about_commands, loosened = changed_commands(old.commands, new.commands)
    said += about_commands
    looser |= loosened
    for agent in names:
        for tool in sorted(set(old.tools) | set(new.tools)):
            were, are = old.limits(agent, tool), new.limits(agent, tool)
            dropped = [limit for limit in were if not any(_as_strict(each, limit) for each in are)]
            gained = [limit for limit in are if not any(_as_strict(each, limit) for each in were)]
            if dropped or gained:
                word = "looser" if dropped else "stricter"
                said.append(f"limits of {tool} for agent {agent}: {word}")
                looser |= bool(dropped)
    return said, looser


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
