"""Serialization of policies: content to plain data (texts, numbers, lists, mappings), and back.

No name in the data is looked up and nothing in it is executed. Malformed data raises one of MISTAKES; the
caller decides whether the data can be trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ringfence.policy.errors import Where
from ringfence.policy.model import (
    Agent,
    Case,
    Content,
    Effect,
    Invariant,
    Limit,
    LimitMap,
    Mandatory,
    Retention,
    Rule,
    RuleMap,
    Tasks,
    Tier,
)
from ringfence.policy.rule_list import RuleList, Said

MISTAKES = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_EFFECTS = tuple(Effect)


def to_plain(content: Content) -> dict[str, Any]:
    """Return the content of a policy as plain data."""
    tasks = content.tasks
    return {
        "mandatory": [
            [int(each.effect), each.keys, _rules_out(each.rules), each.excepts] for each in content.mandatory
        ],
        "rules": _map_out(content.rules),
        "limits": _limits_out(content.limits),
        "agents": [
            [each.name, _map_out(each.rules), _limits_out(each.limits)] for each in content.agents.values()
        ],
        "cases": [_case_out(each) for each in content.cases],
        "invariants": [
            [
                each.kind,
                each.agent,
                each.action,
                each.path,
                int(each.verdict),
                each.reason,
                _where_out(each.where),
            ]
            for each in content.invariants
        ],
        "settings": [content.hard_links, content.mode, content.durable],
        "retention": [content.retention.days, content.retention.max_bytes, content.retention.keep],
        "tasks": tasks and [tasks.path, tasks.max_tasks],
    }


def from_plain(data: Mapping[str, Any]) -> Content:
    """Return the content that `to_plain` serialized; raises one of MISTAKES for malformed data."""
    hard_links, mode, durable = data["settings"]
    return Content(
        mandatory=tuple(
            Mandatory(_EFFECTS[effect], tuple(keys), _rules_in(rules), tuple(excepts))
            for effect, keys, rules, excepts in data["mandatory"]
        ),
        rules=_map_in(data["rules"], "global", None),
        limits=_limits_in(data["limits"]),
        agents={
            name: Agent(name, _map_in(rules, "agent", name), _limits_in(limits))
            for name, rules, limits in data["agents"]
        },
        cases=tuple(
            Case(tool, path, _EFFECTS[want], directory, agent, to, files, size, note, _where_in(at), parents)
            for tool, path, want, directory, agent, to, files, size, note, at, parents in data["cases"]
        ),
        invariants=tuple(
            Invariant(kind, agent, action, path, _EFFECTS[verdict], reason, _where_in(where))
            for kind, agent, action, path, verdict, reason, where in data["invariants"]
        ),
        hard_links=hard_links,
        mode=mode,
        durable=durable,
        retention=Retention(*data["retention"]),
        tasks=data["tasks"] and Tasks(*data["tasks"]),
    )


def _case_out(case: Case) -> list[Any]:
    said = [case.tool, case.path, int(case.want), case.directory, case.agent, case.to, case.files, case.bytes]
    return [*said, case.note, _where_out(case.where), case.parents]


def _where_out(where: Where | None) -> list[Any] | None:
    return None if where is None else [where.file, where.line, where.column]


def _where_in(where: list[Any] | None) -> Where | None:
    return None if where is None else Where(*where)


def _map_out(rules: RuleMap) -> dict[str, Any]:
    return {key: _columns_out(listed) for key, listed in rules.items()}


def _columns_out(listed: Sequence[Rule]) -> list[Any]:
    if not isinstance(listed, RuleList):
        raise TypeError("rules that were not loaded")
    *before, files, lines, columns = listed.said
    names = list(dict.fromkeys(files))
    return [*before, names, [names.index(file) for file in files], lines, columns]


def _map_in(rules: Mapping[str, Any], tier: Tier, agent: str | None) -> RuleMap:
    return {key: RuleList(tier, agent, key, _columns_in(*said)) for key, said in rules.items()}


def _columns_in(  # noqa: PLR0913  one parameter per column of the data
    patterns: list[str],
    effects: list[int],
    reasons: list[str | None],
    names: list[str],
    files: list[int],
    lines: list[int],
    columns: list[int],
) -> Said:
    return (
        patterns, [_EFFECTS[each] for each in effects], reasons,
        [names[each] for each in files], lines, columns,
    )  # fmt: skip


def _rules_out(rules: Iterable[Rule]) -> list[Any]:
    return [
        [one.tier, one.agent, one.key, one.pattern, int(one.effect), one.reason, *_rest(one)] for one in rules
    ]


def _rest(rule: Rule) -> tuple[Any, ...]:
    return _where_out(rule.where), rule.paths, rule.excepts


def _rules_in(rules: Iterable[Any]) -> tuple[Rule, ...]:
    return tuple(
        Rule(
            tier,
            agent,
            key,
            pattern,
            _EFFECTS[effect],
            reason,
            _where_in(where),
            tuple(paths),
            tuple(excepts),
        )
        for tier, agent, key, pattern, effect, reason, where, paths, excepts in rules
    )


def _limits_out(limits: LimitMap) -> dict[str, Any]:
    return {
        key: [
            [
                each.key,
                each.agent,
                each.max_files,
                each.max_bytes,
                each.per,
                int(each.over),
                _where_out(each.where),
            ]
            for each in listed
        ]
        for key, listed in limits.items()
    }


def _limits_in(limits: Mapping[str, Any]) -> LimitMap:
    return {
        key: tuple(
            Limit(own, agent, most_files, most_bytes, per, _EFFECTS[over], _where_in(where))
            for own, agent, most_files, most_bytes, per, over, where in listed
        )
        for key, listed in limits.items()
    }
