"""Reader of a policy's statements about itself: one case, and one invariant."""

from __future__ import annotations

from collections.abc import Mapping

from ringfence.policy.loading.values import Reader
from ringfence.policy.loading.yaml_tree import Node
from ringfence.policy.model import (
    ACTIONS,
    DEFAULT_AGENT,
    MAKES_PARENTS,
    RUN,
    RUN_TOOL,
    WRITE_KINDS,
    Case,
    Invariant,
    Parents,
    kinds_of,
    names_action,
    path_needs,
)
from ringfence.policy.upstreams.rows import CALL, Row, needs_of, split_key


def read_case(reader: Reader, node: Node) -> Case | None:
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
    path = _place(reader, found, tool, command=command)
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
    elif not command and "path" not in found and node.kind == "mapping" and not _is_called(reader, tool):
        either = (
            "add path: for a file that it changes, or command: for the line" if tool == RUN_TOOL else None
        )
        reader.report.add("key_missing", "the key 'path' is missing", node, either, length=1)
    return command


def _is_called(reader: Reader, tool: str | None) -> bool:
    """Whether a tool has no paths, and is judged by its own name."""
    return tool is not None and tuple(reader.tools.get(tool, ())) == needs_of(Row())


def _place(
    reader: Reader, found: Mapping[str, Node], tool: str | None, *, command: bool
) -> tuple[str, bool] | None:
    """Read the path of a case with whether it is a directory, the text of its command, or its tool's name."""
    if tool is not None and _is_called(reader, tool):
        if "path" in found:
            message = f"{tool} has no path"
            reader.report.add("case_invalid", message, found["path"], "leave the path out")
        return tool, False
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
    if "create" not in kinds_of(tool) or names_action(tool) or split_key(tool):
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
        return reader.word(found["action"], (*ACTIONS, *WRITE_KINDS, RUN, CALL), "an action")
    return reader.tool(found["tool"])


def read_invariant(reader: Reader, kind: str, node: Node) -> list[Invariant]:
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
        if action is not None and _is_called(reader, action):
            paths = [action]
    verdict = reader.effect(found["verdict"]) if "verdict" in found else None
    reason = reader.text(found["reason"], "a reason") if "reason" in found else None
    if action is None or verdict is None or agent is None or (action == RUN) > command:
        return []
    subject, where = RUN if command else action, reader.report.where(node)
    return [
        Invariant(kind, agent, subject, path, verdict, reason, where) for path in paths if path is not None
    ]
