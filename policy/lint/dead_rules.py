"""Rules that decide nothing, and rules whose removal changes no verdict."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ringfence.policy.analysis.shortest_witness import Witness
from ringfence.policy.analysis.verdict_queries import ANYTHING, QueryContext, Tier, judge, only
from ringfence.policy.analysis.wanted_paths import Wanted
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext, listed, rule_text
from ringfence.policy.lint.earlier_answers import Answer, Change, Map, Question
from ringfence.policy.model import ACTIONS, WRITE_KINDS, Effect, Rule
from ringfence.policy.value_classes import replace

_DECIDES: Final = ("decides",)
_MATTERS: Final = ("matters",)


def dead_rules(lint: LintContext) -> Iterator[Finding]:
    """Yield rules that decide nothing: covered in their own map, or by rules that are compared before."""
    for owner, key, rules in lint.maps():
        for at, rule in enumerate(rules):
            if not lint.own(rule) or lint.still(lint.question(_DECIDES, (owner, key), rules, at)):
                continue
            if lint.questions.automaton.find([lint.questions.is_last(rules, at)], first=True) is None:
                lint.dead.add((owner, key, at))
                by = lint.covering(rules, at)
                verb = "covers" if len(by) == 1 else "cover"
                yield Finding(
                    "dead-rule",
                    f"{rule_text(rule)} under {key} can never decide: {listed(by)} {verb} it",
                    rule.where,
                )
            elif path := _decides(lint, owner, key, at):
                lint.answers.note(lint.question(_DECIDES, (owner, key), rules, at), Answer(path, 0))
            elif not _matters(lint, owner, key, rules, at):
                # A rule that decides nothing may still prevent a stricter rule of its map from deciding.
                lint.dead.add((owner, key, at))
                yield _outside(lint, owner, key, rules, at)


def _decides(lint: LintContext, owner: str | None, key: str, at: int) -> Witness | None:
    """Return a path that a rule decides for some agent, tool and action; None if there is none."""
    for where, ladder, tier, place in lint.contexts(owner, key):
        found = lint.questions.automaton.find(lint.deciding(where, ladder, tier, place, at), first=True)
        if found is not None:
            rule = where.ladders[ladder][tier][place][at]
            rule_text = judge(where, found)[1]
            assert rule_text is rule, f"{found}: {rule_text} decides, not {rule}"
            return found
    return None


def _outside(lint: LintContext, owner: str | None, key: str, rules: Sequence[Rule], at: int) -> Finding:
    rule = rules[at]
    if key not in ACTIONS and key != "*" and rule.effect is not Effect.DENY:
        for where, ladder, tier, place in lint.contexts(owner, key):
            settled = [
                each & lint.questions.is_last(rules, at)
                for later in where.ladders[ladder][tier][place + 1 : 3]
                for each in lint.questions.last_in(later, only(Effect.DENY))
            ]
            if lint.questions.automaton.find(settled, first=True):
                by = where.action.partition(".")[0]
                message = f"{rule_text(rule)} under {key} can never decide: {by} denies all that it matches"
                code = "kind-key-settled" if key in WRITE_KINDS else "tool-key-settled"
                return Finding(code, message, rule.where)
    before = "the mandatory rules, keys with precedence or stricter parents"
    return Finding(
        "dead-rule",
        f"{rule_text(rule)} under {key} can never decide: {before} settle all that it matches",
        rule.where,
    )


def idle_rules(lint: LintContext) -> Iterator[Finding]:
    """Yield rules whose removal changes no verdict."""
    for owner, key, rules in lint.maps():
        for at, rule in enumerate(rules):
            if not lint.own(rule) or (owner, key, at) in lint.dead:
                continue
            question = lint.question(_MATTERS, (owner, key), rules, at)
            if lint.still(question):
                continue
            path = _matters(lint, owner, key, rules, at, _opened(lint, question))
            lint.answers.note(question, Answer(path, 0))
            if path is None:
                yield Finding("idle-rule", f"{rule_text(rule)} under {key} changes no verdict", rule.where)


def _opened(lint: LintContext, question: Question) -> list[Change] | None:
    """Return the changes that may have given a use to a rule that was idle; None: it was not known to be."""
    answer = lint.answers.earlier(question)
    if answer is None or answer.witness is not None:
        return None
    near, number = lint.questions.automaton.near(question.pattern), lint.questions.number
    return [change for change in lint.answers.changed if near >> number[change.pattern] & 1]


def _regions(
    lint: LintContext, where: QueryContext, place: Map, changes: Sequence[Change] | None
) -> list[Wanted]:
    """Return the paths of a context on which changes matter to a rule of a map; all paths for None."""
    if changes is None:
        return [ANYTHING]
    opened, number = lint.opened(where), lint.questions.number
    return [
        # In its own map, the rule that would decide without it counts too.
        Wanted(((number[change.pattern],),)) if change.place == place else opened[change]
        for change in changes
        if change in opened
    ]


def _matters(  # noqa: PLR0913  a rule by its map and index, and the paths that count
    lint: LintContext,
    owner: str | None,
    key: str,
    rules: Sequence[Rule],
    at: int,
    changes: Sequence[Change] | None = None,
) -> Witness | None:
    """Return a path with another verdict without the rule, of changes only such as they opened, or None."""
    ask = lint.questions
    if changes is None and (shown := _shown(lint, owner, key, rules, at)):
        return shown
    for where, ladder, tier, place in lint.contexts(owner, key):
        regions = _regions(lint, where, (owner, key), changes)
        if not regions:
            continue
        own = ask.is_last(rules, at)
        free = replace(where, floor=())  # mandatory rules are the same with and without it
        with_it = _with_map(free, ladder, tier, place, (rules[at],))
        without = _with_map(free, ladder, tier, place, tuple(rules[:at]))
        for earlier in where.ladders[ladder][:tier]:  # where one of these decides, the rule is not asked
            for more in earlier:
                own &= ask.none_of(more)
        effects = sorted(Effect, key=lambda effect: effect is not rules[at].effect)
        for one, region in itertools.product(effects, regions):
            ways = _within(ask.verdict(with_it, one), own & region)
            for other in Effect:
                if other is not one and ways:
                    under = ask.floor_below(where.floor, Effect(max(one, other) - 1))
                    below = [wanted & under for wanted in ways]
                    both = ask.both(below, _within(ask.verdict(without, other), own & region))
                    if found := ask.automaton.find(both, first=True):
                        return found
    return None


def _within(ways: Iterable[Wanted], region: Wanted) -> list[Wanted]:
    """Return the parts of ways that are in a region, without those that are impossible at first sight."""
    return [wanted for each in ways if not (wanted := each & region).impossible()]


def _shown(lint: LintContext, owner: str | None, key: str, rules: Sequence[Rule], at: int) -> Witness | None:
    """Return an example of a path that a rule matches with another verdict without the rule, or None."""
    ask = lint.questions
    region, numbered = ask.is_last(rules, at), ask.numbered(rules)
    for witness, matched in ask.automaton.examples(numbered.numbers[at]):
        if not region.fits(matched):
            continue
        before = numbered.last(matched, at)
        without = None if before is None else rules[before].effect
        if without is rules[at].effect:
            continue
        for where, *_ in lint.contexts(owner, key):
            floor = _floor(lint, where, matched)
            one, other = (_message(lint, where, matched, rules, mine) for mine in (rules[at].effect, without))
            if max(floor, one) is not max(floor, other):
                return witness
    return None


def _message(
    lint: LintContext, where: QueryContext, matched: int, rules: Sequence[Rule], mine: Effect | None
) -> Effect:
    """Return the tier chains' verdict on a path with these matches, where the map `rules` says `mine`."""

    def effect(listed: Sequence[Rule]) -> Effect | None:
        if listed is rules:
            return mine
        at = lint.questions.numbered(listed).last(matched) if listed else None
        return None if at is None else listed[at].effect

    return max(_first([tuple(map(effect, tier)) for tier in ladder]) for ladder in where.ladders)


def _first(tiers: Sequence[Sequence[Effect | None]]) -> Effect:
    """Return the effect of the first tier with a match: of its last match by tool, kind, action and `*`."""
    for *named, anything in tiers:
        rule_text = [each for each in named if each is not None]
        if rule_text:
            return Effect.DENY if Effect.DENY in rule_text else rule_text[0]
        if anything is not None:
            return anything
    return Effect.ASK


def _floor(lint: LintContext, where: QueryContext, matched: int) -> Effect:
    """Return the strictest mandatory effect on a path that these patterns match."""
    number = lint.questions.number
    rule_text = [
        item.effect
        for item in where.floor
        if any(matched >> number[rule.pattern] & 1 for rule in item.rules)
        and not any(matched >> number[text] & 1 for text in item.excepts)
    ]
    return max(rule_text, default=Effect.ALLOW)


def _with_map(
    where: QueryContext, ladder: int, tier: int, place: int, rules: tuple[Rule, ...]
) -> QueryContext:
    """Return the same context with other rules in one map."""
    old = where.ladders[ladder][tier]
    by_tool, by_kind, by_action, by_any = (rules if n == place else each for n, each in enumerate(old))
    new: Tier = by_tool, by_kind, by_action, by_any
    shared = tier > 0 or len(where.ladders[ladder]) == 1
    ladders = []
    for number, each in enumerate(where.ladders):
        if number == ladder:
            ladders.append((*each[:tier], new, *each[tier + 1 :]))
        elif shared:  # everybody's tier is the last of each tier chain
            ladders.append((*each[:-1], new))
        else:
            ladders.append(each)
    return replace(where, ladders=tuple(ladders))
