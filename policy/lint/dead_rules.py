"""Rules that decide nothing, and rules whose removal changes no verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ringfence.policy.analysis.verdict_queries import QueryContext, Tier, judge, only
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext, listed, rule_text
from ringfence.policy.model import ACTIONS, WRITE_KINDS, Effect, Rule


def dead_rules(lint: LintContext) -> Iterator[Finding]:
    """Yield rules that decide nothing: covered in their own map, or by rules that are compared before."""
    for owner, key, rules in lint.maps():
        for at, rule in enumerate(rules):
            if not lint.own(rule):
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
            elif not _decides(lint, owner, key, at) and not _matters(lint, owner, key, rules, at):
                # A rule that decides nothing may still prevent a stricter rule of its map from deciding.
                lint.dead.add((owner, key, at))
                yield _outside(lint, owner, key, rules, at)


def _decides(lint: LintContext, owner: str | None, key: str, at: int) -> bool:
    for where, ladder, tier, place in lint.contexts(owner, key):
        found = lint.questions.automaton.find(lint.deciding(where, ladder, tier, place, at), first=True)
        if found is not None:
            rule = where.ladders[ladder][tier][place][at]
            rule_text = judge(where, found)[1]
            assert rule_text is rule, f"{found}: {rule_text} decides, not {rule}"
            return True
    return False


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
            if not _matters(lint, owner, key, rules, at):
                yield Finding("idle-rule", f"{rule_text(rule)} under {key} changes no verdict", rule.where)


def _matters(lint: LintContext, owner: str | None, key: str, rules: Sequence[Rule], at: int) -> bool:
    ask = lint.questions
    region = ask.is_last(rules, at)
    if _shown(lint, owner, key, rules, at):
        return True
    for where, ladder, tier, place in lint.contexts(owner, key):
        free = replace(where, floor=())  # mandatory rules are the same with and without it
        with_it = _with_map(free, ladder, tier, place, (rules[at],))
        without = _with_map(free, ladder, tier, place, tuple(rules[:at]))
        effects = sorted(Effect, key=lambda effect: effect is not rules[at].effect)
        for one in effects:
            ways = [wanted & region for wanted in ask.verdict(with_it, one)]
            for other in Effect:
                if other is not one and ways:
                    under = ask.floor_below(where.floor, Effect(max(one, other) - 1))
                    below = [wanted & under for wanted in ways]
                    both = ask.both(below, list(ask.verdict(without, other)))
                    if ask.automaton.find(both, first=True) is not None:
                        return True
    return False


def _shown(lint: LintContext, owner: str | None, key: str, rules: Sequence[Rule], at: int) -> bool:
    """Whether an example of a path that a rule matches has another verdict without the rule."""
    ask = lint.questions
    region, numbered = ask.is_last(rules, at), ask.numbered(rules)
    for _, matched in ask.automaton.examples(numbered.numbers[at]):
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
                return True
    return False


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
