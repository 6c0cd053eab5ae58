"""Findings about the rules on commands: those that decide nothing, and those that override one another.

Exact, as for paths: every class of commands that the patterns tell apart is examined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringfence.policy.analysis.command_classes import CommandClass
from ringfence.policy.analysis.command_queries import CommandQueries, chain, lists
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext, line, listed, rule_text
from ringfence.policy.model import RUN, Effect, Rule


def command_rules(lint: LintContext) -> Iterator[Finding]:
    """Yield findings about rules on commands, and about exceptions of mandatory items on commands."""
    content = lint.policy.content
    if not content.run_floor and not any(rules for _, rules in lists(content)):
        return
    ask = CommandQueries([lint.policy], (), lint.budget)
    for owner, rules in lists(content):
        decided: dict[int, list[CommandClass]] = {}
        for each in ask.classes:
            at = ask.last(rules, each)
            if at is not None:
                decided.setdefault(at, []).append(each)
        for at, rule in enumerate(rules):
            if lint.own(rule):
                yield from _of_rule(lint, ask, owner, rules, at, decided.get(at, []))
    yield from _excepts(lint, ask)


def _of_rule(  # noqa: PLR0913  a rule by its list and index, and the commands that it decides there
    lint: LintContext,
    ask: CommandQueries,
    owner: str | None,
    rules: Sequence[Rule],
    at: int,
    own: list[CommandClass],
) -> Iterator[Finding]:
    rule = rules[at]
    if not own:
        matched = [each for each in ask.classes if ask.fits(rule.pattern, each)]
        taken = {ask.last(rules, each) for each in matched}
        by = [later for n, later in enumerate(rules) if n in taken]
        verb = "covers" if len(by) == 1 else "cover"
        message = f"{rule_text(rule)} under {RUN} can never decide: {listed(by)} {verb} it"
        yield Finding("dead-rule", message, rule.where)
        return
    if not _matters(lint, ask, owner, rule, own):
        if _decides(lint, ask, owner, rule, own):
            yield Finding("idle-rule", f"{rule_text(rule)} under {RUN} changes no verdict", rule.where)
        else:
            before = "the mandatory rules, agents' rules or stricter parents"
            message = f"{rule_text(rule)} under {RUN} can never decide: {before} settle all that it matches"
            yield Finding("dead-rule", message, rule.where)
        return
    yield from _cuts(ask, rules, at, own)
    if owner is not None and rule.effect is not Effect.DENY:
        yield from _loosens(lint, ask, owner, rule, own)


def _names(lint: LintContext, owner: str | None) -> list[str]:
    """Return the kinds of agents that a list of rules applies to."""
    return [
        name
        for name in lint.names
        if owner is None or any(entry and entry.name == owner for entry in chain(lint.policy, name))
    ]


def _decides(
    lint: LintContext, ask: CommandQueries, owner: str | None, rule: Rule, own: list[CommandClass]
) -> bool:
    return any(ask.judge(lint.policy, name, each)[1] is rule for name in _names(lint, owner) for each in own)


def _matters(
    lint: LintContext, ask: CommandQueries, owner: str | None, rule: Rule, own: list[CommandClass]
) -> bool:
    """Whether some command has another verdict without the rule."""
    return any(
        ask.judge(lint.policy, name, each)[0] is not ask.judge(lint.policy, name, each, without=rule)[0]
        for name in _names(lint, owner)
        for each in own
    )


def _cuts(ask: CommandQueries, rules: Sequence[Rule], at: int, own: list[CommandClass]) -> Iterator[Finding]:
    """Yield a part that the rule takes from an earlier, opposite one; neither covers the other."""
    rule = rules[at]
    kinds = {
        Effect.ALLOW: ("allow-cuts-deny", "opens", Effect.DENY),
        Effect.DENY: ("deny-cuts-allow", "closes", Effect.ALLOW),
    }
    if rule.effect not in kinds:
        return
    code, verb, earlier = kinds[rule.effect]
    for each in own:
        before = ask.last(rules[:at], each)
        if before is None or rules[before].effect is not earlier:
            continue
        other = rules[before]
        if not _covers(ask, rule.pattern, other.pattern) and not _covers(ask, other.pattern, rule.pattern):
            message = f"{rule_text(rule)} under {RUN} {verb} a part of {line(other)}: {each.line}"
            yield Finding(code, message, rule.where, each.line)
            return


def _covers(ask: CommandQueries, wide: str, narrow: str) -> bool:
    return all(ask.fits(wide, each) for each in ask.classes if ask.fits(narrow, each))


def _loosens(
    lint: LintContext, ask: CommandQueries, owner: str, rule: Rule, own: list[CommandClass]
) -> Iterator[Finding]:
    everybody = lint.policy.content.run
    for each in own:
        at = ask.last(everybody, each)
        if at is None or everybody[at].effect is not Effect.DENY:
            continue
        for name in _names(lint, owner):
            nearest = chain(lint.policy, name)[0]
            loose = ask.judge(lint.policy, name, each)[0] is not Effect.DENY
            if loose and nearest and nearest.name == owner:
                message = (
                    f"{rule_text(rule)} under {RUN} loosens {line(everybody[at])} for {owner}: {each.line}"
                )
                yield Finding("loosens-global", message, rule.where, each.line)
                return


def _excepts(lint: LintContext, ask: CommandQueries) -> Iterator[Finding]:
    for item in lint.policy.content.run_floor:
        if not item.excepts or not lint.own(item.rules[0]):
            continue
        for rule in item.rules:
            matched = [each for each in ask.classes if ask.fits(rule.pattern, each)]
            if all(any(ask.fits(text, each) for text in item.excepts) for each in matched):
                message = f'the exceptions leave nothing of "{rule.pattern}"'
                yield Finding("except-covers-all", message, rule.where)
        for text in item.excepts:
            left_out = [each for each in ask.classes if ask.fits(text, each)]
            if not any(ask.fits(rule.pattern, each) for rule in item.rules for each in left_out):
                message = f'the exception "{text}" meets none of the commands'
                yield Finding("except-unused", message, item.rules[0].where)
