"""Serialization of policies: content to plain data (texts, numbers, lists, mappings), and back.

No name in the data is looked up and nothing in it is executed. Malformed data raises one of MISTAKES; the
caller decides whether the data can be trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ringfence.policy.errors import Where
from ringfence.policy.model import (
    RUN,
    Agent,
    Case,
    CommandLimits,
    Commands,
    Content,
    Detector,
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
from ringfence.policy.rule_list import Columns, RuleList
from ringfence.policy.upstreams.rows import PathArgument, Row

MISTAKES = (AttributeError, IndexError, KeyError, TypeError, ValueError)
_EFFECTS = tuple(Effect)
_FEW = frozenset(("until", "trial", "content", "mask", "set_name", "set_where"))


def to_plain(content: Content) -> dict[str, Any]:
    """Return the content of a policy as plain data."""
    tasks = content.tasks
    return {
        "mandatory": [_item_out(each) for each in content.mandatory],
        "rules": _map_out(content.rules),
        "limits": _limits_out(content.limits),
        "agents": [
            [each.name, _map_out(each.rules), _limits_out(each.limits), _list_out(each.run)]
            for each in content.agents.values()
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
        "unused_sets": [[name, _where_out(where)] for name, where in content.unused_sets],
        "run": _list_out(content.run),
        "run_floor": [_item_out(each) for each in content.run_floor],
        "commands": _commands_out(content.commands),
        "upstreams": {
            name: {tool: _row_out(row) for tool, row in table.items()}
            for name, table in content.upstreams.items()
        },
    }


def from_plain(data: Mapping[str, Any]) -> Content:
    """Return the content that `to_plain` serialized; raises one of MISTAKES for malformed data."""
    hard_links, mode, durable = data["settings"]
    return Content(
        mandatory=tuple(_item_in(*item) for item in data["mandatory"]),
        rules=_map_in(data["rules"], "global", None),
        limits=_limits_in(data["limits"]),
        agents={
            name: Agent(name, _map_in(rules, "agent", name), _limits_in(limits), _list_in(run, "agent", name))
            for name, rules, limits, run in data["agents"]
        },
        cases=tuple(
            Case(tool, path, _EFFECTS[want], directory, agent, to, files, size, note, _where_in(at), *rest)
            for tool, path, want, directory, agent, to, files, size, note, at, *rest in data["cases"]
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
        unused_sets=tuple((name, Where(*where)) for name, where in data["unused_sets"]),
        run=_list_in(data["run"], "global", None),
        run_floor=tuple(_item_in(*item) for item in data["run_floor"]),
        commands=_commands_in(data["commands"]),
        upstreams={
            name: {tool: _row_in(*row) for tool, row in table.items()}
            for name, table in data["upstreams"].items()
        },
    )


def _item_out(item: Mandatory) -> list[Any]:
    more = _more_out(item)
    lists = item.excepts, item.except_tools, item.except_agents
    return [int(item.effect), item.keys, _rules_out(item.rules), *lists, more]


def _item_in(effect: int, keys: list[str], rules: Any, *rest: Any) -> Mandatory:
    excepts, tools, agents, more = rest
    lists = tuple(excepts), tuple(tools), tuple(agents)
    return Mandatory(_EFFECTS[effect], tuple(keys), _rules_in(rules), *lists, **_more_in(more))


def _more_out(entry: Rule | Mandatory) -> dict[str, Any]:
    """Return the fields of an entry that few entries have, without those that it has not."""
    found = {name: value for name in _FEW if (value := getattr(entry, name, None))}
    if "content" in found:
        found["content"] = [[each.name, each.expression] for each in found["content"]]
    if "set_where" in found:
        found["set_where"] = _where_out(found["set_where"])
    return found


def _more_in(data: Mapping[str, Any]) -> dict[str, Any]:
    found = {name: data[name] for name in data.keys() & _FEW}
    if "content" in found:
        found["content"] = tuple(Detector(*each) for each in found["content"])
    if "set_where" in found:
        found["set_where"] = _where_in(found["set_where"])
    return found


def _list_out(rules: Sequence[Rule]) -> list[Any] | None:
    return _columns_out(rules) if rules else None


def _list_in(columns: Any, tier: Tier, agent: str | None) -> Sequence[Rule]:
    return () if columns is None else _rule_list(tier, agent, RUN, columns)


def _commands_out(commands: Commands | None) -> list[Any] | None:
    if commands is None:
        return None
    limits = commands.limits
    most = [limits.seconds, limits.output, limits.memory, limits.processes, limits.scratch]
    places = [[_where_out(each) for each in at] for at in (commands.discard_at, commands.through_at)]
    return [commands.require, commands.network, commands.discard, commands.through, most, *places]


def _commands_in(data: Any) -> Commands | None:
    if data is None:
        return None
    require, network, discard, through, most, *places = data
    at = [tuple(_where_in(each) for each in listed) for listed in places]
    return Commands(require, network, tuple(discard), tuple(through), CommandLimits(*most), *at)


def _row_out(row: Row) -> list[Any]:
    return [[[*_argument_out(each)] for each in row.arguments], row.calls]


def _argument_out(each: PathArgument) -> tuple[Any, ...]:
    return each.selector, each.actions, each.below, each.mirrors, each.default


def _row_in(arguments: list[Any], calls: bool) -> Row:
    return Row(
        tuple(PathArgument(selector, tuple(actions), *rest) for selector, actions, *rest in arguments), calls
    )


def _case_out(case: Case) -> list[Any]:
    fields = [
        case.tool,
        case.path,
        int(case.want),
        case.directory,
        case.agent,
        case.to,
        case.files,
        case.bytes,
    ]
    return [*fields, case.note, _where_out(case.where), case.parents, case.command, case.exists]


def _where_out(where: Where | None) -> list[Any] | None:
    return None if where is None else [where.file, where.line, where.column]


def _where_in(where: list[Any] | None) -> Where | None:
    return None if where is None else Where(*where)


def _map_out(rules: RuleMap) -> dict[str, Any]:
    return {key: _columns_out(listed) for key, listed in rules.items()}


def _columns_out(listed: Sequence[Rule]) -> list[Any]:
    if not isinstance(listed, RuleList):
        raise TypeError("rules that were not loaded")
    *before, files, lines, columns = listed.columns
    names = list(dict.fromkeys(files))
    more = [[at, _more_out(listed[at])] for at in sorted(listed.more)]
    return [*before, names, [names.index(file) for file in files], lines, columns, more]


def _map_in(rules: Mapping[str, Any], tier: Tier, agent: str | None) -> RuleMap:
    return {key: _rule_list(tier, agent, key, columns) for key, columns in rules.items()}


def _rule_list(tier: Tier, agent: str | None, key: str, columns: Sequence[Any]) -> RuleList:
    *columns, more = columns
    if not more:
        return RuleList(tier, agent, key, _columns_in(*columns))
    return RuleList(tier, agent, key, _columns_in(*columns), {at: _more_in(each) for at, each in more})


def _columns_in(  # noqa: PLR0913  one parameter per column of the data
    patterns: list[str],
    effects: list[int],
    reasons: list[str | None],
    names: list[str],
    files: list[int],
    lines: list[int],
    columns: list[int],
) -> Columns:
    return (
        patterns, [_EFFECTS[each] for each in effects], reasons,
        [names[each] for each in files], lines, columns,
    )  # fmt: skip


def _rules_out(rules: Iterable[Rule]) -> list[Any]:
    return [
        [one.tier, one.agent, one.key, one.pattern, int(one.effect), one.reason, *_rest(one)] for one in rules
    ]


def _rest(rule: Rule) -> tuple[Any, ...]:
    return _where_out(rule.where), rule.paths, rule.excepts, _more_out(rule)


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
            **_more_in(more),
        )
        for tier, agent, key, pattern, effect, reason, where, paths, excepts, more in rules
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
