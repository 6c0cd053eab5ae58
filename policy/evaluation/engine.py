"""Policy engine: judges a call's needs by mandatory rules, the agent's rules, everybody's rules, else ask.

Pure: no file system, no clock, no randomness; paths are text in canonical form. The strictest verdict over
all needs of a call, and over an agent and all its parents, is the call's verdict.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import count
from types import MappingProxyType
from typing import Literal, Self

from ringfence.policy.evaluation import limits as limit_checks
from ringfence.policy.evaluation import projection
from ringfence.policy.evaluation.agent_patterns import applies, fits
from ringfence.policy.evaluation.decisions import decision, over_limit
from ringfence.policy.evaluation.rule_table import Keys, Query, RuleTable, Verdict
from ringfence.policy.model import (
    ACTIONS,
    GRAVITY,
    LANGUAGE_TOOLS,
    POLICY_TOOLS,
    RUN,
    WRITE_KINDS,
    Agent,
    Amount,
    Case,
    Commands,
    Content,
    Counting,
    Decision,
    Detector,
    Effect,
    Invariant,
    Limit,
    LimitHit,
    Mandatory,
    Need,
    Period,
    Retention,
    Rule,
    Tasks,
    asked_actions,
    counted_actions,
    names_action,
)
from ringfence.policy.patterns.matcher import ROOT, Matcher, Matches
from ringfence.policy.patterns.syntax import Fold, parse_agent
from ringfence.policy.upstreams.rows import CALL, needs_by_key

_MAX_QUERIES = 4_096


class Engine:
    """Judges by the content of one policy, and never changes afterwards.

    `whole` is the content as loaded; `content` is what verdicts come from: the entries that count whatever is
    on trial and whatever content has in it. Of entries that end, all count until `at` leaves some out.
    """

    def __init__(
        self,
        content: Content,
        *,
        revision: str,
        files: tuple[str, ...] = (),
        tools: Mapping[str, tuple[tuple[str, str], ...]] | None = None,
    ) -> None:
        special = tuple(projection.special_entries(content))
        self.special = bool(special)
        self.ends = tuple(sorted({entry.until for entry in special if entry.until is not None}))
        self.detectors: tuple[Detector, ...] = tuple(
            sorted({each for entry in special if not entry.trial for each in entry.content})
        )
        self.has_trials = any(entry.trial for entry in special)
        self.whole = content
        self.content = content = projection.plain(content) if special else content
        self.has_kinds = any(key in WRITE_KINDS for key in _keys(content))
        self._projections: dict[object, Self] = {}
        self.revision = revision
        self.files = files
        upstream = dict(needs_by_key(content.upstreams)) if content.upstreams else {}
        self.tools = MappingProxyType({**LANGUAGE_TOOLS, **upstream, **(tools or {})})
        self._table = RuleTable(content)
        self._names = {name: parse_agent(name) for name in content.agents}
        self._machines: dict[Fold, Matcher] = {}
        self._queries: dict[tuple[str, str, str], Query] = {}
        self._limits: dict[tuple[str, str], tuple[limit_checks.Counted, ...]] = {}
        self._counting: dict[tuple[str, str], Counting] = {}
        self._numbers = count(1)

    @property
    def mode(self) -> Literal["enforce", "monitor"]:
        """The policy's `mode`; `enforce` if the policy sets none."""
        return self.content.mode or "enforce"

    @property
    def hard_links(self) -> Literal["replace", "refuse"]:
        """What happens to a file with several hard links; `replace` if the policy does not set it."""
        return self.content.hard_links or "replace"

    @property
    def retention(self) -> Retention:
        """How long the contents of past changes are kept."""
        return self.content.retention

    @property
    def durable(self) -> bool | Literal["log"]:
        """Whether a change survives a power cut once its call has returned; the default is true.

        "log": once recovery has made it again, from its intent, which is on the disk before.
        """
        return True if self.content.durable is None else self.content.durable

    @property
    def tasks(self) -> Tasks | None:
        """The policy's section `tasks`, or None without one."""
        return self.content.tasks

    @property
    def commands(self) -> Commands:
        """How commands run: the policy's section `commands`, with the defaults of what it does not state."""
        return self.content.commands or Commands()

    @property
    def cases(self) -> tuple[Case, ...]:
        """The policy's own test cases, in the order of its files."""
        return self.content.cases

    @property
    def invariants(self) -> tuple[Invariant, ...]:
        """The policy's invariants, in the order of its files."""
        return self.content.invariants

    def at(self, time: float) -> Self:
        """Return the policy at a time, in seconds since 1970: without the entries that have ended."""
        ended = bisect_right(self.ends, time)
        if not ended:
            return self
        return self._projected(ended, lambda: projection.at(self.whole, time))

    def epochs(self) -> tuple[float, ...]:
        """Return one time from each interval in which the same entries count, in order."""
        return (0.0, *self.ends)

    def with_trials(self) -> Self:
        """Return the policy with the entries on trial taken as real."""
        if not self.has_trials:
            return self
        return self._projected("trials", lambda: projection.with_trials(self.whole))

    def where_content(self, detector: Detector) -> Self:
        """Return the policy for content in which a detector finds something.

        Its verdict counts only together with this policy's own: the stricter of the two holds.
        """
        if detector not in self.detectors:
            return self
        return self._projected(detector, lambda: projection.where_content(self.whole, detector))

    def _projected(self, key: object, make: Callable[[], Content]) -> Self:
        found = self._projections.get(key)
        if found is None:
            found = type(self)(make(), revision=self.revision, files=self.files, tools=self.tools)
            found = self._projections.setdefault(key, found)  # the same one for every thread
        return found

    def decide(self, agent: str, tool: str, needs: Iterable[Need], *, fold: Fold = False) -> Decision:
        """Judge all needs of a call: the strictest verdict decides.

        Of equally strict verdicts the need that changes most is named. A call without needs is allowed.
        ValueError if a path is not canonical.
        """
        worst: tuple[Effect, Rule | None, Need] | None = None
        for need in needs:
            action = need.name if self.has_kinds else need.action
            effect, rule = self.verdict(agent, tool, action, need.path, need.directory, fold=fold)
            if need.incidental and effect is not Effect.DENY:
                continue
            if worst is None or (effect, GRAVITY[need.action]) > (worst[0], GRAVITY[worst[2].action]):
                worst = effect, rule, need
                if effect is Effect.DENY and GRAVITY[need.action] >= GRAVITY[ACTIONS[-1]]:
                    break
        if worst is None:
            return Decision(Effect.ALLOW, None, agent, tool, "", ROOT, "the call needs nothing", "")
        effect, rule, need = worst
        return decision(effect, rule, agent, tool, need.action, need.path, need.kind)

    def effect(  # noqa: PLR0913  a query and its path, without an object per verdict
        self, agent: str, tool: str, action: str, path: str, directory: bool = False, *, fold: Fold = False
    ) -> Effect:
        """Return the verdict alone, to filter many paths. ValueError if the path is not canonical."""
        return self.verdict(agent, tool, action, path, directory, fold=fold)[0]

    def verdict(  # noqa: PLR0913  a query and its path, without an object per verdict
        self, agent: str, tool: str, action: str, path: str, directory: bool = False, *, fold: Fold = False
    ) -> Verdict:
        """Return the verdict with its rule. ValueError if the path is not canonical.

        `action` may be a kind of writing (`write.create`); for `write` alone the strictest of the tool's
        kinds counts. For `run` the path is the text of a command line: the strictest verdict over all
        its commands.
        """
        if action == RUN:
            from ringfence.policy.evaluation.run_rules import RunRules  # needed for commands alone

            return RunRules(self.content).judge(agent, [entry for _, entry in self.chain(agent)], path)
        query = self._queries.get((agent, tool, action))
        if query is None:
            query = self._query(agent, tool, action)
        machine = self._machines.get(fold)
        if machine is None:
            machine = self._machine(fold)
        found = machine.at(path).directory if directory or path == ROOT else machine.file(path)
        first = found.first
        if first[0] == query.number:
            return first[1]  # type: ignore[return-value]
        known = found.memo.get(query.number)
        return self._judged(machine, found, query) if known is None else known  # type: ignore[return-value]

    def names(self, tool: str, action: str) -> tuple[str, ...]:
        """Return the action, or each kind of writing that the tool's calls can be if the policy tells them
        apart.
        """
        return asked_actions(tool, action, kinds=self.has_kinds)

    def denies(self, agent: str, tool: str, action: str, path: str, *, fold: Fold = False) -> bool:
        """Return whether a path is denied by its name alone: as a file, as a directory, and for every kind of
        writing that the tool's calls can be. ValueError as in `verdict`.
        """
        # Plain loops: most calls end with the first verdict, and a generator costs as much as that.
        for name in self.names(tool, action):
            for directory in (False, True):
                if self.verdict(agent, tool, name, path, directory, fold=fold)[0] is not Effect.DENY:
                    return False
        return True

    def within(
        self, agent: str, tool: str, action: str, path: str, *, fold: Fold = False
    ) -> Callable[[str, bool], Effect]:
        """Return a function that judges names directly in the directory `path`.

        The function takes a name and whether the name is a directory. The directory's own part of the verdict
        is computed once for all names. ValueError as in `verdict`.
        """
        query = self._queries.get((agent, tool, action)) or self._query(agent, tool, action)
        machine = self._machines.get(fold) or self._machine(fold)
        inside, step, leaf, number = machine.inside(path), machine.step, machine.leaf, query.number

        def judge(name: str, directory: bool) -> Effect:
            """Return the verdict on one name directly in the directory."""
            found = step(inside, name).directory if directory else leaf(inside, name)
            first = found.first
            known = first[1] if first[0] == number else found.memo.get(number)
            return (self._judged(machine, found, query) if known is None else known)[0]  # type: ignore[index,no-any-return]

        return judge

    def allows_files(  # noqa: PLR0913  as `within`, for many names
        self, agent: str, tool: str, action: str, path: str, names: Collection[str], *, fold: Fold = False
    ) -> bool:
        """Return whether the verdict on every file with one of these names directly in the directory `path`
        is allow. ValueError as in `verdict`.
        """
        query = self._queries.get((agent, tool, action)) or self._query(agent, tool, action)
        machine = self._machines.get(fold) or self._machine(fold)
        allow = Effect.ALLOW  # to look it up takes as long as the rest of a name
        for found in machine.leaves(machine.inside(path), names):
            first = found.first
            known = first[1] if first[0] == query.number else found.memo.get(query.number)
            verdict = self._judged(machine, found, query) if known is None else known
            if verdict[0] is not allow:  # type: ignore[index]
                return False
        return True

    def opens_below(self, agent: str, tool: str, action: str, path: str, *, fold: Fold = False) -> bool:
        """Return whether any path below the directory `path` may have another verdict than deny.

        False is certain; true is not. ValueError as in `verdict`.
        """
        query = self._queries.get((agent, tool, action)) or self._query(agent, tool, action)
        machine = self._machines.get(fold) or self._machine(fold)
        state = machine.inside(path)
        known = state.opens.get(query.number)
        if known is None:
            known = self._table.may_open(state.below.last, query, cache(lambda: machine.ahead(state)))
            machine.note_below(state, query.number, known)
        return bool(known)

    def limits(self, agent: str, tool: str) -> tuple[Limit, ...]:
        """Return every limit that applies to a call, including those of the agent's parents."""
        return tuple(dict.fromkeys(each.limit for each in self.counted_limits(agent, tool)))

    def limits_on(self, agent: str, tool: str, actions: Collection[str]) -> tuple[Limit, ...]:
        """Return the limits that can count something of a call with these actions; listings count nothing."""
        known = POLICY_TOOLS.get(tool)
        silent = known is not None and known.gives == "no file"
        acting = {action for action in actions if action != "read" or not silent}
        found = (each for each in self.counted_limits(agent, tool) if acting.intersection(each.actions))
        return tuple(dict.fromkeys(each.limit for each in found))

    def counting(self, agent: str, tool: str) -> Counting:
        """Return what has to be counted for the calls of an agent's tool."""
        found = self._counting.get((agent, tool))
        if found is None:
            found = self._counting[agent, tool] = limit_checks.counting(self.counted_limits(agent, tool))
        return found

    def tighten(
        self,
        decision: Decision,
        agent: str,
        tool: str,
        usage: Mapping[str, Amount],
        totals: Callable[[str, str, Period], Amount],
    ) -> Decision:
        """Apply the limits to what a plan would change or its answer would give. The result is never looser.

        `usage` has the amount of each action. `totals` takes an agent, a limit's key and its period, and
        returns the amount so far, without this call.
        """
        worst: LimitHit | None = None
        for counted in self.counted_limits(agent, tool):
            limit = counted.limit
            amount = limit_checks.counted(counted.actions, usage)
            if not (amount.files or amount.bytes):
                continue  # a call that changes nothing exceeds no limit, even one that was exceeded before
            if limit.per != "call":
                amount += totals(counted.agent, limit.key, limit.per)
            hit = limit_checks.over(limit, amount)
            if hit and (worst is None or limit.over > worst.limit.over):
                worst = hit
        if worst is None or decision.effect is Effect.DENY or worst.limit.over < decision.effect:
            return decision
        return over_limit(decision, worst)

    def chain(self, agent: str) -> tuple[tuple[str, Agent | None], ...]:
        """Return an agent and its parents, nearest first, each with its entry under `agents`."""
        parts = agent.split("/")
        entry: Agent | None = None
        found: list[tuple[str, Agent | None]] = []
        for depth in range(1, len(parts) + 1):
            name = "/".join(parts[:depth])
            entry = self._entry(name, parts[:depth]) or entry
            found.append((name, entry))
        return tuple(reversed(found))

    def keys(self, tool: str, action: str) -> tuple[Keys, ...]:
        """Return the keys of a tier that a tool and an action on paths are looked up by.

        For `write` alone there is one row for each kind that the tool's calls can be, if the policy tells
        the kinds apart.
        """
        own = "" if names_action(tool) else tool
        if action == CALL:
            return ((own, "", CALL, ""),)  # `*` is everything that is done to a path
        written = action.partition(".")[0]
        if written != "write" or not self.has_kinds:
            return ((own, "", written, "*"),)
        return tuple((own, kind, written, "*") for kind in self.names(own, action))

    def floor(self, agent: str, tool: str, action: str) -> tuple[Mandatory, ...]:
        """Return the mandatory items that apply to an agent with a tool or an action on paths."""
        named = {key for keys in self.keys(tool, action) for key in keys if key}
        return tuple(
            item
            for item in self.content.mandatory
            if not named.isdisjoint(item.keys) and tool not in item.except_tools and applies(item, agent)
        )

    def _entry(self, name: str, parts: list[str]) -> Agent | None:
        exact = self.content.agents.get(name)
        if exact is not None:
            return exact
        for key in reversed(self._names):
            if fits(self._names[key], parts):
                return self.content.agents[key]
        return None

    def counted_limits(self, agent: str, tool: str) -> tuple[limit_checks.Counted, ...]:
        """Return every limit that applies to a call, with whose total and which actions it counts."""
        found = self._limits.get((agent, tool))
        if found is None:
            keys = limit_checks.keys_of(tool, self.tools)
            found = self._limits[agent, tool] = tuple(
                limit_checks.Counted(name, limit, counted_actions(limit.key, self.tools))
                for name, entry in self.chain(agent)
                for limit in limit_checks.in_force(entry.limits if entry else {}, self.content.limits, keys)
            )
        return found

    def _machine(self, fold: Fold) -> Matcher:
        table = self._table
        return self._machines.setdefault(fold, Matcher(table.patterns, fold, table.groups))

    def _query(self, agent: str, tool: str, action: str) -> Query:
        entries = dict.fromkeys(entry.name if entry else None for _, entry in self.chain(agent))
        if len(self._queries) >= _MAX_QUERIES:
            self._queries.clear()
        # Unique across threads: conclusions are stored under this number.
        query = self._table.query(next(self._numbers), agent, tuple(entries), self.keys(tool, action))
        self._queries[agent, tool, action] = query
        return query

    def _judged(self, machine: Matcher, found: Matches, query: Query) -> Verdict:
        """Judge what was found, and remember the verdict."""
        verdict = self._table.judge(found.last, query)
        machine.note(found, query.number, verdict)
        return verdict


def _keys(content: Content) -> Iterator[str]:
    for rules in (content.rules, *(agent.rules for agent in content.agents.values())):
        yield from rules
    for item in content.mandatory:
        yield from item.keys
