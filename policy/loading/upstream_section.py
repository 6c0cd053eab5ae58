"""Section `upstreams`: the MCP servers behind the gateway, and which of their tools' arguments are paths.

A rule's key `NAME.tool` is known once its server is named here, in this file or in one that it extends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ringfence.policy.errors import nearest
from ringfence.policy.loading import upstream_tables
from ringfence.policy.loading.values import Reader
from ringfence.policy.loading.yaml_tree import Node
from ringfence.policy.model import ACTIONS
from ringfence.policy.upstreams.rows import (
    BELOW,
    CALL,
    MORE,
    NO_PATH,
    RESERVED,
    SELECTOR,
    UPSTREAM_NAME,
    Below,
    PathArgument,
    Row,
    Table,
    key_of,
    split_key,
)

_BELOW: Mapping[str, Below] = {"": "", **{each: each for each in BELOW}}
_ARGUMENT = ("action", "below", "mirrors", "default")


def read_upstreams(reader: Reader, node: Node) -> None:
    """Read the section and make the tools known to the reader; problems go into its report."""
    if node.kind != "mapping":
        reader.report.add("value_invalid", f"upstreams are a mapping, not {node.describe()}", node)
        return
    for key, value in node.pairs:
        if key.text in RESERVED or not key.is_text or not re.match(UPSTREAM_NAME, key.text):
            hint = f"lower-case letters, digits and -, up to 32, and none of {', '.join(sorted(RESERVED))}"
            reader.report.add("value_invalid", f"{key.describe()} is not the name of a server", key, hint)
            continue
        reader.add_upstream(key.text, _server(reader, key.text, value))


def _server(reader: Reader, name: str, node: Node) -> Table:
    if node.kind == "scalar":
        return _ready_made(reader, node)
    found = reader.mapping(node, ("table", "tools"), "a server")
    table = dict(_ready_made(reader, found["table"])) if "table" in found else {}
    tools = found.get("tools")
    if tools is not None and tools.kind != "mapping":
        reader.report.add("value_invalid", f"tools are a mapping, not {tools.describe()}", tools)
        return table
    for key, value in tools.pairs if tools is not None else ():
        if not key.is_text or split_key(key_of(name, key.text)) is None:
            hint = "letters, digits, _, -, . and /"
            reader.report.add("value_invalid", f"{key.describe()} is not the name of a tool", key, hint)
            continue
        row = _row(reader, value)
        if row is not None:
            table[key.text] = row
    return table


def _ready_made(reader: Reader, node: Node) -> Table:
    name = reader.text(node, "the name of a table")
    if name is None or name in upstream_tables.names():
        return {} if name is None else upstream_tables.table(name)
    close = nearest(name, upstream_tables.names())
    known = f"ready-made are {', '.join(upstream_tables.names())}; write tools: for any other server"
    hint = f"did you mean '{close}'?" if close else known
    reader.report.add("value_invalid", f"there is no table '{name[:80]}'", node, hint)
    return {}


def _row(reader: Reader, node: Node) -> Row | None:
    if node.kind != "mapping":
        hint = "write {} for a tool without paths, else {path: read}"
        reader.report.add("value_invalid", f"a tool is a mapping, not {node.describe()}", node, hint)
        return None
    arguments: list[PathArgument] = []
    calls = False
    for key, value in node.pairs:
        if key.text == MORE:
            calls = reader.word(value, (CALL,), "what a tool does besides its paths") is not None
        elif key.is_text and re.match(SELECTOR, key.text):
            found = _argument(reader, value)
            if found is not None:
                arguments.append(PathArgument(key.text, *found))
        else:
            hint = (
                "write its name; with [] for each item of a list, and a dot for what is in it: edits[].file"
            )
            reader.report.add("value_invalid", f"{key.describe()} names no argument", key, hint)
    known = {each.selector for each in arguments}
    for each in arguments:
        if each.mirrors and each.mirrors not in known:
            hint = "name another argument of this tool"
            reader.report.add("value_invalid", f"no argument '{each.mirrors}' to mirror", node, hint)
    return Row(tuple(arguments), calls)


def _argument(reader: Reader, node: Node) -> tuple[tuple[str, ...], Below, str, str | None] | None:
    if node.kind != "mapping":
        actions = _actions(reader, node)
        return None if actions is None else (actions, "", "", None)
    found = reader.mapping(node, _ARGUMENT, "an argument")
    if "action" not in found:
        reader.report.add("key_missing", "the key 'action' is missing", node, "add action: read", length=1)
        return None
    actions = _actions(reader, found["action"])
    below = reader.word(found["below"], BELOW, "below") if "below" in found else None
    mirrors = reader.text(found["mirrors"], "mirrors") if "mirrors" in found else None
    default = reader.path(found["default"], "a path") if "default" in found else None
    if actions is None:
        return None
    return actions, _BELOW[below or ""], mirrors or "", default[0] if default else None


def _actions(reader: Reader, node: Node) -> tuple[str, ...] | None:
    """Read one action or several; none for an argument that is no path."""
    if node.kind == "scalar" and node.text == NO_PATH:
        return ()
    items = reader.several(node, "the action of an argument")
    known = (*ACTIONS, NO_PATH) if len(items) == 1 else ACTIONS
    found = [reader.word(item, known, "an action") for item in items]
    read = tuple(each for each in found if each is not None)
    return read if read and len(read) == len(found) else None
