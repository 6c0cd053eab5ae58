"""Verdict queries: turns questions about verdicts into pattern queries, and has the engine confirm answers.

A policy is, for one agent, tool and action, a few lists in which the last match decides. "Is there a path
with this verdict" becomes: matched by these and not by those patterns, once for each way to the verdict.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ringfence.policy.analysis.bit_nfa import NICE
from ringfence.policy.analysis.bit_sets import mask
from ringfence.policy.analysis.bit_sets import numbers as numbers_of
from ringfence.policy.analysis.pattern_queries import Budget, PatternQueries, Undecided, Wanted, Witness
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.model import ACTIONS, Effect, Mandatory, Rule, path_needs
from ringfence.policy.patterns.matcher import matches
from ringfence.policy.patterns.syntax import Fold, Folding
from ringfence.policy.rule_list import RuleList

Effects = frozenset[Effect]
Tier = tuple[tuple[Rule, ...], tuple[Rule, ...], tuple[Rule, ...]]  # by tool, by action, by `*`
Ladder = tuple[Tier, ...]
ANYTHING = Wanted()
EVERY_EFFECT: Effects = frozenset(Effect)
_MAX_CLASSES = 2_000


def up_to(effect: Effect) -> Effects:
    """Return an effect and all looser effects."""
    return frozenset(each for each in Effect if each <= effect)


def only(effect: Effect) -> Effects:
    """Return the set of this effect alone."""
    return frozenset({effect})


@dataclass(frozen=True, slots=True)
class QueryContext:
    """The lists that apply to one agent, tool and action; the same as in the engine, rule by rule."""

    policy: Engine
    agent: str
    tool: str
    action: str
    ladders: tuple[Ladder, ...]
    floor: tuple[Mandatory, ...]
    fold: Fold = Folding.NONE  # how the engine compares names

    @property
    def meaning(self) -> tuple[object, ...]:
        """Equal for contexts that give the same verdicts by the same rules."""
        return self.ladders, self.floor


def context(policy: Engine, agent: str, tool: str, action: str, fold: Fold = Folding.NONE) -> QueryContext:
    """Collect the lists for one agent, tool (or bare action) and action."""
    own = "" if tool in ACTIONS else tool

    def tier(rules: object) -> Tier:
        """Return a tier's lists for the tool, for the action and for `*`."""
        found = tuple(rules.get(key, ()) if key else () for key in (own, action, "*"))  # type: ignore[attr-defined]
        return found[0], found[1], found[2]

    everybody = tier(policy.content.rules)
    entries = {entry.name if entry else None: entry for _, entry in policy.chain(agent)}
    ladders = tuple((tier(entry.rules), everybody) if entry else (everybody,) for entry in entries.values())
    return QueryContext(
        policy, agent, tool, action, ladders, policy.floor(agent, own or action, action), fold
    )


def together(wheres: list[QueryContext]) -> QueryContext:
    """Return several actions on one path as one context: the strictest verdict is the call's."""
    first = wheres[0]
    ladders = tuple(dict.fromkeys(ladder for where in wheres for ladder in where.ladders))
    floor = tuple(dict.fromkeys(item for where in wheres for item in where.floor))
    return replace(first, ladders=ladders, floor=floor)


def pairs(policies: Iterable[Engine]) -> list[tuple[str, str]]:
    """Return the tools and actions that can differ.

    These are each action for the tools without a key of their own, then each tool with one.
    """
    named: set[str] = set()
    tools: dict[str, Sequence[tuple[str, str]]] = {}
    for policy in policies:
        tools.update(policy.tools)
        named.update(policy.content.rules)
        for agent in policy.content.agents.values():
            named.update(agent.rules)
        for item in policy.content.mandatory:
            named.update(item.keys, item.except_tools)
    found = [(action, action) for action in ACTIONS]
    for tool in sorted(named - set(ACTIONS) - {"*"}):
        needs = path_needs(tool, tools) if tool in tools else ()
        found += [(tool, action) for action in dict.fromkeys(action for action, _ in needs)]
    return found


def patterns(policy: Engine) -> Iterator[str]:
    """Yield every pattern that verdicts depend on."""
    content = policy.content
    for rules in (content.rules, *(agent.rules for agent in content.agents.values())):
        for listed in rules.values():
            for rule in listed:
                yield rule.pattern
    for item in content.mandatory:
        yield from (rule.pattern for rule in item.rules)
        yield from item.excepts


class _Numbered:
    """The numbers of a list's patterns; `after[n]` holds the patterns of its last n rules, as bits."""

    __slots__ = ("after", "numbers", "places", "rules")

    def __init__(self, rules: Sequence[Rule], numbers: list[int]) -> None:
        self.rules = rules  # so that nothing else gets its identity
        self.numbers = numbers
        self.after = [0]
        for number in reversed(numbers):
            self.after.append(self.after[-1] | 1 << number)
        self.places: dict[int, list[int]] = {}
        for at, number in enumerate(numbers):
            self.places.setdefault(number, []).append(at)

    def last(self, matched: int, end: int | None = None) -> int | None:
        """Return the index of the last matching rule before an end, or None."""
        places = (at for n in numbers_of(matched & self.after[-1]) for at in self.places[n])
        return max((at for at in places if end is None or at < end), default=None)


class VerdictQueries:
    """Questions about one or more policies, with all their patterns in one automaton.

    A `Wanted` describes one way for a path to get a verdict; several are alternatives.
    """

    def __init__(
        self,
        policies: Sequence[Engine],
        more: Iterable[str] = (),
        budget: Budget | None = None,
        fold: Fold = Folding.NONE,
    ) -> None:
        self.policies = tuple(policies)
        texts = dict.fromkeys(text for policy in self.policies for text in patterns(policy))
        texts.update(dict.fromkeys(more))
        self.number = {text: number for number, text in enumerate(texts)}
        self._lists: dict[int, _Numbered] = {}
        self.automaton = PatternQueries(list(texts), budget=budget, fold=fold)

    def inside(self, *texts: str) -> Wanted:
        """Return the paths that one of these patterns matches."""
        return Wanted((tuple(self.number[text] for text in texts),))

    def outside(self, texts: Iterable[str]) -> Wanted:
        """Return the paths that none of these patterns matches."""
        return Wanted(none=mask(self.number[text] for text in texts))

    def none_of(self, rules: Sequence[Rule]) -> Wanted:
        """Return the paths that no rule of a list matches."""
        return Wanted(none=self.numbered(rules).after[-1]) if rules else ANYTHING

    def numbered(self, rules: Sequence[Rule]) -> _Numbered:
        """Return the numbers of a list's patterns; remembered for lists of a policy."""
        found = self._lists.get(id(rules))
        if found is None:
            texts = rules.patterns if isinstance(rules, RuleList) else [rule.pattern for rule in rules]
            found = _Numbered(rules, [self.number[text] for text in texts])
            if isinstance(rules, RuleList):  # others are made for one question
                self._lists[id(rules)] = found
        return found

    def last_in(self, rules: Sequence[Rule], effects: Effects) -> Iterator[Wanted]:
        """Yield the ways for the last match in one list to have one of these effects."""
        later = 0
        for rule, number in zip(reversed(rules), reversed(self.numbered(rules).numbers), strict=True):
            if rule.effect not in effects:
                later |= 1 << number
            elif not later >> number & 1:
                yield Wanted(((number,),), later)

    def is_last(self, rules: Sequence[Rule], at: int) -> Wanted:
        """Return the paths for which exactly this rule is the last match."""
        numbered = self.numbered(rules)
        return Wanted(((numbered.numbers[at],),), numbered.after[len(rules) - 1 - at])

    def not_denied(self, rules: Sequence[Rule]) -> Iterator[Wanted]:
        """Yield the ways for the last match in one list not to be a deny, or for no rule to match."""
        yield self.outside(rule.pattern for rule in rules if rule.effect is Effect.DENY)
        first = next((at for at, rule in enumerate(rules) if rule.effect is Effect.DENY), len(rules))
        yield from self.last_in(rules[first:], up_to(Effect.ASK))

    def tier(self, tier: Tier, effects: Effects) -> Iterator[Wanted]:
        """Yield the ways for one tier to decide with one of these effects."""
        tool, action, anything = tier
        if Effect.DENY in effects:
            yield from self.last_in(action, only(Effect.DENY))
        for chosen in self.last_in(tool, effects):
            if Effect.DENY in effects:
                yield chosen
            else:
                yield from (chosen & other for other in self.not_denied(action))
        passed = self.none_of(tool)
        yield from (chosen & passed for chosen in self.last_in(action, effects))
        passed &= self.none_of(action)
        yield from (chosen & passed for chosen in self.last_in(anything, effects))

    def ladder(self, ladder: Ladder, effects: Effects) -> Iterator[Wanted]:
        """Yield the ways for a tier chain (agent, global, then `ask`) to have one of these effects."""
        passed = ANYTHING
        for tier in ladder:
            yield from (passed & each for each in self.tier(tier, effects))
            for rules in tier:
                passed &= self.none_of(rules)
        if Effect.ASK in effects:
            yield passed

    def floor_below(self, floor: Iterable[Mandatory], effect: Effect) -> Wanted:
        """Return the paths for which no mandatory item is stricter than this effect."""
        out = ANYTHING
        for item in floor:
            if item.effect <= effect:
                continue
            paths = tuple(rule.pattern for rule in item.rules)
            if item.excepts:
                here = tuple(self.number[text] for text in paths)
                out &= Wanted(unless=((here, tuple(self.number[text] for text in item.excepts)),))
            else:
                out &= self.outside(paths)
        return out

    def floor_at(self, floor: Iterable[Mandatory], effect: Effect) -> Iterator[Wanted]:
        """Yield the ways for a mandatory item to have this effect."""
        for item in floor:
            if item.effect is effect:
                yield self.inside(*(rule.pattern for rule in item.rules)) & self.outside(item.excepts)

    def verdict(self, where: QueryContext, effect: Effect) -> Iterator[Wanted]:
        """Yield the ways for the verdict to be this effect."""
        under = self.floor_below(where.floor, effect)
        if effect is not Effect.ALLOW:
            most = up_to(effect)
            rest = [ANYTHING] if effect is Effect.DENY else None
            for at_floor in self.floor_at(where.floor, effect):
                for each in rest or self.chains(where.ladders, [most] * len(where.ladders)):
                    yield under & at_floor & each
        for chosen in range(len(where.ladders)) if effect is not Effect.ALLOW else (0,):
            wanted = [up_to(effect)] * len(where.ladders)
            wanted[chosen] = only(effect)
            for each in self.chains(where.ladders, wanted):
                yield under & each

    def chains(self, ladders: Sequence[Ladder], effects: Sequence[Effects]) -> Iterator[Wanted]:
        """Yield the ways for each tier chain to have one of the effects at its place in `effects`."""
        if not ladders:
            yield ANYTHING
            return
        if effects[0] == EVERY_EFFECT:
            yield from self.chains(ladders[1:], effects[1:])
            return
        for rest in self.chains(ladders[1:], effects[1:]):
            for each in self.ladder(ladders[0], effects[0]):
                yield each & rest

    def both(self, some: Iterable[Wanted], others: Sequence[Wanted]) -> Iterator[Wanted]:
        """Yield the ways that are in both sets, without most of the impossible ones."""
        automaton = self.automaton
        firsts = [each.every[0][0] if each.every and len(each.every[0]) == 1 else -1 for each in others]
        for one in some:
            automaton.budget.spend(1 + len(others) // 8)
            can = ~one.none
            for group in one.every:
                if len(group) == 1:
                    can &= automaton.near(group[0])
            for first, other in zip(firsts, others, strict=True):
                if first < 0 or can >> first & 1:
                    yield one & other

    def find(self, wanted: Iterable[Wanted], region: Wanted = ANYTHING) -> Witness | None:
        """Return the shortest path in a region; None: no such path exists, which is proved."""
        return self.automaton.find(each & region for each in wanted)

    def ever(self, where: QueryContext, effect: Effect, region: Wanted = ANYTHING) -> Witness | None:
        """Return the shortest path with this verdict, confirmed by the engine; None: there is none."""
        found = self.find(self.verdict(where, effect), region)
        if found is not None:
            confirm(where, found, effect)
        return found


def judge(where: QueryContext, witness: Witness) -> tuple[Effect, Rule | None]:
    """Return the engine's verdict on a witness, with the rule that decides."""
    path, directory = witness.path, witness.directory
    return where.policy.verdict(where.agent, where.tool, where.action, path, directory, fold=where.fold)


def confirm(where: QueryContext, witness: Witness, effect: Effect) -> Rule | None:
    """Have the engine confirm a witness; AssertionError, a defect of this program, if it disagrees."""
    judged, rule = judge(where, witness)
    if judged is not effect:
        raise AssertionError(
            f"the engine says {judged} where the analysis says {effect}: {where.agent} {where.tool}"
            f" {where.action} {witness}"
        )
    return rule


def agents(policies: Sequence[Engine], selector: str = "**", budget: Budget | None = None) -> list[str]:
    """Return one name for every kind of agent that some policy distinguishes, plain names first.

    The selector is a pattern of names as in `agents:`; `*` and `**` match every agent.
    """
    keys = list(dict.fromkeys(key for policy in policies for key in policy.content.agents))
    depth = max((key.count("/") + 1 for key in keys), default=1)
    chosen = "**" if selector == "*" else selector
    longest = max(depth, chosen.count("/") + 1 if chosen != "**" else 1)
    texts = [f"/{key}" for key in keys]
    levels = ["/" + "/".join(["*"] * n) for n in range(1, longest + 2)]
    number = {text: at for at, text in enumerate(dict.fromkeys([*texts, *levels, "/" + chosen]))}
    automaton = PatternQueries(list(number), budget=budget)
    found: dict[tuple[object, ...], str] = {}
    for length in range(1, longest + 1):
        exact = Wanted(((number[levels[length - 1]],), (number["/" + chosen],)), 1 << number[levels[length]])
        for count, combination in enumerate(_entries(policies, length)):
            if count > _MAX_CLASSES:
                raise Undecided("too complex: too many kinds of agents")
            wanted = exact
            for every, none in combination:
                wanted &= Wanted(
                    tuple((number[f"/{key}"],) for key in every), mask(number[f"/{key}"] for key in none)
                )
            witness = automaton.find([wanted])
            if witness is not None:
                name = witness.path
                nicer = _as_a_name(name, keys)
                if _meaning(policies, nicer) == _meaning(policies, name) and matches("/" + chosen, nicer):
                    name = nicer
                found.setdefault(_meaning(policies, name), name)
    return list(found.values())


def _meaning(policies: Sequence[Engine], name: str) -> tuple[object, ...]:
    """Return the entries that apply to an agent and its parents, in each policy."""
    return tuple(
        tuple(dict.fromkeys(entry.name if entry else None for _, entry in policy.chain(name)))
        for policy in policies
    )


def _as_a_name(name: str, keys: Iterable[str]) -> str:
    """Return the shortest name of a kind of agents, made readable where no entry fixes its letters."""
    written = {part for key in keys for part in key.split("/")}
    parts = name.split("/")
    for at, part in enumerate(parts):
        if part == NICE[0] and part not in written:
            parts[at] = "helper" if at else "another-agent"
        elif part[-1] in "-_." and part not in written:
            parts[at] = f"{part}1"
    return "/".join(parts)


Entry = tuple[tuple[str, ...], tuple[str, ...]]  # keys that fit, and keys that do not


def _entries(policies: Sequence[Engine], length: int) -> Iterator[tuple[Entry, ...]]:
    """Yield every combination of keys that can apply to a name and its parents, level by level."""
    levels = []
    for policy in policies:
        for level in range(1, length + 1):
            keys = [key for key in policy.content.agents if key.count("/") + 1 == level]
            plain = [key for key in keys if not set(key) & set("*?[")]
            wild = [key for key in keys if key not in plain]
            options: list[Entry] = [((), tuple(keys))]
            options += [((key,), ()) for key in plain]
            options += [((key,), (*plain, *wild[at + 1 :])) for at, key in enumerate(wild)]
            levels.append(options)
    return itertools.product(*levels)
