"""Policy diff over every path: newly allowed, asked and denied paths, for whom, with an example.

Reads no files. Each example is the shortest path, confirmed by both engines.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ringfence.policy.analysis.agent_kinds import agents
from ringfence.policy.analysis.command_queries import differing
from ringfence.policy.analysis.diff_settings import changed_settings
from ringfence.policy.analysis.epochs import in_json, intervals
from ringfence.policy.analysis.pattern_queries import Budget, Undecided, Witness
from ringfence.policy.analysis.rule_alignment import common
from ringfence.policy.analysis.verdict_queries import (
    Ladder,
    QueryContext,
    Tier,
    VerdictQueries,
    confirm,
    context,
    pairs,
    together,
)
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.model import RUN, Detector, Effect, Mandatory, Rule, names_action
from ringfence.policy.patterns.syntax import Fold, Folding
from ringfence.policy.value_classes import dataclass, replace

# One question takes at most an eighth of the work that is left, or at least so much of it.
_SHARE, LEAST = 8, 20_000_000
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
    content: Detector | None = None  # it is so where this is found in the content, and not otherwise
    since: float | None = None  # it is so from then on; None: already now
    until: float | None = None  # and from then on no longer

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
            "content": str(self.content) if self.content else None,
            "since": in_json(self.since),
            "until": in_json(self.until),
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
    old: Engine,
    new: Engine,
    budget: Budget | None = None,
    *,
    fold: Fold = Folding.NONE,
    times: Sequence[float] | None = None,
) -> Comparison:
    """Return the differences of two policies.

    `fold`: differences between names that the workspace's file system ignores. `times`: one time in each
    interval that counts, ascending, in seconds since 1970; None: every interval between two ends of entries.
    """
    if times is None:
        times = sorted({*old.epochs(), *new.epochs()})
    policies = _PolicyDiff(budget or Budget(), fold)
    found: list[dict[Change, None]] = []
    names: list[str] = []
    for time in times:
        before, after = old.at(time), new.at(time)
        try:
            names = agents([before, after], budget=policies.budget)
            found.append(dict.fromkeys(policies.changes(before, after, names)))
        except Undecided as error:
            policies.undecided.append(str(error))
            if not found:
                return Comparison((), (), True, tuple(policies.undecided))
            times = times[: len(found)]
            break
    settings, looser = changed_settings(old, new, names)
    undecided = tuple(dict.fromkeys(policies.undecided))
    return Comparison(tuple(_in_time(found, times)), tuple(settings), looser, undecided)


def _in_time(found: Sequence[dict[Change, None]], times: Sequence[float]) -> Iterator[Change]:
    """Yield each change once for each run of intervals in which it is there."""
    for change in dict.fromkeys(change for each in found for change in each):
        for _, since, until in intervals(times, [change in each for each in found]):
            yield replace(change, since=since, until=until) if since or until else change


class _PolicyDiff:
    """One comparison; equal questions, at other times or for other agents, are asked once."""

    def __init__(self, budget: Budget, fold: Fold) -> None:
        self.budget = budget
        self.fold = fold
        self.undecided: list[str] = []
        self._known: dict[tuple[object, ...], tuple[Change, ...]] = {}

    def changes(self, old: Engine, new: Engine, names: Sequence[str]) -> list[Change]:
        """Return the changes between two policies at one time, for all that content can be."""
        found = self.between([old], [new], names)
        here = {(each.agent, each.tool, each.action, each.before, each.after, each.pattern) for each in found}
        for detector in dict.fromkeys((*old.detectors, *new.detectors)):
            were, are = ([each, each.where_content(detector)] for each in (old, new))
            found_names = agents([*were, *are], budget=self.budget)
            for each in self.between(were, are, found_names):
                key = each.agent, each.tool, each.action, each.before, each.after, each.pattern
                if key not in here:
                    found.append(replace(each, content=detector))
        return found

    def between(self, old: Sequence[Engine], new: Sequence[Engine], names: Sequence[str]) -> list[Change]:
        """Return the changes of the strictest verdict of some policies."""
        changes: list[Change] = []
        questions = VerdictQueries([*old, *new], budget=self.budget, fold=self.fold)
        seen: set[tuple[object, ...]] = set()
        for name, actions in itertools.product(names, _by_tool(pairs([*old, *new]))):
            alike: dict[tuple[object, ...], list[_Both]] = {}
            for tool, action in actions:
                both = _both(old, new, (name, tool, action), self.fold)
                if (action, *both.meaning) not in seen:
                    seen.add((action, *both.meaning))
                    alike.setdefault(both.meaning, []).append(both)
            for group in alike.values():
                try:
                    with _share(self.budget):
                        self.budget.spend(1)
                        changes += self._of_kinds(questions, group, len(actions))
                except Undecided as error:
                    where = group[0].after[0]
                    self.undecided.append(f"{name}, {where.tool} {where.action}: {error}")
                    if self.budget.over:
                        self.undecided.append(_AFTER)
                        return changes
        try:
            changes += _on_commands(old, new, names, self.budget)
        except Undecided as error:
            self.undecided.append(f"commands: {error}")
        return changes

    def _of_kinds(self, questions: VerdictQueries, group: Sequence[_Both], kinds: int) -> Iterator[Change]:
        """Yield the changes of contexts that are equal but for the kind of writing."""
        both = group[0]
        if _plain(both.before[0]) == _plain(both.after[0]):
            return
        known = self._known.get(both.meaning)
        made: list[Change] = []
        for each in _changes(questions, both.before, both.after, self.undecided) if known is None else known:
            made.append(each)
            first = both.after[0]
            named = [(where.after[0].tool, where.after[0].action) for where in group]
            if len(group) == kinds > 1:  # every kind: the action itself
                action = first.action.partition(".")[0]
                named = [(action if names_action(first.tool) else first.tool, action)]
            for tool, action in named:
                yield replace(each, agent=first.agent, tool=tool, action=action)
        self._known[both.meaning] = tuple(made)


class _Both(NamedTuple):
    """The contexts of one question in the old policies and in the new: their combination, then each."""

    before: Sequence[QueryContext]
    after: Sequence[QueryContext]

    @property
    def meaning(self) -> tuple[object, ...]:
        """Equal for the same question."""
        return self.before[0].meaning, self.after[0].meaning


def _by_tool(listed: Iterable[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    """Return pairs of tool and action in groups that differ in the kind of writing alone."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for tool, action in listed:
        base = action.partition(".")[0]
        groups.setdefault(("" if names_action(tool) else tool, base), []).append((tool, action))
    return list(groups.values())


def _both(old: Sequence[Engine], new: Sequence[Engine], asked: tuple[str, str, str], fold: Fold) -> _Both:
    were, are = ([context(each, *asked, fold) for each in side] for side in (old, new))
    before, after = together(were), together(are)
    if len(before.ladders) != len(after.ladders):  # in pairs, so that what is the same on both sides is seen
        before, after = (
            replace(whole, ladders=tuple(ladder for part in parts for ladder in part.ladders))
            for whole, parts in ((before, were), (after, are))
        )
    return _Both([before, *were], [after, *are])


def _on_commands(
    old: Sequence[Engine], new: Sequence[Engine], names: Iterable[str], budget: Budget
) -> Iterator[Change]:
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


def _changes(
    ask: VerdictQueries, were: Sequence[QueryContext], are: Sequence[QueryContext], undecided: list[str]
) -> Iterator[Change]:
    """Yield the changes for paths that some changed rule matches; no other path can change.

    A question that takes too much work is added to `undecided`, and the next one is asked.
    """
    before, after, budget = were[0], are[0], ask.automaton.budget
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
            ways = [wanted & region for wanted in ask.verdict(old, one)]
            for other in Effect:
                if one is other or not ways:
                    continue
                under = ask.floor_below(floor, Effect(max(one, other) - 1))
                both = (wanted & each & under for each in ask.verdict(new, other) for wanted in ways)
                try:
                    with _share(budget):
                        found = ask.find(both)
                except Undecided as error:
                    if budget.over:
                        raise
                    what = f'{after.tool} {after.action}, "{pattern}" from {one} to {other}'
                    undecided.append(f"{after.agent}, {what}: {error}")
                    continue
                if found is not None:
                    confirm(were, found, one)
                    rule = confirm(are, found, other)
                    yield Change(after.agent, after.tool, after.action, one, other, pattern, found, rule)


@contextmanager
def _share(budget: Budget) -> Iterator[None]:
    """Leave the greater part of the work to the questions after this one."""
    reserved = budget.reserved
    part = max((budget.work - reserved) // _SHARE, LEAST)
    budget.reserved = max(reserved, budget.work - part)
    try:
        yield
    finally:
        budget.reserved = reserved


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
        for j, end in [*common(one, other), (len(one), len(other))]:
            yield from (rule.pattern for rule in (*one[i:j], *other[k:end]))
            i, k = j + 1, end + 1
    was, now = _floor(before.floor), _floor(after.floor)
    for item in (*was, *now):
        if not (item in was and item in now):
            yield from item[1]


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


def differs(
    old: Sequence[Engine], new: Sequence[Engine], budget: Budget, *, fold: Fold = Folding.NONE
) -> bool:
    """Return whether the strictest verdicts of some policies differ from those of others, for anything.

    Times, trials and content are not compared. Undecided beyond the budget.
    """
    policies = _PolicyDiff(budget, fold)
    changes = policies.between(old, new, agents([*old, *new], budget=budget))
    if policies.undecided and not changes:
        raise Undecided(policies.undecided[0])
    return bool(changes)
