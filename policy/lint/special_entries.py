"""Findings about entries that end, are on trial or depend on content, and about sets.

Whether such an entry would change a verdict is compared over every path, agent and action.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ringfence.policy.analysis.epochs import end
from ringfence.policy.evaluation.engine import Engine
from ringfence.policy.evaluation.projection import Entry, special_entries, with_only
from ringfence.policy.lint.codes import Finding
from ringfence.policy.lint.context import LintContext, rule_text
from ringfence.policy.model import Mandatory, Rule


def ended(policy: Engine, files: Collection[str] | None, now: float) -> Iterator[Finding]:
    """Yield the entries that have ended at a time, in seconds since 1970."""
    for entry in special_entries(policy.whole):
        if entry.until is not None and entry.until <= now:
            for rule in own_rules(entry, files)[:1]:
                message = f"{name_of(entry)} ended {end(entry.until)} and counts no longer"
                yield Finding("until-ended", message, rule.where)


def unused_sets(lint: LintContext) -> Iterator[Finding]:
    """Yield the sets that no entry uses."""
    for name, where in lint.policy.whole.unused_sets:
        if lint.files is None or where.file in lint.files:
            yield Finding("set-unused", f"nothing uses the set {name}", where)


def without_effect(lint: LintContext) -> Iterator[Finding]:
    """Yield entries on trial, and those that depend on content, that would change no verdict."""
    policy = lint.policy
    entries = [entry for entry in special_entries(policy.whole) if entry.trial or entry.content]
    trials = [entry for entry in entries if entry.trial]
    idle = bool(trials) and not _changes(policy, lint, [], trials)
    for entry in entries:
        rules = own_rules(entry, lint.files)
        if not rules:
            continue
        others = [each for each in entries if each is not entry and _together(each, entry)]
        if not (idle and entry.trial) and (
            _changes(policy, lint, [], [entry])
            or (others and _changes(policy, lint, others, [*others, entry]))
        ):
            continue
        if entry.trial:
            message = f"{name_of(entry)} is on trial, and would change no verdict"
            yield Finding("trial-without-effect", message, rules[0].where)
        else:
            found = " or ".join(map(str, entry.content))
            message = f"{name_of(entry)} changes no verdict where the content has {found}"
            yield Finding("content-without-effect", message, rules[0].where)


def _together(one: Entry, other: Entry) -> bool:
    """Whether two entries can count at once: both are on trial, or one detector makes both count."""
    if one.trial or other.trial:
        return one.trial and other.trial
    return not set(one.content).isdisjoint(other.content)


def _changes(policy: Engine, lint: LintContext, some: Sequence[Entry], more: Sequence[Entry]) -> bool:
    """Whether verdicts differ with some special entries and with more of them.

    What is found in content only makes a verdict stricter, so the policy's own verdict stays the least.
    """
    from ringfence.policy.analysis.diff import differs  # few policies have such entries

    base = [] if more[-1].trial else [policy]
    tools = dict(policy.tools)
    old, new = (
        [*base, Engine(with_only(policy.whole, each), revision=policy.revision, tools=tools)]
        for each in (some, more)
    )
    return differs(old, new, lint.budget, fold=lint.fold)


def own_rules(entry: Entry, files: Collection[str] | None) -> list[Rule]:
    """Return the rules of an entry that are written in one of these files; None: in any."""
    rules = entry.rules if isinstance(entry, Mandatory) else (entry,)
    return [each for each in rules if files is None or (each.where and each.where.file in files)]


def name_of(entry: Entry) -> str:
    """Return an entry as it is written in a policy."""
    if not isinstance(entry, Mandatory):
        return rule_text(entry)
    more = ", …" if len(entry.rules) > 1 else ""
    return f'mandatory {entry.effect} of "{entry.rules[0].pattern}"{more}'
