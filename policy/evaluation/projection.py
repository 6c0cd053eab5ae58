"""Projections of a policy's content: which entries count at a time, on trial, or for what content has in it.

The engine judges only content whose entries always count. Entries that end (`until`), are on trial (`trial`)
or depend on content (`content`) are left out of it or taken into it here, and are then like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from ringfence.policy.model import Agent, Content, Detector, Mandatory, Rule, RuleMap
from ringfence.policy.rule_list import RuleList
from ringfence.policy.value_classes import replace

Entry = Rule | Mandatory
Keep = Callable[[Entry], bool]


def special_entries(content: Content) -> Iterator[Entry]:
    """Yield each rule and mandatory item that ends, is on trial or depends on content."""
    for listed in _lists(content):
        if isinstance(listed, RuleList):
            yield from (listed[at] for at in sorted(listed.more) if _is_special(listed[at]))
        else:
            yield from (rule for rule in listed if _is_special(rule))
    for item in (*content.mandatory, *content.run_floor):
        if _is_special(item):
            yield item


def plain(content: Content) -> Content:
    """Return what counts whatever the content is: without entries on trial or that depend on content."""
    return _projected(content, lambda entry: not entry.trial and not entry.content, {})


def at(content: Content, time: float) -> Content:
    """Return the content without the entries that have ended at a time, in seconds since 1970."""
    return _projected(content, lambda entry: entry.until is None or entry.until > time, {})


def with_trials(content: Content) -> Content:
    """Return the content with entries on trial taken as real."""
    return _projected(content, lambda _entry: True, {"trial": False})


def where_content(content: Content, detector: Detector) -> Content:
    """Return what counts where a detector finds something: its entries are taken as real, no others are."""

    def counts(entry: Entry) -> bool:
        return not entry.trial and (not entry.content or detector in entry.content)

    return _projected(content, counts, {"content": ()})


def with_only(content: Content, entries: Collection[Entry]) -> Content:
    """Return the content with these of its entries on trial or on content counting, and no others."""
    chosen = {*entries, *(rule for each in entries if isinstance(each, Mandatory) for rule in each.rules)}

    def counts(entry: Entry) -> bool:
        return entry in chosen or not (entry.trial or entry.content)

    return _projected(content, counts, {"trial": False, "content": ()})


def _is_special(entry: Entry) -> bool:
    return entry.until is not None or entry.trial or bool(entry.content)


def _lists(content: Content) -> Iterator[Sequence[Rule]]:
    owners: tuple[Content | Agent, ...] = (content, *content.agents.values())
    for owner in owners:
        yield from owner.rules.values()
        yield owner.run


def _projected(content: Content, keep: Keep, real: Mapping[str, Any]) -> Content:
    def rules(listed: Sequence[Rule]) -> Sequence[Rule]:
        if isinstance(listed, RuleList):
            return listed.projected(keep, real)
        return tuple(replace(rule, **real) for rule in listed if keep(rule))

    def maps(owner: RuleMap) -> RuleMap:
        return {key: found for key, listed in owner.items() if (found := rules(listed))}

    def items(every: tuple[Mandatory, ...]) -> tuple[Mandatory, ...]:
        return tuple(
            replace(item, rules=tuple(rules(item.rules)), **real) if _is_special(item) else item
            for item in every
            if keep(item)
        )

    return replace(
        content,
        mandatory=items(content.mandatory),
        run_floor=items(content.run_floor),
        rules=maps(content.rules),
        run=rules(content.run),
        agents={
            name: replace(agent, rules=maps(agent.rules), run=rules(agent.run))
            for name, agent in content.agents.items()
        },
    )
