"""Reader of what a policy says of commands: the section `commands`, and mandatory items on commands.

Only the fields that a file states are returned: a file that extends another one replaces those it states.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringfence.policy.loading.values import Reader
from ringfence.policy.loading.yaml_tree import Node
from ringfence.policy.model import COMMAND_LEVELS, RUN, CommandLimits, Commands

_FIELDS = ("require", "network", "discard", "through", "limits")
_LANES = ("discard", "through")
_COUNTS = ("seconds", "processes")
_SIZES = ("output", "memory", "scratch")
# YAML 1.1 reads the plain words on and off as booleans, and an editor's schema sees what YAML reads.
_SWITCH = {"off": False, "on": True, "false": False, "true": True}


def read_commands(reader: Reader, node: Node) -> dict[str, Any]:
    """Return the fields that the section states, as those of `Commands`; `limits` holds its own."""
    found = reader.mapping(node, _FIELDS, "commands")
    if node.kind == "mapping" and not node.pairs:
        hint = f"add {', '.join(_FIELDS[:-1])} or {_FIELDS[-1]}"
        reader.report.add("key_missing", "commands says how commands run", node, hint)
    out: dict[str, Any] = {}
    if "require" in found:
        out["require"] = reader.word(found["require"], COMMAND_LEVELS, "require")
    if "network" in found:
        out["network"] = _network(reader, found["network"])
    for lane in _LANES:
        if lane in found:
            texts = _patterns(reader, found[lane], lane)
            out[lane] = tuple(text for text, _ in texts)
            out[f"{lane}_at"] = tuple(reader.report.where(item) for _, item in texts)
    if "limits" in found:
        out["limits"] = _limits(reader, found["limits"])
    return out


def _network(reader: Reader, node: Node) -> bool | None:
    if node.kind == "scalar" and node.text in _SWITCH and (node.plain or node.text in ("off", "on")):
        return _SWITCH[node.text]
    reader.report.add(
        "value_invalid", f"network is off or on, not {node.describe()}", node, "write off or on"
    )
    return None


def _patterns(reader: Reader, node: Node, what: str) -> list[tuple[str, Node]]:
    """Return the path patterns of a lane; an empty list is what closes the lane of an extended policy."""
    if node.kind == "sequence" and not node.items:
        return []
    return [(text, item) for item in reader.several(node, what) for text, _ in reader.patterns(item)]


def _limits(reader: Reader, node: Node) -> dict[str, int]:
    found = reader.mapping(node, (*_COUNTS, *_SIZES), "the limits of a command")
    out: dict[str, int] = {}
    for name in (*_COUNTS, *_SIZES):
        if name not in found:
            continue
        value = (reader.number if name in _COUNTS else reader.size)(found[name], name)
        if value == 0:
            reader.report.add(
                "number_invalid", f"{name} is at least 1", found[name], "leave it out for the default"
            )
        elif value is not None:
            out[name] = value
    if node.kind == "mapping" and not node.pairs:
        hint = f"add {', '.join((*_COUNTS, *_SIZES)[:-1])} or {_SIZES[-1]}"
        reader.report.add("key_missing", "a limit says how much", node, hint)
    return out


def merged(sections: list[Mapping[str, Any]]) -> Commands | None:
    """Return the sections of several files as one, later fields over earlier ones; None without any."""
    stated: dict[str, Any] = {}
    limits: dict[str, int] = {}
    for section in sections:
        stated |= section
        limits |= section.get("limits", {})
    if not stated:
        return None
    return Commands(**{**stated, "limits": CommandLimits(**limits)})


def check_item(reader: Reader, node: Node, found: Mapping[str, Node], keys: list[str]) -> bool:
    """Whether a mandatory item is one on commands; a mix of commands and paths is a problem.

    `keys`: what the item denies or asks about.
    """
    runs, words = RUN in keys, "commands" in found
    if not runs and not words:
        return False
    if words and not runs:
        hint = "write deny: run, or ask: run; a second item for paths"
        reader.report.add("value_invalid", "an item with 'commands' is about 'run'", found["commands"], hint)
    elif len(keys) > 1:
        others = ", ".join(key for key in keys if key != RUN)
        hint = f"write an item with paths for {others}, and one with commands for run"
        reader.report.add("value_invalid", "'run' stands alone in an item", node, hint, length=1)
    if "paths" in found:
        hint = "write commands: [git push *]; what a command may change is write and delete, with paths"
        reader.report.add(
            "value_invalid", "commands are matched by their words, not by paths", found["paths"], hint
        )
    elif not words:
        reader.report.add(
            "key_missing", "the key 'commands' is missing", node, "'*' is every command", length=1
        )
    if "except_tools" in found:
        hint = "only one tool runs commands: leave it out"
        reader.report.add(
            "value_invalid", "an item on commands has no other tools", found["except_tools"], hint
        )
    return True
