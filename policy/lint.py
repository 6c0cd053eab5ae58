"""Looks for what is wrong with a policy that loads. Exact: what it does not report is not there.

Reads no files. A question that passes its bound is reported as `too-complex`, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from policy.automaton import Automaton, Budget, Undecided, Wanted, Witness
from policy.engine import Policy
from policy.findings import FINDINGS, Finding
from policy.limits import keys_of
from policy.machine import matches
from policy.model import ACTIONS, Agent, Effect, Limit, Mandatory, Rule
from policy.questions import (
    EVERY_EFFECT,
    Context,
    Questions,
    Tier,
    agents,
    confirm,
    context,
    judge,
    only,
    pairs,
)
from policy.suspect import suspects

# Tools of which one call changes one file at most.
_SINGLE = frozenset({"copy_file", "create_file", "delete_file", "edit_file", "insert_at_line"})
_MOST_NAMED = 12


def lint(
    policy: Policy, *, files: frozenset[str] | None = None, budget: Budget | None = None
) -> list[Finding]:
    """Return what there is to say about the rules of these files (as `Where.file` names them), or of all."""
    look = Lint(policy, files, budget or Budget())
    found = [finding for check in LINTS.values() for finding in look.run(check)]
    return sorted(dict.fromkeys(found), key=_place)


def _place(finding: Finding) -> tuple[str, int, int, str]:
    where = finding.where
    return (where.file, where.line, where.column, finding.code) if where else ("", 0, 0, finding.code)


class Lint:
    """One look at a policy."""

    def __init__(self, policy: Policy, files: frozenset[str] | None, budget: Budget) -> None:
        self.policy = policy
        self.files = files
        self.questions = Questions([policy], budget=budget)
        self.names = agents([policy], budget=budget)
        self.pairs = pairs([policy])
        self.dead: set[tuple[str | None, str, int]] = set()

    def run(self, check: Callable[[Lint], Iterator[Finding]]) -> list[Finding]:
        found: list[Finding] = []
        try:
            found.extend(check(self))
        except Undecided as error:
            found.append(Finding("too-complex", f"{check.__name__.strip('_').replace('_', ' ')}: {error}"))
        return found

    def own(self, rule: Rule | Limit) -> bool:
        return self.files is None or (rule.where is not None and rule.where.file in self.files)

    def maps(self) -> Iterator[tuple[str | None, str, tuple[Rule, ...]]]:
        content = self.policy.content
        owners = [(None, content.rules), *((agent.name, agent.rules) for agent in content.agents.values())]
        return ((owner, key, listed) for owner, rules in owners for key, listed in rules.items())

    def contexts(self, owner: str | None, key: str) -> Iterator[tuple[Context, int, int, int]]:
        """Where a map is looked at: the context, its ladder, its tier, and its place in the tier."""
        for name in self.names:
            for tool, action in self.pairs:
                if key not in (tool, action, "*"):
                    continue
                where = context(self.policy, name, tool, action)
                entries = list(dict.fromkeys(e.name if e else None for _, e in self.policy.chain(name)))
                for ladder, entry in enumerate(entries):
                    if owner is not None and entry != owner:
                        continue
                    tier = len(where.ladders[ladder]) - 1 if owner is None else 0
                    place = 2 if key == "*" else 1 if key in ACTIONS else 0
                    yield where, ladder, tier, place

    def deciding(self, where: Context, ladder: int, tier: int, place: int, at: int) -> Iterator[Wanted]:
        """Ways for one rule to be what the engine names as deciding."""
        ask = self.questions
        tool, action, _ = here = where.ladders[ladder][tier]
        rule = here[place][at]
        base = ask.is_last(here[place], at) & ask.floor_below(where.floor, Effect(max(rule.effect - 1, 0)))
        for earlier in where.ladders[ladder][:tier]:
            for rules in earlier:
                base &= ask.none_of(rules)
        ways: Iterable[Wanted] = (base,)
        if place == 2:
            ways = (base & ask.none_of(tool) & ask.none_of(action),)
        elif place == 1 and rule.effect is Effect.DENY:
            ways = [base & each for each in ask.not_denied(tool)]
        elif place == 1:
            ways = (base & ask.none_of(tool),)
        elif rule.effect is not Effect.DENY:
            ways = [base & each for each in ask.not_denied(action)]
        others = [
            only_below(rule.effect, strict=n < ladder) for n in range(len(where.ladders)) if n != ladder
        ]
        rest = [each for n, each in enumerate(where.ladders) if n != ladder]
        if any(not effects for effects in others):
            return
        for way in ways:
            for more in ask._all(rest, others):
                yield way & more

    def covering(self, rules: Sequence[Rule], at: int) -> list[Rule]:
        """As few later rules as can be found that together match all that one rule matches."""
        ask = self.questions
        number = ask.number[rules[at].pattern]
        later = [r for r in rules[at + 1 :] if ask.automaton.meet(number, ask.number[r.pattern])]
        alone = next((r for r in later if ask.automaton.holds(number, [ask.number[r.pattern]])), None)
        if alone:
            return [alone]
        kept = list(later)
        for rule in later[:40]:
            less = [each for each in kept if each is not rule]
            if ask.automaton.holds(number, [ask.number[each.pattern] for each in less]):
                kept = less
        return kept


def only_below(effect: Effect, *, strict: bool) -> frozenset[Effect]:
    return frozenset(each for each in EVERY_EFFECT if each < effect or (each == effect and not strict))


def _said(rule: Rule) -> str:
    return f'"{rule.pattern}": {rule.effect}'


def _line(rule: Rule) -> str:
    return f"{_said(rule)} (line {rule.where.line})" if rule.where else _said(rule)


def _listed(rules: Sequence[Rule]) -> str:
    more = f" and {len(rules) - _MOST_NAMED} more" if len(rules) > _MOST_NAMED else ""
    return ", ".join(_line(rule) for rule in rules[:_MOST_NAMED]) + more


def _dead_rules(look: Lint) -> Iterator[Finding]:
    """Rules that decide nothing: covered in their own map, or by what is looked at before it."""
    for owner, key, rules in look.maps():
        for at, rule in enumerate(rules):
            if not look.own(rule):
                continue
            if look.questions.find([look.questions.is_last(rules, at)]) is None:
                look.dead.add((owner, key, at))
                by = look.covering(rules, at)
                verb = "covers" if len(by) == 1 else "cover"
                yield Finding(
                    "dead-rule",
                    f"{_said(rule)} under {key} can never decide: {_listed(by)} {verb} it",
                    rule.where,
                )
            elif not _decides(look, owner, key, at) and not _matters(look, owner, key, rules, at):
                # One that decides nothing may still keep a stricter rule of its own map from deciding.
                look.dead.add((owner, key, at))
                yield _outside(look, owner, key, rules, at)


def _decides(look: Lint, owner: str | None, key: str, at: int) -> bool:
    for where, ladder, tier, place in look.contexts(owner, key):
        found = look.questions.automaton.find(look.deciding(where, ladder, tier, place, at), first=True)
        if found is not None:
            rule = where.ladders[ladder][tier][place][at]
            said = judge(where, found)[1]
            assert said is rule, f"{found}: {said} decides, not {rule}"
            return True
    return False


def _outside(look: Lint, owner: str | None, key: str, rules: Sequence[Rule], at: int) -> Finding:
    rule = rules[at]
    if key not in ACTIONS and key != "*" and rule.effect is not Effect.DENY:
        for where, ladder, tier, _ in look.contexts(owner, key):
            action = where.ladders[ladder][tier][1]
            denied = [
                each & look.questions.is_last(rules, at)
                for each in look.questions.last_in(action, only(Effect.DENY))
            ]
            if look.questions.automaton.find(denied, first=True):
                message = (
                    f"{_said(rule)} under {key} can never decide: {where.action} denies all that it matches"
                )
                return Finding("tool-key-settled", message, rule.where)
    before = "the mandatory rules, the keys looked at before it or stricter parents"
    return Finding(
        "dead-rule",
        f"{_said(rule)} under {key} can never decide: {before} settle all that it matches",
        rule.where,
    )


def _idle_rules(look: Lint) -> Iterator[Finding]:
    """Rules without which every verdict would be the same."""
    for owner, key, rules in look.maps():
        for at, rule in enumerate(rules):
            if not look.own(rule) or (owner, key, at) in look.dead:
                continue
            if not _matters(look, owner, key, rules, at):
                yield Finding("idle-rule", f"{_said(rule)} under {key} changes no verdict", rule.where)


def _matters(look: Lint, owner: str | None, key: str, rules: Sequence[Rule], at: int) -> bool:
    ask = look.questions
    region = ask.is_last(rules, at)
    for where, ladder, tier, place in look.contexts(owner, key):
        free = replace(where, floor=())  # the floor is the same with and without it
        with_it = _with_map(free, ladder, tier, place, (rules[at],))
        without = _with_map(free, ladder, tier, place, tuple(rules[:at]))
        effects = sorted(Effect, key=lambda effect: effect is not rules[at].effect)
        for one in effects:
            ways = [way & region for way in ask.verdict(with_it, one)]
            for other in Effect:
                if other is not one and ways:
                    under = ask.floor_below(where.floor, Effect(max(one, other) - 1))
                    both = (way & each & under for way in ways for each in ask.verdict(without, other))
                    if ask.automaton.find(both, first=True) is not None:
                        return True
    return False


def _with_map(where: Context, ladder: int, tier: int, place: int, rules: tuple[Rule, ...]) -> Context:
    """The same context with other rules in one map."""
    old = where.ladders[ladder][tier]
    new: Tier = (
        (rules, old[1], old[2])
        if place == 0
        else (old[0], rules, old[2])
        if place == 1
        else (old[0], old[1], rules)
    )
    shared = tier > 0 or len(where.ladders[ladder]) == 1
    ladders = []
    for number, each in enumerate(where.ladders):
        if number == ladder:
            ladders.append((*each[:tier], new, *each[tier + 1 :]))
        elif shared:  # everybody's tier stands at the end of each ladder
            ladders.append((*each[:-1], new))
        else:
            ladders.append(each)
    return replace(where, ladders=tuple(ladders))


def _cuts(look: Lint, later: Effect, earlier: Effect, code: str) -> Iterator[Finding]:
    ask = look.questions
    for _, key, rules in look.maps():
        for at, rule in enumerate(rules):
            before = [each for each in rules[:at] if each.effect is earlier]
            if rule.effect is not later or not before or not look.own(rule):
                continue
            number = ask.number[rule.pattern]
            before = [r for r in before if not ask.automaton.holds(ask.number[r.pattern], [number])]
            while before:
                found = ask.find([ask.is_last(rules, at) & ask.inside(*(each.pattern for each in before))])
                if found is None:
                    break
                assert matches(rule.pattern, found.path, found.directory)
                cut = [each for each in before if matches(each.pattern, found.path, found.directory)]
                assert cut
                if not any(ask.automaton.holds(number, [ask.number[each.pattern]]) for each in cut):
                    verb = "opens" if later is Effect.ALLOW else "closes"
                    message = f"{_said(rule)} under {key} {verb} a part of {_line(cut[-1])}: {found}"
                    yield Finding(code, message, rule.where, str(found))
                    break
                before = [each for each in before if each not in cut]


def _allows_that_cut(look: Lint) -> Iterator[Finding]:
    return _cuts(look, Effect.ALLOW, Effect.DENY, "allow-cuts-deny")


def _denies_that_cut(look: Lint) -> Iterator[Finding]:
    return _cuts(look, Effect.DENY, Effect.ALLOW, "deny-cuts-allow")


def _loosening(look: Lint) -> Iterator[Finding]:
    """Agents' rules that let through what the global rules deny."""
    for owner, key, rules in look.maps():
        for at, rule in enumerate(rules):
            if owner is None or rule.effect is Effect.DENY or not look.own(rule):
                continue
            found = _loosened(look, owner, key, at)
            if found:
                where, witness = found
                confirm(where, witness, rule.effect)
                everybody = where.ladders[0][-1]
                denying = next(
                    each
                    for listed in everybody
                    for each in reversed(listed)
                    if each.effect is Effect.DENY and matches(each.pattern, witness.path, witness.directory)
                )
                message = (
                    f"{_said(rule)} under {key} loosens {_line(denying)} for {owner}:"
                    f" {where.action} {witness}"
                )
                yield Finding("loosens-global", message, rule.where, str(witness))


def _loosened(look: Lint, owner: str, key: str, at: int) -> tuple[Context, Witness] | None:
    for where, ladder, tier, place in look.contexts(owner, key):
        if ladder:
            continue
        denied = list(look.questions.tier(where.ladders[0][-1], only(Effect.DENY)))
        ways = (way & each for way in look.deciding(where, ladder, tier, place, at) for each in denied)
        found = look.questions.find(ways)
        if found:
            return where, found
    return None


def _excepts(look: Lint) -> Iterator[Finding]:
    ask = look.questions
    for item in look.policy.content.mandatory:
        if not item.excepts or not look.own(item.rules[0]):
            continue
        numbers = [ask.number[text] for text in item.excepts]
        for rule in item.rules:
            if ask.automaton.holds(ask.number[rule.pattern], numbers):
                message = f'the exceptions leave nothing of "{rule.pattern}"'
                yield Finding("except-covers-all", message, rule.where)
        yield from _unused_excepts(ask, item)


def _unused_excepts(ask: Questions, item: Mandatory) -> Iterator[Finding]:
    for text in item.excepts:
        if ask.find([ask.inside(text) & ask.inside(*(rule.pattern for rule in item.rules))]) is None:
            yield Finding(
                "except-unused", f'the exception "{text}" meets none of the paths', item.rules[0].where
            )


def _limits(look: Lint) -> Iterator[Finding]:
    """Limits that no call can meet: what they count is as strict anyway, or one file is all there is."""
    content = look.policy.content
    owners = [(None, content.limits), *((agent.name, agent.limits) for agent in content.agents.values())]
    for owner, limits in owners:
        for key, listed in limits.items():
            for limit in listed:
                if look.own(limit) and (why := _unreachable(look, owner, key, limit)):
                    yield Finding(
                        "limit-unreachable", f"the limit on {key} can never stop a call: {why}", limit.where
                    )


def _unreachable(look: Lint, owner: str | None, key: str, limit: Limit) -> str:
    if key in _SINGLE and limit.per == "call" and limit.max_files and limit.max_bytes is None:
        return f"one call of {key} changes one file"
    looser = [effect for effect in Effect if effect < limit.over]
    for name in look.names:
        entries = {entry.name if entry else None for _, entry in look.policy.chain(name)}
        if owner is not None and owner not in entries:
            continue
        for tool in (*ACTIONS, *look.policy.tools):
            if key not in keys_of(tool, look.policy.tools):
                continue
            actions = [tool] if tool in ACTIONS else dict.fromkeys(a for a, _ in look.policy.tools[tool])
            wheres = [context(look.policy, name, tool, action) for action in actions]
            if all(any(look.questions.ever(w, effect) for effect in looser) for w in wheres):
                return ""
    return f"what it counts is {'denied' if limit.over is Effect.DENY else 'asked about or denied'} anyway"


def _unused_agents(look: Lint) -> Iterator[Finding]:
    content: Mapping[str, Agent] = look.policy.content.agents
    keys = list(content)
    automaton = Automaton([f"/{key}" for key in keys], covers=False)
    for at, key in enumerate(keys):
        if not set(key) & set("*?["):
            continue
        where = next((rule.where for rules in content[key].rules.values() for rule in rules), None)
        if where is None or (look.files is not None and where.file not in look.files):
            continue
        later = frozenset(n for n, other in enumerate(keys) if n > at or not set(other) & set("*?["))
        if automaton.find([Wanted(((at,),), later)]) is None:
            yield Finding(
                "agent-unused",
                f'the entry "{key}" speaks for no agent: later or exact ones take all its names',
                where,
            )


def _suspicious(look: Lint) -> Iterator[Finding]:
    rules = [rule for _, _, listed in look.maps() for rule in listed]
    rules += [rule for item in look.policy.content.mandatory for rule in item.rules]
    for rule in rules:
        if look.own(rule):
            for code in suspects(rule.pattern):
                yield Finding(code, f'"{rule.pattern}": {FINDINGS[code][1]}', rule.where)


LINTS: Mapping[str, Callable[[Lint], Iterator[Finding]]] = MappingProxyType(
    {
        "suspicious patterns": _suspicious,
        "unused agents": _unused_agents,
        "exceptions": _excepts,
        "dead rules": _dead_rules,
        "loosening": _loosening,
        "limits": _limits,
        "allows that cut": _allows_that_cut,
        "denies that cut": _denies_that_cut,
        "idle rules": _idle_rules,
    }
)
