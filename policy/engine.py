"""Judges what a call needs against a policy: the floor, the agent's rules, everybody's rules, else ask.

Pure: no file system, no clock, no randomness; paths are text in canonical form. The strictest verdict over
everything a call needs, and over an agent and all its parents, is the call's.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from policy import limits as ceilings
from policy.glob import Name, parse_agent
from policy.machine import ROOT, Machine, Matcher, Span, State
from policy.model import (
    ACTIONS,
    TOOL_ACTIONS,
    Agent,
    Amount,
    Case,
    Content,
    Decision,
    Effect,
    Explanation,
    Invariant,
    Limit,
    LimitHit,
    Mandatory,
    Need,
    Rule,
    RuleMap,
    Tasks,
)

_MAX_QUERIES = 4_096
_NOWHERE: Span = (0, 0)
Verdict = tuple[Effect, "Rule | None"]
Ladder = tuple[Span, Span, Span]  # the places of a tier's rules by the tool, by the action, by `*`


class Query:
    """What one agent, tool and action look at: the floor, then a ladder of maps for it and each parent."""

    __slots__ = ("floor", "ladders", "number")

    def __init__(self, number: int, floor: dict[int, int], ladders: tuple[tuple[Ladder, ...], ...]) -> None:
        self.number = number
        self.floor = floor
        self.ladders = ladders


class Policy:
    """A policy in force. Made by `load` or `loads`, never changed afterwards."""

    def __init__(
        self,
        content: Content,
        *,
        revision: str,
        files: tuple[str, ...] = (),
        tools: Mapping[str, tuple[tuple[str, str], ...]] | None = None,
    ) -> None:
        self.content = content
        self.revision = revision
        self.files = files
        self.tools = MappingProxyType({**TOOL_ACTIONS, **(tools or {})})
        self._rules, self._maps, self._floor = _lay_out(content)
        self._names = {name: parse_agent(name) for name in content.agents}
        self._machines: dict[bool, Machine] = {}
        self._queries: dict[tuple[str, str, str], Query] = {}
        self._numbers = 0

    @classmethod
    def load(cls, path: str | Path, *, tools: Mapping[str, Any] | None = None) -> Policy:
        """Read a policy file and everything it extends; PolicyError holds all that is wrong."""
        from policy.loading import load

        return load(path, tools=tools)

    @classmethod
    def loads(
        cls,
        text: str | bytes,
        *,
        file: str = "<string>",
        base: str | Path | None = None,
        tools: Mapping[str, Any] | None = None,
    ) -> Policy:
        """Read a policy from text; relative `extends` are looked up from base."""
        from policy.loading import loads

        return loads(text, file=file, base=base, tools=tools)

    @classmethod
    def empty(cls) -> Policy:
        """No policy at all: everything asks."""
        return cls(Content(), revision=_EMPTY_REVISION)

    @property
    def mode(self) -> Literal["enforce", "monitor"]:
        return self.content.mode or "enforce"

    @property
    def hard_links(self) -> Literal["replace", "refuse"]:
        return self.content.hard_links or "replace"

    @property
    def durable(self) -> bool:
        return self.content.durable is not False

    @property
    def tasks(self) -> Tasks | None:
        return self.content.tasks

    @property
    def cases(self) -> tuple[Case, ...]:
        return self.content.cases

    @property
    def invariants(self) -> tuple[Invariant, ...]:
        return self.content.invariants

    def decide(self, agent: str, tool: str, needs: Iterable[Need], *, fold: bool = False) -> Decision:
        """Judge everything a call needs; the first of the strictest decides. Needing nothing is allowed."""
        worst: tuple[Effect, Rule | None, Need] | None = None
        for need in needs:
            effect, rule = self.verdict(agent, tool, need.action, need.path, need.directory, fold=fold)
            if need.incidental and effect is not Effect.DENY:
                continue
            if worst is None or effect > worst[0]:
                worst = effect, rule, need
                if effect is Effect.DENY:
                    break
        if worst is None:
            return Decision(Effect.ALLOW, None, agent, tool, "", ROOT, "the call needs nothing", "")
        effect, rule, need = worst
        return decision(effect, rule, agent, tool, need.action, need.path)

    def effect(
        self, agent: str, tool: str, action: str, path: str, directory: bool = False, *, fold: bool = False
    ) -> Effect:
        """Return the verdict alone, for filtering many paths."""
        return self.verdict(agent, tool, action, path, directory, fold=fold)[0]

    def verdict(
        self, agent: str, tool: str, action: str, path: str, directory: bool = False, *, fold: bool = False
    ) -> Verdict:
        """Return the verdict with its rule. ValueError if the path is not canonical."""
        query = self._queries.get((agent, tool, action))
        if query is None:
            query = self._query(agent, tool, action)
        machine = self._machines.get(fold)
        if machine is None:
            machine = self._machine(fold)
        state = machine.at(path)
        whole = directory or path == ROOT
        key = query.number * 2 + whole
        known = state.memo.get(key)
        if known is None:
            known = self._judge(machine, state, query, whole)
            machine.note(state, key, known)
        return known  # type: ignore[return-value]

    def explain(
        self, agent: str, tool_or_action: str, path: str, directory: bool = False, *, fold: bool = False
    ) -> Explanation:
        """Return the decision with every rule that was looked at, and why it did not decide."""
        from policy.explain import explain

        return explain(self, agent, tool_or_action, path, directory, fold=fold)

    def limits(self, agent: str, tool: str) -> tuple[Limit, ...]:
        """Return every limit that a call meets, those of the agent's parents included."""
        return tuple(dict.fromkeys(limit for _, limit in self._limits(agent, tool)))

    def tighten(
        self,
        decision: Decision,
        agent: str,
        tool: str,
        usage: Mapping[str, Amount],
        totals: Callable[[str, str], Amount],
    ) -> Decision:
        """Apply the limits to what a plan would change; only ever stricter."""
        worst: LimitHit | None = None
        for name, limit in self._limits(agent, tool):
            amount = ceilings.counted(limit.key, usage)
            if amount == Amount():
                continue  # what changes nothing passes no ceiling, even one that was passed before
            if limit.per == "session":
                amount += totals(name, limit.key)
            hit = ceilings.over(limit, amount)
            if hit and (worst is None or limit.over > worst.limit.over):
                worst = hit
        if worst is None or decision.effect is Effect.DENY or worst.limit.over < decision.effect:
            return decision
        if worst.limit.over == decision.effect:
            return replace(decision, limit=worst)
        return replace(
            decision,
            effect=worst.limit.over,
            reason=f"over the limit: {ceilings.describe(worst)}",
            hint=_LIMIT_HINTS[worst.limit.over],
            limit=worst,
        )

    def chain(self, agent: str) -> tuple[tuple[str, Agent | None], ...]:
        """Return an agent and its parents, nearest first, each with the entry that speaks for it."""
        parts = agent.split("/")
        entry: Agent | None = None
        found: list[tuple[str, Agent | None]] = []
        for depth in range(1, len(parts) + 1):
            name = "/".join(parts[:depth])
            entry = self._entry(name, parts[:depth]) or entry
            found.append((name, entry))
        return tuple(reversed(found))

    def floor(self, tool: str, action: str) -> tuple[Mandatory, ...]:
        """Return the mandatory items that speak of a tool or an action."""
        keys = {tool, action, "*"}
        return tuple(item for item in self.content.mandatory if keys & set(item.keys))

    def _entry(self, name: str, parts: list[str]) -> Agent | None:
        exact = self.content.agents.get(name)
        if exact is not None:
            return exact
        for key in reversed(self._names):
            if _names_agent(self._names[key], parts):
                return self.content.agents[key]
        return None

    def _limits(self, agent: str, tool: str) -> Iterable[tuple[str, Limit]]:
        keys = ceilings.keys_of(tool, self.tools)
        for name, entry in self.chain(agent):
            own = entry.limits if entry else {}
            for limit in ceilings.in_force(own, self.content.limits, keys):
                yield name, limit

    def _machine(self, fold: bool) -> Machine:
        patterns = [rule.pattern if isinstance(rule, Rule) else rule for rule in self._rules]
        return self._machines.setdefault(fold, Machine(patterns, fold))

    def _query(self, agent: str, tool: str, action: str) -> Query:
        machine = self._machines.get(False) or self._machine(False)
        tool_key = "" if tool in ACTIONS else tool
        entries = dict.fromkeys(entry.name if entry else None for _, entry in self.chain(agent))

        def tier(owner: str | None) -> Ladder:
            maps = (self._maps.get((owner, key)) for key in (tool_key, action, "*"))
            by_tool, by_action, by_any = (machine.span(each) if each else _NOWHERE for each in maps)
            return by_tool, by_action, by_any

        everybody = tier(None)
        ladders = tuple((tier(name), everybody) if name is not None else (everybody,) for name in entries)
        keys = {tool_key, action, "*"}
        floor = {
            place: index
            for index, (item, _) in self._floor.items()
            if keys & set(item.keys)
            for place in range(*machine.spans[index])
        }
        if len(self._queries) >= _MAX_QUERIES:
            self._queries.clear()
        self._numbers += 1
        query = Query(self._numbers, floor, ladders)
        self._queries[agent, tool, action] = query
        return query

    def _judge(self, machine: Machine, state: State, query: Query, whole: bool) -> Verdict:
        matched = machine.matched(state, whole)
        effect, rule = self._judge_floor(machine, matched, query.floor)
        best: Verdict | None = None
        for ladder in query.ladders:
            found: Verdict = (Effect.ASK, None)
            for tier in ladder:
                chosen = self._decides(matched, tier)
                if chosen is not None:
                    found = chosen.effect, chosen
                    break
            if best is None or found[0] > best[0]:
                best = found
        assert best is not None
        return (effect, rule) if rule is not None and effect >= best[0] else best

    def _judge_floor(self, machine: Machine, matched: list[int], floor: dict[int, int]) -> Verdict:
        """Return the strictest mandatory rule that matched, the first one written of equals."""
        effect, rule = Effect.ALLOW, None
        for place in reversed(matched if floor else ()):
            index = floor.get(place)
            if index is None:
                continue
            item, excepts = self._floor[index]
            if item.effect > effect and not (excepts and _last(matched, machine.span(excepts)) is not None):
                effect, rule = item.effect, self._rule(index)
        return effect, rule

    def _decides(self, matched: list[int], tier: Ladder) -> Rule | None:
        """Return the rule that decides in a tier: the tool's, the action's, else that of `*`."""
        by_tool, by_action, by_any = (_last(matched, span) for span in tier)
        if by_tool is None:
            hit = by_any if by_action is None else by_action
            return None if hit is None else self._at(hit)
        rule = self._at(by_tool)
        if by_action is not None and rule.effect is not Effect.DENY:
            other = self._at(by_action)
            # A tool's key can loosen an ask; a deny of the action itself stands.
            return other if other.effect is Effect.DENY else rule
        return rule

    def _at(self, place: int) -> Rule:
        """Return the rule that a place belongs to."""
        spans = self._machines[False].spans
        return self._rule(bisect.bisect_right(spans, place, key=_start) - 1)

    def _rule(self, index: int) -> Rule:
        rule = self._rules[index]
        assert isinstance(rule, Rule)
        return rule


def _start(span: Span) -> int:
    return span[0]


def _last(matched: list[int], span: Span) -> int | None:
    """Return the last place within a span, out of places from the last to the first."""
    low, high = span
    return next((place for place in matched if low <= place < high), None) if high else None


_LIMIT_HINTS = {
    Effect.ASK: "a person has to grant this; or change less",
    Effect.DENY: "change less",
    Effect.ALLOW: "",
}
_EMPTY_REVISION = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # sha256 of nothing

Laid = tuple[list["Rule | str"], dict[tuple[str | None, str], range], dict[int, tuple[Mandatory, range]]]


def _lay_out(content: Content) -> Laid:
    """Put all patterns in one row, so that in each map a later rule has a higher number."""
    row: list[Rule | str] = []
    maps: dict[tuple[str | None, str], range] = {}
    floor: dict[int, tuple[Mandatory, range]] = {}

    def add(owner: str | None, rules: RuleMap) -> None:
        for key, listed in rules.items():
            maps[owner, key] = range(len(row), len(row) + len(listed))
            row.extend(listed)

    add(None, content.rules)
    for agent in content.agents.values():
        add(agent.name, agent.rules)
    for item in content.mandatory:
        excepts = range(len(row), len(row) + len(item.excepts))
        row.extend(item.excepts)
        for rule in item.rules:
            floor[len(row)] = item, excepts
            row.append(rule)
    return row, maps, floor


def _names_agent(names: tuple[Name, ...], parts: list[str]) -> bool:
    if len(names) != len(parts):
        return False
    return all(part and Matcher(name).fits(part) for name, part in zip(names, parts, strict=True))


def decision(effect: Effect, rule: Rule | None, agent: str, tool: str, action: str, path: str) -> Decision:
    """Return a verdict as a decision, with its reason and what to try next."""
    if rule is None:
        reason = "no rule decides, so a person is asked"
    else:
        reason = rule.reason or str(rule)
    if effect is Effect.ALLOW:
        hint = ""
    elif effect is Effect.ASK:
        hint = "a person has to grant this; send the same call again once it is granted"
    elif rule is not None and rule.tier == "mandatory":
        hint = "nobody can loosen this short of changing the policy; do without it"
    else:
        hint = "do without it, or ask whoever owns the policy"
    return Decision(effect, rule, agent, tool, action, path, reason, hint)
