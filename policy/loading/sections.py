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
from ringfence.policy.loading.values import UNLIMITED, Reader, Tiered
from ringfence.policy.loading.yaml_tree import Node
from ringfence.policy.model import (
    ACTIONS,
    DEFAULT_AGENT,
    EFFECTS,
    MAKES_PARENTS,
    MOST_TASKS,
    RUN,
    RUN_TOOL,
    WRITE_KINDS,
    Case,
    Invariant,
    Mandatory,
    Parents,
    Rule,
    Tasks,
    kinds_of,
    names_action,
    path_needs,
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
    # The names of sets first: every other section may use them.
    for key in sorted(found, key="sets".__ne__):
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
    cases = (_case(reader, item) for item in reader.listed(node, "cases"))
    out.cases = tuple(case for case in cases if case)


def _case(reader: Reader, node: Node) -> Case | None:
    known = (
        "agent",
        "action",
        "tool",
        "path",
        "command",
        "to",
        "files",
        "bytes",
        "parents",
        "exists",
        "want",
        "note",
    )
    found = reader.mapping(node, known, "a case")
    tool = _subject(reader, node, found, "a case")
    command = _object(reader, node, found, tool, "a case")
    if "want" not in found and node.kind == "mapping":
        reader.report.add("key_missing", "the key 'want' is missing", node, length=1)
    agent = reader.text(found["agent"], "an agent's name") if "agent" in found else DEFAULT_AGENT
    path = _place(reader, found, command=command)
    to = reader.path(found["to"], "a path") if "to" in found else None
    amounts = {key: reader.number(found[key], key) for key in ("files", "bytes") if key in found}
    want = reader.effect(found["want"]) if "want" in found else None
    note = (reader.text(found["note"], "a note") if "note" in found else "") or ""
    if tool is None or path is None or want is None or agent is None or None in amounts.values():
        return None
    if command:
        _only_words(reader, found)
        return Case(RUN, path[0], want, agent=agent, note=note, where=reader.report.where(node), command=True)
    two = tool in reader.tools and len({name for _, name in path_needs(tool, reader.tools)}) > 1
    if two != ("to" in found):
        message = f"{tool} has a second path" if two else f"{tool} has one path only"
        hint = "add to: with the path it goes to" if two else "leave 'to' out"
        reader.report.add("case_invalid", message, found.get("to", node), hint)
        return None
    parents = _parents(reader, found["parents"], tool) if "parents" in found else "missing"
    exists = _exists(reader, found["exists"], tool) if "exists" in found else False
    return Case(
        tool,
        path[0],
        want,
        path[1],
        agent,
        to[0] if to else None,
        amounts.get("files"),
        amounts.get("bytes"),
        note,
        reader.report.where(node),
        parents,
        exists=exists,
    )


def _object(reader: Reader, node: Node, found: Mapping[str, Node], tool: str | None, what: str) -> bool:
    """Whether a case or an invariant is about a command; one of `path` and `command`, as its tool needs."""
    command = "command" in found
    if "path" in found and command:
        hint = "a command is judged by its words, and each file that it changes by its path"
        reader.report.add("case_invalid", f"{what} has one of 'path' and 'command'", found["command"], hint)
    elif command and tool not in (RUN, RUN_TOOL, None):
        hint = f"write path: for {tool}, or action: run for the command"
        reader.report.add("case_invalid", f"{tool} needs a path, not a command", found["command"], hint)
    elif tool == RUN and not command:
        hint = "add command: with the command line; what it may change is asked with tool: run_command"
        reader.report.add(
            "key_missing", "the key 'command' is missing", found.get("path", node), hint, length=1
        )
    elif not command and "path" not in found and node.kind == "mapping":
        either = (
            "add path: for a file that it changes, or command: for the line" if tool == RUN_TOOL else None
        )
        reader.report.add("key_missing", "the key 'path' is missing", node, either, length=1)
    return command


def _place(reader: Reader, found: Mapping[str, Node], *, command: bool) -> tuple[str, bool] | None:
    """Read the path of a case with whether it is a directory, or the text of its command."""
    if command:
        text = reader.text(found["command"], "a command")
        return None if text is None else (text, False)
    return reader.path(found["path"], "a path") if "path" in found else None


def _only_words(reader: Reader, found: Mapping[str, Node]) -> None:
    for key in ("to", "files", "bytes", "parents", "exists"):
        if key in found:
            hint = "write a second case for what it changes: tool: run_command, with a path"
            reader.report.add("case_invalid", f"a command has no '{key}'", found[key], hint)


def _parents(reader: Reader, node: Node, tool: str) -> Parents:
    """Read whether the parent directories of a case's path exist."""
    if tool not in MAKES_PARENTS:
        message = f"{tool} makes no directories on the way"
        reader.report.add("case_invalid", message, node, f"only for {', '.join(sorted(MAKES_PARENTS))}")
    return "exist" if reader.word(node, ("missing", "exist"), "parents") == "exist" else "missing"


def _exists(reader: Reader, node: Node, tool: str) -> bool:
    """Read whether a file is there already where a case's tool writes."""
    if "create" not in kinds_of(tool) or names_action(tool):
        message = f"whether a file exists makes no difference to {tool}"
        hint = (
            "write action: write.create, write.replace or write.edit" if tool == "write" else "leave it out"
        )
        reader.report.add("case_invalid", message, node, hint)
    return bool(reader.flag(node, "exists"))


def _subject(reader: Reader, node: Node, found: Mapping[str, Node], what: str) -> str | None:
    """Read the `action` or `tool` of a case or an invariant: one of the two."""
    names = [name for name in ("action", "tool") if name in found]
    if len(names) != 1:
        if node.kind == "mapping":
            message = f"{what} has one of 'action' and 'tool'"
            reader.report.add(
                "key_missing", message, node, "add action: read, write, delete or run", length=1
            )
        return None
    if names == ["action"]:
        return reader.word(found["action"], (*ACTIONS, *WRITE_KINDS, RUN), "an action")
    return reader.tool(found["tool"])


def _invariants(reader: Reader, node: Node, out: Read) -> None:
    found: list[Invariant] = []
    for item in reader.listed(node, "invariants"):
        for kind, value in reader.mapping(item, ("always", "never"), "an invariant").items():
            found += _invariant(reader, kind, value)
    out.invariants = tuple(found)


def _invariant(reader: Reader, kind: str, node: Node) -> list[Invariant]:
    """Read an invariant; one on a set is one on each of its patterns."""
    known = ("agent", "action", "tool", "path", "command", "verdict", "reason")
    found = reader.mapping(node, known, "an invariant")
    action = _subject(reader, node, found, "an invariant")
    command = _object(reader, node, found, action, "an invariant")
    if "verdict" not in found and node.kind == "mapping":
        reader.report.add("key_missing", "the key 'verdict' is missing", node, length=1)
    agent = reader.text(found["agent"], "an agent's name") if "agent" in found else "*"
    if command:
        paths = [reader.word_pattern(found["command"])]
    else:
        paths = [text for text, _ in reader.patterns(found["path"])] if "path" in found else []
    verdict = reader.effect(found["verdict"]) if "verdict" in found else None
    reason = reader.text(found["reason"], "a reason") if "reason" in found else None
    if action is None or verdict is None or agent is None or (action == RUN) > command:
        return []
    subject, where = RUN if command else action, reader.report.where(node)
    return [
        Invariant(kind, agent, subject, path, verdict, reason, where) for path in paths if path is not None
    ]


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
    out.settings["durable"] = reader.flag(node, "durable")


def _mode(reader: Reader, node: Node, out: Read) -> None:
    out.settings["mode"] = reader.word(node, ("enforce", "monitor"), "mode")


def _retention(reader: Reader, node: Node, out: Read) -> None:
    found = reader.mapping(node, ("days", "max_bytes", "keep"), "retention")
    said: dict[str, int | None] = {}
    for name, read in (("days", reader.number), ("max_bytes", reader.size)):
        if name in found and found[name].text == UNLIMITED and found[name].kind == "scalar":
            said[name] = None
        elif name in found:
            said[name] = read(found[name], name)
    if "keep" in found:
        said["keep"] = reader.number(found["keep"], "keep")
    if node.kind == "mapping" and not node.pairs:
        message, hint = "retention says for how long contents are kept", "add days, max_bytes or keep"
        reader.report.add("key_missing", message, node, hint)
    out.retention = said


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
    "version": _version,
}
