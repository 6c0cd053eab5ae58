"""`schema` and `completion`: what editors, models and shells complete and validate from."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from toolkit.cli.perform import DONE
from toolkit.cli.screen import Screen
from toolkit.tools import TOOLS, Tool


def policy(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the JSON Schema of policy files."""
    screen.json(json.loads(files("policy").joinpath("schema.json").read_text(encoding="utf-8")))
    return DONE


def tools(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print every tool with its schema, in the shape that was asked for."""
    shape = SHAPES[arguments.format]
    screen.json([shape(tool) for tool in TOOLS.values()])
    return DONE


def _ours(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "safety": tool.safety,
        "categories": list(tool.categories),
        "needs": [{"action": action, "parameter": parameter} for action, parameter in tool.needs],
        "parameters": tool.parameters,
    }


def _mcp(tool: Tool) -> dict[str, Any]:
    reads = all(action == "read" for action, _ in tool.needs)
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.parameters,
        "annotations": {"title": tool.title, "readOnlyHint": reads},
    }


def _openai(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _anthropic(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


SHAPES: Mapping[str, Callable[[Tool], dict[str, Any]]] = MappingProxyType(
    {"ringfence": _ours, "mcp": _mcp, "openai": _openai, "anthropic": _anthropic}
)


def completion(arguments: argparse.Namespace, screen: Screen) -> int:
    """Print the completion script; made from the parser, so that it cannot lag behind."""
    import shtab

    from toolkit.cli.parser import build

    parser = build()
    _say_what_completes(parser, {"file": shtab.FILE, "directory": shtab.DIRECTORY})
    print(shtab.complete(parser, arguments.shell), file=screen.stdout)
    return DONE


def _say_what_completes(parser: argparse.ArgumentParser, kinds: Mapping[str, Any]) -> None:
    """Mark the arguments that are files or folders in the way shtab looks for."""
    for action in parser._actions:
        if kind := getattr(action, "completes", ""):
            action.complete = kinds[kind]  # type: ignore[attr-defined]
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                _say_what_completes(below, kinds)
