"""Reference of keys: which keys and words may stand at a place of a policy, and what each means.

Made from the JSON Schema of policies, the same that `ringfence schema policy` prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from ringfence.toolkit.catalog.policy_schema import policy_schema
from ringfence.toolkit.language_server.policy_tree import ITEM

_REFERENCE = "#/$defs/"


@dataclass(slots=True)
class Allowed:
    """What may stand at one place: keys and words with their meanings, and the kinds of value by name."""

    keys: dict[str, str] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    kinds: set[str] = field(default_factory=set)  # names of definitions: pattern, path, agent, base
    key_kinds: set[str] = field(default_factory=set)  # of keys that are free


@cache
def _schema() -> Mapping[str, Any]:
    text = files("ringfence.policy").joinpath("schema.json").read_text(encoding="utf-8")
    return policy_schema(json.loads(text))


@cache
def allowed(trail: tuple[str, ...]) -> Allowed:
    """Return what may stand below these keys; `-` stands for an item of a list."""
    out = Allowed()
    for node in _nodes(trail):
        out.kinds |= {node["name"]} if "name" in node else set()
        for key, value in node.get("properties", {}).items():
            out.keys.setdefault(key, _text(value))
        for word in (*node.get("enum", ()), *([node["const"]] if "const" in node else ())):
            out.words.setdefault(_word(word), node.get("description", ""))
        if node.get("type") == "boolean":
            out.words.setdefault("true", "")
            out.words.setdefault("false", "")
        for name in ("propertyNames",):
            if name in node:
                out.key_kinds |= {each["name"] for each in _resolved(node[name]) if "name" in each}
    return out


@cache
def description(trail: tuple[str, ...]) -> str:
    """Return what a key means; "" where the schema does not say."""
    for node in _nodes(trail[:-1]):
        found = node.get("properties", {}).get(trail[-1])
        if found is not None:
            return _text(found)
    return ""


def _word(word: object) -> str:
    return {True: "true", False: "false"}[word] if isinstance(word, bool) else str(word)


def _text(node: Mapping[str, Any]) -> str:
    return str(next((each["description"] for each in _resolved(node) if each.get("description")), ""))


def _nodes(trail: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """Return the alternatives of the schema at a place."""
    at = list(_resolved(_schema()))
    for name in trail:
        at = [found for node in at for below in _below(node, name) for found in _resolved(below)]
    return at


def _below(node: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    known = node.get("properties", {})
    if name == ITEM and isinstance(node.get("items"), dict):
        yield node["items"]
    elif name in known:
        yield known[name]
    elif isinstance(node.get("additionalProperties"), dict):
        yield node["additionalProperties"]


def _resolved(node: Mapping[str, Any], name: str = "", depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield a schema with its references and alternatives followed; `name` is the nearest definition's."""
    if depth > 20:
        return
    if "$ref" in node:
        target = str(node["$ref"]).removeprefix(_REFERENCE)
        rest = {key: value for key, value in node.items() if key != "$ref"}
        for each in _resolved(_schema()["$defs"][target], target, depth + 1):
            yield {**each, **rest}
        return
    yield {**node, **({"name": name} if name else {})}
    for key in ("anyOf", "oneOf"):
        for each in node.get(key, ()):
            yield from _resolved(each, name, depth + 1)
