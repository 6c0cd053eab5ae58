"""Later rules that override part of earlier rules, and agents' rules that loosen a global deny."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringfence.policy.analysis.pattern_queries import Wanted, Witness
from ringfence.policy.analysis.verdict_queries import QueryContext, judge, only, up_to
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext, line, rule_text
from ringfence.policy.model import WRITE_KINDS, Effect, Rule


def _cuts(lint: LintContext, later: Effect, earlier: Effect, code: str) -> Iterator[Finding]:
    """Yield rules that decide for some of the paths for which an earlier rule of the same map decided."""
    for _, key, rules in lint.maps():
        for at, rule in enumerate(rules):
            if rule.effect is later and lint.own(rule) and (found := _cut(lint, rules, at, earlier)):
                witness, other = found
                verb = "opens" if later is Effect.ALLOW else "closes"
                message = f"{rule_text(rule)} under {key} {verb} a part of {line(other)}: {witness}"
                yield Finding(code, message, rule.where, str(witness))


def _cut(lint: LintContext, rules: Sequence[Rule], at: int, earlier: Effect) -> tuple[Witness, Rule] | None:
    """Return the shortest path that one rule takes from an earlier one; neither pattern covers the other."""

    def within(wanted: Wanted) -> bool:
        (own,), (other,) = wanted.every
        return lint.within(own, other) or lint.within(other, own)

    found = lint.questions.automaton.find(_taken(lint, rules, at, earlier), unless=within)
    if found is None:
        return None
    hit = lint.hits(rules, found)
    assert hit[-1] == at and rules[hit[-2]].effect is earlier, f"{found} is not taken by {rules[at]}"
    return found, rules[hit[-2]]


def _taken(lint: LintContext, rules: Sequence[Rule], at: int, earlier: Effect) -> list[Wanted]:
    """Return the ways for one rule to decide where an earlier rule would decide without it, in order."""
    ask = lint.questions
    numbers = ask.numbered(rules).numbers
    own, none = numbers[at], ask.is_last(rules, at).none
    near = ask.automaton.near(own)
    ask.automaton.budget.spend(1 + at // 8)
    ways = []
    for place in range(at - 1, -1, -1):
        other = numbers[place]
        if near >> other & 1 and not none >> other & 1 and rules[place].effect is earlier:
            ways.append(Wanted(((own,), (other,)), none))
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
            found = _loosened(lint, owner, key, at)
            if found:
                where, witness = found
                assert judge(where, witness)[0] is not Effect.DENY, (
                    f"{witness} is denied whatever {rule} says"
                )
                everybody = where.ladders[0][-1]
                denying = next(
                    listed[place]
                    for listed in everybody
                    for place in reversed(lint.hits(listed, witness))
                    if listed[place].effect is Effect.DENY
                )
                message = f"{rule_text(rule)} under {key} loosens {line(denying)} for {owner}:"
                message += f" {where.action} {witness}"
                yield Finding("loosens-global", message, rule.where, str(witness))


def _loosened(lint: LintContext, owner: str, key: str, at: int) -> tuple[QueryContext, Witness] | None:
    for where, ladder, tier, place in lint.contexts(owner, key):
        if ladder:
            continue
        ask, looser = lint.questions, up_to(Effect.ASK)
        # The engine may name a parent's rule: what counts is that no other rule denies the path.
        under = ask.floor_below(where.floor, Effect.ASK)
        settling = (wanted & under for wanted in lint.settling(where, ladder, tier, place, at))
        parents = where.ladders[1:]
        found = ask.find(
            wanted & parent
            for wanted in ask.both(settling, lint.denied(where.ladders[0][-1]))
            for parent in ask.chains(parents, [looser] * len(parents))
        )
        if found:
            return where, found
    return None
