"""JSON Schema of policy files, for editors: policy/schema.json with the tools filled in from the table.

Pure.
"""

from __future__ import annotations

import copy
from typing import Any

from ringfence.policy.model import ACTIONS, POLICY_TOOLS, RUN_TOOL
from ringfence.toolkit.tools import TOOLS, Tool


def policy_schema(document: dict[str, Any]) -> dict[str, Any]:
    """Return `document`, the content of policy/schema.json, with every tool filled in."""
    schema = copy.deepcopy(document)
    definitions = schema["$defs"]
    tools = [TOOLS[name] for name in sorted(TOOLS)]
    there = {*ACTIONS, RUN_TOOL}  # in the document already: the actions, and the tool for effects of commands
    keys = [tool for tool in tools if tool.name not in there]
    for section, values in (("rules", "map"), ("limits", "ceiling")):
        for tool in keys:
            entry = {"description": _description(tool), "$ref": f"#/$defs/{values}"}
            definitions[section]["properties"][tool.name] = entry
    definitions["key"]["enum"] += [tool.name for tool in keys]
    definitions["tool"]["enum"] = sorted({RUN_TOOL, *(tool.name for tool in tools)})
    case = definitions["case"]
    case["if"]["properties"]["tool"]["enum"] = [tool.name for tool in tools if _has_two_paths(tool)]
    makers = [tool.name for tool in tools if POLICY_TOOLS[tool.name].makes_parents]
    case["allOf"][1]["then"]["properties"]["tool"]["enum"] = makers
    return schema


def _description(tool: Tool) -> str:
    needs = ", ".join(f"{action} on {_object(tool, name)}" for action, name in tool.needs)
    return f"Tool: {tool.title}. Needs {needs}."


def _object(tool: Tool, parameter: str) -> str:
    if tool.tasks:
        return "@tasks/<uuid>"
    return f"its {parameter}" if parameter else "the root"


def _has_two_paths(tool: Tool) -> bool:
    return len({parameter for _, parameter in tool.needs}) > 1
