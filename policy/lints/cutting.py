"""Later rules that cut into earlier ones, and agents' rules that loosen what is denied to all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policy.automaton import Witness
from policy.findings import Finding
from policy.lints.look import Look, line, said
from policy.machine import matches
from policy.model import Effect, Rule
from policy.questions import Context, judge, only, up_to


def _cuts(look: Look, later: Effect, earlier: Effect, code: str) -> Iterator[Finding]:
    """Rules that decide on a part of what an earlier rule of their map decided."""
    for _, key, rules in look.maps():
        for at, rule in enumerate(rules):
            if rule.effect is later and look.own(rule) and (found := _cut(look, rules, at, earlier)):
                witness, other = found
                verb = "opens" if later is Effect.ALLOW else "closes"
                message = f"{said(rule)} under {key} {verb} a part of {line(other)}: {witness}"
                yield Finding(code, message, rule.where, str(witness))


def _cut(look: Look, rules: Sequence[Rule], at: int, earlier: Effect) -> tuple[Witness, Rule] | None:
    """The shortest path that one rule takes from an earlier one, where neither is a part of the other."""
    ask, rule = look.questions, rules[at]
    region = ask.is_last(rules, at)
    crossed = [
        number
        for number, other in enumerate(rules[:at])
        if other.effect is earlier
        and not look.within(other.pattern, rule.pattern)
        and not look.within(rule.pattern, other.pattern)
    ]
    found = ask.find(region & ask.is_last(rules[:at], number) for number in crossed)
    if found is None:
        return None
    hit = [other for other in rules if matches(other.pattern, found.path, found.directory)]
    assert hit[-1] is rule and hit[-2].effect is earlier, f"{found} is not taken by {rule}"
    return found, hit[-2]


def allows_that_cut(look: Look) -> Iterator[Finding]:
    return _cuts(look, Effect.ALLOW, Effect.DENY, "allow-cuts-deny")


def denies_that_cut(look: Look) -> Iterator[Finding]:
    return _cuts(look, Effect.DENY, Effect.ALLOW, "deny-cuts-allow")


def loosening(look: Look) -> Iterator[Finding]:
    """Agents' rules that let through what the global rules deny."""
    for owner, key, rules in look.maps():
        for at, rule in enumerate(rules):
            if owner is None or rule.effect is Effect.DENY or not look.own(rule):
                continue
            found = _loosened(look, owner, key, at)
            if found:
                where, witness = found
                assert judge(where, witness)[0] is not Effect.DENY, (
                    f"{witness} is denied whatever {rule} says"
                )
                everybody = where.ladders[0][-1]
                denying = next(
                    each
                    for listed in everybody
                    for each in reversed(listed)
                    if each.effect is Effect.DENY and matches(each.pattern, witness.path, witness.directory)
                )
                message = (
                    f"{said(rule)} under {key} loosens {line(denying)} for {owner}: {where.action} {witness}"
                )
                yield Finding("loosens-global", message, rule.where, str(witness))


def _loosened(look: Look, owner: str, key: str, at: int) -> tuple[Context, Witness] | None:
    for where, ladder, tier, place in look.contexts(owner, key):
        if ladder:
            continue
        ask, looser = look.questions, up_to(Effect.ASK)
        denied = list(ask.tier(where.ladders[0][-1], only(Effect.DENY)))
        # A parent's rule may be what the engine names: what counts is that nobody else denies it.
        under = ask.floor_below(where.floor, Effect.ASK)
        parents = where.ladders[1:]
        ways = (
            way & under & each & parent
            for way in look.settling(where, ladder, tier, place, at)
            for each in denied
            for parent in ask._all(parents, [looser] * len(parents))
        )
        found = ask.find(ways)
        if found:
            return where, found
    return None
