"""JSON Schema of policy files, for editors: policy/schema.json with the tools filled in from the table.

Pure.
"""

from __future__ import annotations

import copy
from typing import Any

from ringfence.policy.model import ACTIONS, POLICY_TOOLS, RUN_TOOL, kinds_of, names_action
from ringfence.toolkit.tools import TOOLS, Tool


def policy_schema(document: dict[str, Any]) -> dict[str, Any]:
    """Return `document`, the content of policy/schema.json, with every tool filled in."""
    schema = copy.deepcopy(document)
    definitions = schema["$defs"]
    tools = [TOOLS[name] for name in sorted(TOOLS)]
    there = {*ACTIONS, RUN_TOOL}  # in the document already: the actions, and the tool for effects of commands
    keys = [tool for tool in tools if tool.name not in there]
    for tool in keys:
        for section, values in (("rules", _map(tool)), ("limits", "ceiling")):
            entry = {"description": _description(tool), "$ref": f"#/$defs/{values}"}
            definitions[section]["properties"][tool.name] = entry
    definitions["key"]["anyOf"][0]["enum"] += [tool.name for tool in keys]
    for name, actions in (("some_content", {"read", "write"}), ("some_reading", {"read"})):
        more = [tool.name for tool in keys if _actions(tool) & actions]
        one, several = definitions[name]["anyOf"]
        one["enum"] += more
        several["contains"]["enum"] += more
    definitions["tool"]["anyOf"][0]["enum"] = sorted({RUN_TOOL, *(tool.name for tool in tools)})
    case = definitions["case"]
    case["if"]["properties"]["tool"]["enum"] = [tool.name for tool in tools if _has_two_paths(tool)]
    makers = [tool.name for tool in tools if POLICY_TOOLS[tool.name].makes_parents]
    case["allOf"][1]["then"]["properties"]["tool"]["enum"] = makers
    putters = [name for name in POLICY_TOOLS if "create" in kinds_of(name) and not names_action(name)]
    case["allOf"][4]["then"]["properties"]["tool"]["enum"] = sorted(putters)
    return schema


def _map(tool: Tool) -> str:
    """Return the definition of a tool's rules: what it does decides which conditions they can have."""
    actions = _actions(tool)
    return "map" if "read" in actions else "write_map" if "write" in actions else "delete_map"


def _actions(tool: Tool) -> set[str]:
    return {action for action, _ in tool.needs}


def _description(tool: Tool) -> str:
    needs = ", ".join(f"{action} on {_object(tool, name)}" for action, name in tool.needs)
    return f"Tool: {tool.title}. Needs {needs}."


def _object(tool: Tool, parameter: str) -> str:
    if tool.tasks:
        return "@tasks/<uuid>"
    return f"its {parameter}" if parameter else "the root"


def _has_two_paths(tool: Tool) -> bool:
    return len({parameter for _, parameter in tool.needs}) > 1
