"""Later rules that override part of earlier rules, and agents' rules that loosen a global deny."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ringfence.policy.analysis.pattern_queries import Wanted, Witness
from ringfence.policy.analysis.verdict_queries import ANYTHING, QueryContext, judge, only, up_to
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext, line, rule_text
from ringfence.policy.lint.earlier_answers import Change, Map, Question
from ringfence.policy.model import WRITE_KINDS, Effect, Rule


def _cuts(lint: LintContext, later: Effect, earlier: Effect, code: str) -> Iterator[Finding]:
    """Yield rules that decide for some of the paths for which an earlier rule of the same map decided."""
    for owner, key, rules in lint.maps():
        for at, rule in enumerate(rules):
            if rule.effect is not later or not lint.own(rule):
                continue
            if found := _cut(lint, lint.question((code,), (owner, key), rules, at), rules, earlier):
                witness, other = found
                verb = "opens" if later is Effect.ALLOW else "closes"
                message = f"{rule_text(rule)} under {key} {verb} a part of {line(other)}: {witness}"
                yield Finding(code, message, rule.where, str(witness))


def _cut(
    lint: LintContext, question: Question, rules: Sequence[Rule], earlier: Effect
) -> tuple[Witness, Rule] | None:
    """Return the shortest path that one rule takes from an earlier one; neither pattern covers the other."""

    def within(wanted: Wanted) -> bool:
        (own,), (other,) = wanted.every[:2]
        return lint.within(own, other) or lint.within(other, own)

    def ways(change: Change | None) -> Iterable[Wanted]:
        return _taken(lint, rules, question.at, earlier, change)

    answer = lint.nearest(question, lint.answers.changes(rules), ways, unless=within)
    found = answer.witness
    if found is None:
        return None
    if answer.by is not None:
        return found, lint.answers.rule(answer.by)
    hit, at = lint.hits(rules, found), question.at
    assert hit[-1] == at and rules[hit[-2]].effect is earlier, f"{found} is not taken by {rules[at]}"
    return found, lint.answers.name(question, answer, (question.place, hit[-2]))


def _taken(
    lint: LintContext, rules: Sequence[Rule], at: int, earlier: Effect, change: Change | None
) -> list[Wanted]:
    """Return the ways for one rule to decide where an earlier rule would decide without it, in order.

    Of a change, only the ways that it opens: those to a rule that was added before, those to all rules above
    one that was removed.
    """
    ask = lint.questions
    numbers = ask.numbered(rules).numbers
    own, none = numbers[at], ask.is_last(rules, at).none
    region, first, end = ANYTHING, 0, at
    if change is not None:
        region = ask.inside(change.pattern)
        if change.effect is not None:
            first = change.at
        if change.at < at:
            end = change.end if change.effect is not None else change.at
    near = ask.automaton.near(own)
    ask.automaton.budget.spend(1 + at // 8)
    ways = []
    for place in range(at - 1, first - 1, -1):
        other = numbers[place]
        if place < end and near >> other & 1 and not none >> other & 1 and rules[place].effect is earlier:
            ways.append(Wanted(((own,), (other,)), none) & region)
        none |= 1 << other
    return ways[::-1]


def allows_that_cut(lint: LintContext) -> Iterator[Finding]:
    """Yield a finding for each allow that opens part of an earlier deny in its map."""
    return _cuts(lint, Effect.ALLOW, Effect.DENY, "allow-cuts-deny")


def denies_that_cut(lint: LintContext) -> Iterator[Finding]:
    """Yield a finding for each deny that closes part of an earlier allow in its map."""
    return _cuts(lint, Effect.DENY, Effect.ALLOW, "deny-cuts-allow")


def kinds_overridden(lint: LintContext) -> Iterator[Finding]:
    """Yield rules for a kind of writing that a deny of `write` stands against, on a part of their paths."""
    for owner, key, rules in lint.maps():
        for at, rule in enumerate(rules):
            if key not in WRITE_KINDS or rule.effect is Effect.DENY or not lint.own(rule):
                continue
            for where, ladder, tier, place in lint.contexts(owner, key):
                action = where.ladders[ladder][tier][place + 1]
                last = lint.questions.is_last(rules, at)
                denied = lint.questions.last_in(action, only(Effect.DENY))
                found = lint.questions.automaton.find(each & last for each in denied)
                if found is not None:
                    denying = action[lint.hits(action, found)[-1]]
                    message = f"{rule_text(rule)} under {key} cannot loosen {line(denying)} under"
                    message += f" {denying.key}: {found}"
                    yield Finding("kind-key-overridden", message, rule.where, str(found))
                    break


def loosening(lint: LintContext) -> Iterator[Finding]:
    """Yield agents' rules that allow, or ask about, a path that the global rules deny."""
    for owner, key, rules in lint.maps():
        for at, rule in enumerate(rules):
            if owner is None or rule.effect is Effect.DENY or not lint.own(rule):
                continue
            found = _loosened(lint, owner, key, rules, at)
            if found:
                action, witness, denying = found
                message = f"{rule_text(rule)} under {key} loosens {line(denying)} for {owner}:"
                message += f" {action} {witness}"
                yield Finding("loosens-global", message, rule.where, str(witness))


def _loosened(
    lint: LintContext, owner: str, key: str, rules: Sequence[Rule], at: int
) -> tuple[str, Witness, Rule] | None:
    """Return an action, the shortest path on which a rule loosens a global deny, and that deny."""
    for where, ladder, tier, place in lint.contexts(owner, key):
        if ladder:
            continue
        regions = lint.opened(where)
        settling = functools.partial(lint.settling, where, 0, tier, place, at)
        ways = functools.partial(_loosening, lint, where, settling, regions)
        what = "loosens-global", where.agent, where.tool, where.action
        question = lint.question(what, (owner, key), rules, at)
        answer = lint.nearest(question, list(regions), ways)
        if answer.witness is None:
            continue
        if answer.by is not None:
            return where.action, answer.witness, lint.answers.rule(answer.by)
        assert judge(where, answer.witness)[0] is not Effect.DENY, f"{answer.witness} is denied anyway"
        by = _denying(lint, where, answer.witness)
        return where.action, answer.witness, lint.answers.name(question, answer, by)
    return None


def _denying(lint: LintContext, where: QueryContext, witness: Witness) -> tuple[Map, int]:
    """Return the map and the index of the last global rule that denies a path."""
    return next(
        ((None, listed[at].key), at)
        for listed in where.ladders[0][-1]
        for at in reversed(lint.hits(listed, witness))
        if listed[at].effect is Effect.DENY
    )


def _loosening(
    lint: LintContext,
    where: QueryContext,
    settling: Callable[[], Iterable[Wanted]],
    regions: Mapping[Change, Wanted],
    change: Change | None,
) -> Iterator[Wanted]:
    """Yield the ways for a rule to settle its tier chain where the global rules deny.

    Of a change, only the paths that the changed rule decides in its map.
    """
    ask, looser = lint.questions, up_to(Effect.ASK)
    # The engine may name a parent's rule: what counts is that no other rule denies the path.
    under = ask.floor_below(where.floor, Effect.ASK)
    under &= ANYTHING if change is None else regions[change]
    parents = where.ladders[1:]
    for wanted in ask.both((wanted & under for wanted in settling()), lint.denied(where.ladders[0][-1])):
        for parent in ask.chains(parents, [looser] * len(parents)):
            yield wanted & parent
