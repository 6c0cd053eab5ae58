"""Sections of a policy file: one function for each key.

A table from key to function. Reads no other file; `extends` is only recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ringfence.policy.loading.command_section import check_item, read_commands
from ringfence.policy.loading.entry_fields import ENTRY_FIELDS, entry_fields, except_agents
from ringfence.policy.loading.pattern_sets import SET_NAME, PatternSet, SetPattern
from ringfence.policy.loading.rule_maps import read_rules, set_fields
from ringfence.policy.loading.statements import read_case, read_invariant
from ringfence.policy.loading.values import UNLIMITED, Reader, Tiered
from ringfence.policy.loading.yaml_tree import Node
from ringfence.policy.model import (
    EFFECTS,
    MOST_TASKS,
    RUN,
    Case,
    Invariant,
    Mandatory,
    Rule,
    Tasks,
)
from ringfence.policy.patterns.syntax import PatternError, parse_agent


@dataclass(slots=True)
class Read:
    """The content of one file."""

    sets: dict[str, PatternSet] = field(default_factory=dict)
    mandatory: tuple[Mandatory, ...] = ()
    run_floor: tuple[Mandatory, ...] = ()
    commands: dict[str, Any] = field(default_factory=dict)  # only the fields that the file states
    everybody: Tiered = field(default_factory=Tiered)
    agents: dict[str, Tiered] = field(default_factory=dict)
    cases: tuple[Case, ...] = ()
    invariants: tuple[Invariant, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    retention: dict[str, int | None] = field(default_factory=dict)  # only the fields that the file states


def read_policy(reader: Reader, root: Node) -> Read:
    """Read the tree of a policy file; problems go into the reader's report."""
    out = Read()
    found = reader.mapping(root, KEYS, "a policy")
    if "version" not in found and root.kind == "mapping":
        hint = "begin with: version: 1"
        reader.report.add("key_missing", "the key 'version' is missing", root, hint, length=1)
    # Sets and servers first: every other section may name them.
    for key in sorted(found, key=lambda name: name not in ("sets", "upstreams")):
        KEYS[key](reader, found[key], out)
    return out


def read_extends(reader: Reader, root: Node) -> list[Node]:
    """Return the nodes that name what a policy file extends."""
    listed = (node for key, node in root.pairs if key.text == "extends") if root.kind == "mapping" else ()
    return [
        item
        for node in listed
        for item in reader.several(node, "what is extended")
        if reader.text(item, "what is extended") is not None
    ]


def read_cases(reader: Reader, root: Node) -> tuple[Case, ...]:
    """Read the tree of a file that contains only cases; problems go into the reader's report."""
    out = Read()
    found = reader.mapping(root, ("version", "cases"), "a file of cases")
    for key in ("version", "cases"):
        if key in found:
            KEYS[key](reader, found[key], out)
        elif root.kind == "mapping":
            reader.report.add("key_missing", f"the key '{key}' is missing", root, length=1)
    return out.cases


# One function for each key of a policy file.


def _version(reader: Reader, node: Node, _out: Read) -> None:
    if node.kind != "scalar" or not node.plain or node.text != "1":
        reader.report.add("version_unknown", f"the version is 1, not {node.describe()}", node)


def _extends(_reader: Reader, _node: Node, _out: Read) -> None:
    """Read before all else, by `read_extends`."""


def _sets(reader: Reader, node: Node, out: Read) -> None:
    """Read the sets in their order: one may use those before it, and those of what the file extends."""
    if node.kind != "mapping":
        reader.report.add("value_invalid", f"sets are a mapping, not {node.describe()}", node)
        return
    reader.sets = known = dict(reader.sets or {})
    for key, value in node.pairs:
        if not key.is_text or not SET_NAME.match(key.text):
            hint = "letters, digits, - and _, beginning with a letter"
            reader.report.add("value_invalid", f"{key.describe()} is not the name of a set", key, hint)
            continue
        found = tuple(
            each or SetPattern(text, reader.report.where(item))
            for item in reader.several(value, "a set")
            for text, each in reader.patterns(item)
        )
        out.sets[key.text] = known[key.text] = PatternSet(reader.report.where(key), found)


def _mandatory(reader: Reader, node: Node, out: Read) -> None:
    items = (_item(reader, item) for item in reader.listed(node, "mandatory"))
    read = [item for item in items if item]
    out.mandatory = tuple(item for item in read if item.keys != (RUN,))
    out.run_floor = tuple(item for item in read if item.keys == (RUN,))


def _item(reader: Reader, node: Node) -> Mandatory | None:
    known = (
        "deny", "ask", "paths", "commands", "except", "except_tools", "except_agents", "reason",
        *ENTRY_FIELDS,
    )  # fmt: skip
    found = reader.mapping(node, known, "a mandatory item")
    if node.kind != "mapping":
        return None
    effects = [name for name in ("deny", "ask") if name in found]
    if len(effects) != 1:
        message = "a mandatory item has one of 'deny' and 'ask'"
        reader.report.add("key_missing", message, node, "add deny: [read, write, delete]", length=1)
    keys: list[str] = []
    for name in effects:
        keys += [key for item in reader.several(found[name], name) if (key := reader.rule_key(item))]
    words = check_item(reader, node, found, keys)
    if "paths" not in found and not words:
        reader.report.add("key_missing", "the key 'paths' is missing", node, "'*' is every path", length=1)
    reason = reader.text(found["reason"], "a reason") if "reason" in found else None
    what = "commands" if words else "paths"
    paths = _patterns(reader, found.get(what), what, words=words)
    excepts = tuple(text for text, *_ in _patterns(reader, found.get("except"), "except", words=words))
    tools = _except_tools(reader, found.get("except_tools"))
    agents = except_agents(reader, found.get("except_agents"))
    fields = entry_fields(reader, found, keys, EFFECTS[effects[0]] if effects else None)
    if words and keys != [RUN]:
        return None
    if len(effects) != 1 or not paths or not keys:
        return None
    effect, every = EFFECTS[effects[0]], tuple(text for text, *_ in paths)
    rules = tuple(
        Rule(
            "mandatory",
            None,
            ", ".join(keys),
            text,
            effect,
            reason,
            reader.report.where(place),
            every,
            excepts,
            **fields,
            **(origin or {}),
        )
        for text, place, origin in paths
    )
    return Mandatory(effect, tuple(keys), rules, excepts, tools, agents, **fields)


def _except_tools(reader: Reader, node: Node | None) -> tuple[str, ...]:
    """Read the names of tools that a mandatory item leaves out."""
    if node is None:
        return ()
    found = [reader.tool(item) for item in reader.several(node, "except_tools")]
    return tuple(name for name in found if name)


def _patterns(
    reader: Reader, node: Node | None, what: str, *, words: bool = False
) -> list[tuple[str, Node, dict[str, Any] | None]]:
    """Return the patterns of a list, each with its node and what it has from a set."""
    if node is None:
        return []
    items = reader.several(node, what)
    if words:
        found = ((reader.word_pattern(item), item) for item in items)
        return [(text, item, None) for text, item in found if text is not None]
    return [(text, item, set_fields(item, each)) for item in items for text, each in reader.patterns(item)]


def _rules(reader: Reader, node: Node, out: Read) -> None:
    out.everybody.rules = read_rules(reader, node, "global", None)


def _limits(reader: Reader, node: Node, out: Read) -> None:
    out.everybody.limits = reader.limits(node)


def _agents(reader: Reader, node: Node, out: Read) -> None:
    if node.kind != "mapping":
        reader.report.add("value_invalid", f"agents are a mapping, not {node.describe()}", node)
        return
    for key, value in node.pairs:
        if not key.is_text:
            reader.report.add(
                "agent_name", f"an agent's name is text, not {key.describe()}", key, "put quotes around it"
            )
            continue
        try:
            parse_agent(key.text)
        except PatternError as error:
            reader.pattern_problem(key, error)
        found = reader.mapping(value, ("rules", "limits"), "an agent")
        tiered = out.agents[key.text] = Tiered()
        if "rules" in found:
            tiered.rules = read_rules(reader, found["rules"], "agent", key.text)
        if "limits" in found:
            tiered.limits = reader.limits(found["limits"])


def _cases(reader: Reader, node: Node, out: Read) -> None:
    cases = (read_case(reader, item) for item in reader.listed(node, "cases"))
    out.cases = tuple(case for case in cases if case)


def _invariants(reader: Reader, node: Node, out: Read) -> None:
    found: list[Invariant] = []
    for item in reader.listed(node, "invariants"):
        for kind, value in reader.mapping(item, ("always", "never"), "an invariant").items():
            found += read_invariant(reader, kind, value)
    out.invariants = tuple(found)


def _tasks(reader: Reader, node: Node, out: Read) -> None:
    found = reader.mapping(node, ("path", "max_tasks"), "tasks")
    path = reader.text(found["path"], "the path of the tasks") if "path" in found else None
    if "path" not in found and node.kind == "mapping":
        reader.report.add("key_missing", "the key 'path' is missing", node, "say where the task folders are")
    if path is not None and "://" in path:
        hint = "write a folder, relative to this file; a store is named by whoever starts it, with --tasks"
        reader.report.add("value_invalid", "the path of the tasks is a URL", found["path"], hint)
    most = reader.number(found["max_tasks"], "max_tasks", MOST_TASKS) if "max_tasks" in found else None
    if path is not None:
        out.settings["tasks"] = Tasks(path, most)


def _commands(reader: Reader, node: Node, out: Read) -> None:
    out.commands = read_commands(reader, node)


def _hard_links(reader: Reader, node: Node, out: Read) -> None:
    out.settings["hard_links"] = reader.word(node, ("replace", "refuse"), "hard_links")


def _durable(reader: Reader, node: Node, out: Read) -> None:
    out.settings["durable"] = reader.flag_or_word(node, "log", "durable")


def _mode(reader: Reader, node: Node, out: Read) -> None:
    out.settings["mode"] = reader.word(node, ("enforce", "monitor"), "mode")


def _retention(reader: Reader, node: Node, out: Read) -> None:
    found = reader.mapping(node, ("days", "max_bytes", "keep"), "retention")
    values: dict[str, int | None] = {}
    for name, read in (("days", reader.number), ("max_bytes", reader.size)):
        if name in found and found[name].text == UNLIMITED and found[name].kind == "scalar":
            values[name] = None
        elif name in found:
            values[name] = read(found[name], name)
    if "keep" in found:
        values["keep"] = reader.number(found["keep"], "keep")
    if node.kind == "mapping" and not node.pairs:
        message, hint = "retention says for how long contents are kept", "add days, max_bytes or keep"
        reader.report.add("key_missing", message, node, hint)
    out.retention = values


def _upstreams(reader: Reader, node: Node, _out: Read) -> None:
    from ringfence.policy.loading.upstream_section import read_upstreams  # few policies have servers

    read_upstreams(reader, node)


KEYS: Mapping[str, Callable[[Reader, Node, Read], None]] = {
    "agents": _agents,
    "cases": _cases,
    "commands": _commands,
    "durable": _durable,
    "extends": _extends,
    "hard_links": _hard_links,
    "invariants": _invariants,
    "limits": _limits,
    "mandatory": _mandatory,
    "mode": _mode,
    "retention": _retention,
    "rules": _rules,
    "sets": _sets,
    "tasks": _tasks,
    "upstreams": _upstreams,
    "version": _version,
}
